"""What the adapters share: a metric of torchmetrics whose state are the examples themselves.

Figures of a whole test set are no sums over batches (Dist-n counts n-grams of all texts, a signature names the largest
number of suggestions), and a sum of floats depends on its order. So `update` keeps the examples, `compute` brings those
of all processes together, in order, and hands them to `mrs_metrics` at once.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from mrs_suggest.common.errors import MissingExtraError

try:
    from torchmetrics import Metric
except ImportError as error:
    if (error.name or "").split(".")[0] != "torchmetrics":
        raise
    raise MissingExtraError("torchmetrics", "torchmetrics", "a metric of torchmetrics") from None

Indices = Sequence[int] | torch.Tensor


class ExamplesMetric(Metric):
    """Base of the adapters.

    Attributes:
        records: the state: lines of JSON as bytes, one line for each example, which is all that processes exchange.
        signature: how the last figures were computed; empty before `compute`.
        skipped: examples that the last figures leave out, by reason.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False  # a batch's examples do not depend on those before it
    records: list[torch.Tensor]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("records", default=[], dist_reduce_fx="cat")
        self.signature = ""
        self.skipped: dict[str, int] = {}

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Bring the examples of all processes together; one of them may have had none."""
        if not self.records:
            self.records = [_as_bytes([], self.device)]
        super().sync(*args, **kwargs)

    def compute(self) -> dict[str, torch.Tensor]:
        """The figures of all examples so far: float64, counts as int64.

        Raises:
            ValueError: there is no example to score, or only a part of them came with indices.
        """
        examples = self._examples()
        if not examples:
            raise ValueError(f"{type(self).__name__} has no example to score; call update() first.")
        return {name: _as_tensor(value, self.device) for name, value in self.figures(examples).items()}

    @abstractmethod
    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """The figures of the examples that `keep` got; sets `signature` and `skipped`."""

    def keep(self, examples: Sequence[Any], indices: Indices | None) -> None:
        """Add examples, each anything that JSON can hold, and their numbers in the data set."""
        numbers = _numbers(indices, len(examples))
        if examples:
            self.records.append(_as_bytes(list(zip(numbers, examples, strict=True)), self.device))

    def _examples(self) -> list[Any]:
        """The examples in the order of their indices, each index once; without indices as they came, rank by rank."""
        parts = self.records if isinstance(self.records, list) else [self.records]  # one tensor after a sync
        lines = b"".join(bytes(part.cpu().numpy().tobytes()) for part in parts).splitlines()
        records = [json.loads(line) for line in lines]
        without = sum(number is None for number, _ in records)
        if without == len(records):
            return [example for _, example in records]
        if without:
            raise ValueError(
                f"{without} of {len(records)} examples came without indices: pass indices to each update(), or to none."
            )
        return [example for _, example in sorted(dict(records).items())]


def _as_tensor(value: float, device: torch.device) -> torch.Tensor:
    return torch.tensor(value, dtype=torch.int64 if isinstance(value, int) else torch.float64, device=device)


def _as_bytes(records: list[tuple[int | None, Any]], device: torch.device) -> torch.Tensor:
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    return torch.from_numpy(np.frombuffer(text.encode("ascii"), dtype=np.uint8).copy()).to(device)


def _numbers(indices: Indices | None, n: int) -> list[int | None]:
    if indices is None:
        return [None] * n
    numbers = indices.tolist() if isinstance(indices, torch.Tensor) else list(indices)
    if len(numbers) != n:
        raise ValueError(f"There must be one index for each example, but there are {len(numbers)} for {n} examples.")
    wrong = [number for number in numbers if isinstance(number, bool) or not isinstance(number, int) or number < 0]
    if wrong:
        raise ValueError(f"An index is the example's number in the data set, from 0, not {wrong[0]!r}.")
    return numbers
