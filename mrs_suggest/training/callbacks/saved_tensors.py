"""The memory of activations: what a forward pass keeps for the backward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from torch import Tensor


class SavedTensors:
    """Counts the bytes that autograd keeps at a time, each storage once, and not those of the parameters.

    The count is that of the tensors themselves: it does not depend on the device or its allocator.

    Args:
        parameters: of the model.

    Attributes:
        peak: the most bytes at a time.

    >>> weight = torch.ones(4, requires_grad=True)
    >>> saved = SavedTensors([weight])
    >>> with saved.counted():
    ...     (torch.ones(4) * weight).exp().sum().backward()
    >>> saved.peak  # the first factor and the result of exp, of 4 numbers each
    32
    """

    def __init__(self, parameters: Iterable[Tensor]) -> None:
        self._parameters = {one.untyped_storage().data_ptr() for one in parameters}
        self._uses: dict[int, int] = {}
        self._now = 0
        self.peak = 0

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count what is kept within the block."""
        with torch.autograd.graph.saved_tensors_hooks(self._pack, lambda held: held.tensor):
            yield

    def _pack(self, tensor: Tensor) -> _Held:
        try:
            storage = tensor.untyped_storage()
        except NotImplementedError:  # a sparse one
            return _Held(self, tensor, 0, 0)
        place, size = storage.data_ptr(), storage.nbytes()
        if place in self._parameters:
            size = 0
        if size:
            if not self._uses.get(place):
                self._now += size
                self.peak = max(self.peak, self._now)
            self._uses[place] = self._uses.get(place, 0) + 1
        return _Held(self, tensor, place, size)

    def release(self, place: int, size: int) -> None:
        """One use of a storage has ended."""
        self._uses[place] -= 1
        if not self._uses[place]:
            del self._uses[place]
            self._now -= size


class _Held:
    """A tensor that autograd keeps; it is gone when autograd forgets it."""

    def __init__(self, of: SavedTensors, tensor: Tensor, place: int, size: int) -> None:
        self.tensor, self._of, self._place, self._size = tensor.detach(), of, place, size

    def __del__(self) -> None:
        if self._size:
            self._of.release(self._place, self._size)
