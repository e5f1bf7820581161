"""Learning rates by layer, in the library's trainer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformerTrainer as Base
else:
    Base = object


class LayerRates(Base):
    """Mixin, placed before the library's trainer: parameters with a share of the learning rate.

    Attributes:
        rate_factors: `id` of a parameter -> its share; 1 for those that are not listed. Empty: one rate, and the
            library's own groups.
    """

    rate_factors: Mapping[int, float] = MappingProxyType({})

    def get_optimizer_cls_and_kwargs(  # type: ignore[override]  # a method in sentence-transformers' trainer
        self, args: Any, model: Any = None
    ) -> tuple[Any, Any]:
        """The library's optimizer, its groups split by learning rate.

        Raises:
            InputError: the optimizer makes groups of its own.
        """
        kind, kwargs = super().get_optimizer_cls_and_kwargs(args, model)
        if self.rate_factors:
            if "optimizer_dict" not in kwargs or "params" in kwargs:
                raise InputError(f"--layer_decay: --optim {args.optim} makes groups of its own; leave one of them out.")
            kwargs["optimizer_dict"] = split_groups(kwargs["optimizer_dict"], self.rate_factors, args.learning_rate)
        return kind, kwargs


def split_groups(
    groups: Iterable[Mapping[str, Any]], factors: Mapping[int, float], learning_rate: float
) -> list[dict[str, Any]]:
    """Parameter groups of an optimizer by learning rate, the highest first, whose rate the trainer logs.

    >>> first, second = object(), object()
    >>> groups = split_groups([{"params": [first, second]}], {id(first): 0.5}, 0.1)
    >>> [(group["params"] == [second], group["lr"]) for group in groups]
    [(True, 0.1), (False, 0.05)]
    """
    split: dict[tuple[float, int], dict[str, Any]] = {}
    for number, group in enumerate(groups):
        for parameter in group["params"]:
            factor = factors.get(id(parameter), 1.0)
            fresh = {**group, "params": [], "lr": learning_rate * factor}
            split.setdefault((-factor, number), fresh)["params"].append(parameter)
    return [split[key] for key in sorted(split)]
