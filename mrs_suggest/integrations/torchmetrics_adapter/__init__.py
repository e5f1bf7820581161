"""The metrics as classes of torchmetrics, for Lightning and other loops, with the extra `torchmetrics`.

Each calls the functions of `mrs_metrics` that the `evaluate` module of the same name calls, so that their figures are
equal to the last digit; across processes, too, where `update` gets the numbers of the examples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrs_suggest.common.lazy import lazy_names

if TYPE_CHECKING:
    from .ranking import ResponseRanking
    from .suggestions import DistN, MrsRouge
    from .translations import WeightedF1

__all__ = ["DistN", "MrsRouge", "ResponseRanking", "WeightedF1"]
if not TYPE_CHECKING:  # a type checker would accept every name of the package
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            **dict.fromkeys(["DistN", "MrsRouge"], "suggestions"),
            "ResponseRanking": "ranking",
            "WeightedF1": "translations",
        },
    )
