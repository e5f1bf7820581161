"""Comparing the weights of two runs that should be one."""

from collections.abc import Mapping

from torch import Tensor

FEW = 2e-3  # of all entries


def differing(one: Mapping[str, Tensor], two: Mapping[str, Tensor], close: float) -> float:
    """The share of entries that differ by more than `close`.

    Adam makes whole steps even where a gradient is 0 but for rounding, as that of the bias of attention's keys, so that
    a few entries differ between runs that add the same numbers in another order.
    """
    assert one.keys() == two.keys()
    more = sum(int(((one[name] - two[name]).abs() > close).sum()) for name in one)
    return more / sum(tensor.numel() for tensor in one.values())
