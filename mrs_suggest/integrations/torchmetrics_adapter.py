"""The metrics as classes of torchmetrics, for Lightning and other loops, with the extra `torchmetrics`.

Each keeps the examples that `update` gets and, in `compute`, brings those of all processes together, in order, and
passes them to the `evaluate` module of the same name, so that their figures are equal to the last digit. (The figures
of a whole test set are not sums over batches: Dist-n counts n-grams of all texts, and a sum of floats depends on its
order.) Arguments that the module does not know are torchmetrics' own, such as `process_group`.
"""

import inspect
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from mrs_metrics.modules import dist_n, mrs_rouge, response_ranking, self_rouge, simulated_clicks, weighted_f1
from mrs_suggest.common.errors import extra_needed

with extra_needed("torchmetrics", "torchmetrics", "a metric of torchmetrics"):
    from torchmetrics import Metric

Indices = Sequence[int] | torch.Tensor
EXAMPLE: Mapping[str, list[Any]] = {"predictions": [["a", "b"]], "references": ["a"]}


class ExamplesMetric(Metric):
    """Base of the adapters.

    Attributes:
        module: the class of the `evaluate` module.
        example: inputs with which the options are tried at once.
        records: the state: lines of JSON as bytes, one line for each example, which is all that processes exchange.
        signature: how the last figures were computed; empty before `compute`.
        skipped: examples that the last figures leave out, by reason.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False  # a batch's examples do not depend on those before it
    records: list[torch.Tensor]
    module: type[Any]
    example: Mapping[str, list[Any]] = EXAMPLE

    def __init__(self, **options: Any) -> None:
        known = inspect.signature(self.module._compute).parameters
        super().__init__(**{name: value for name, value in options.items() if name not in known})
        self.add_state("records", default=[], dist_reduce_fx="cat")
        self.options = {name: value for name, value in options.items() if name in known}
        self.signature = ""
        self.skipped: dict[str, int] = {}
        predictions, references = self.module().checked(**self.example)
        self._figures(predictions, references, {})  # refuses unknown options

    def update(self, predictions: Any, references: Any = None, indices: Indices | None = None, **more: Any) -> None:
        """Add examples.

        Args:
            predictions, references: as for the `evaluate` module, or tensors.
            indices: for each example its number in the data set; needed for the same figures from several processes as
                from one, since samplers give each an interleaved part and repeat examples to fill the last batch.
            more: further inputs of the module with an entry for each example, such as `replies`.

        Raises:
            ValueError: the lists differ in length, or an entry has the wrong type.
        """
        predictions, references = self.module().checked(_plain(predictions), _plain(references))
        columns = [predictions, [None] * len(predictions) if references is None else references]
        columns += [_plain(column) for column in more.values()]
        for name, column in zip(("references", *more), columns[1:], strict=True):
            if len(column) != len(predictions):
                counts = f"{len(predictions)} predictions and {len(column)} {name}"
                raise ValueError(f"Each example needs an entry, but there are {counts}.")
        numbers = _numbers(indices, len(predictions))
        if predictions:
            rows = [[number, list(more), *row] for number, *row in zip(numbers, *columns, strict=True)]
            self.records.append(_as_bytes(rows, self.device))

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Bring the examples of all processes together; one of them may have had none."""
        if not self.records:
            self.records = [_as_bytes([], self.device)]
        super().sync(*args, **kwargs)

    def compute(self) -> dict[str, torch.Tensor]:
        """The figures of all examples so far: float64, counts as int64; ValueError without examples."""
        records = self._records()
        if not records:
            raise ValueError(f"{type(self).__name__} has no example to score; call update() first.")
        (names, *others) = {tuple(names): None for _, names, *_ in records}
        if others:
            raise ValueError(f"Inputs such as {(*names, *others[0])[0]} must come with each update() or with none.")
        predictions, references, *more = ([row[place] for row in records] for place in range(2, 4 + len(names)))
        found = self._figures(predictions, references, dict(zip(names, more, strict=True)))
        self.signature, self.skipped = found.pop("signature"), found.pop("skipped", {})
        numbers = {name: value for name, value in found.items() if isinstance(value, int | float)}
        types = {name: torch.int64 if isinstance(value, int) else torch.float64 for name, value in numbers.items()}
        return {name: torch.tensor(value, dtype=types[name], device=self.device) for name, value in numbers.items()}

    def _figures(self, predictions: Any, references: Any, more: Mapping[str, Any]) -> dict[str, Any]:
        given = {"references": references} if "references" in inspect.signature(self.module._compute).parameters else {}
        found: dict[str, Any] = self.module()._compute(predictions=predictions, **given, **more, **self.options)
        return found

    def _records(self) -> list[Any]:
        """The examples in the order of their indices, each index once; without indices as they came, rank by rank."""
        parts = self.records if isinstance(self.records, list) else [self.records]  # one tensor after a sync
        lines = b"".join(bytes(part.cpu().numpy().tobytes()) for part in parts).splitlines()
        records = [json.loads(line) for line in lines]
        without = sum(record[0] is None for record in records)
        if without and without < len(records):
            raise ValueError(
                f"{without} of {len(records)} examples came without indices: pass indices to each update(), or to none."
            )
        return records if without else [row for _, row in sorted({row[0]: row for row in records}.items())]


def _plain(column: Any) -> Any:
    return column.tolist() if isinstance(column, torch.Tensor) else column


def _as_bytes(records: list[Any], device: torch.device) -> torch.Tensor:
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    return torch.from_numpy(np.frombuffer(text.encode("ascii"), dtype=np.uint8).copy()).to(device)


def _numbers(indices: Indices | None, n: int) -> list[int | None]:
    if indices is None:
        return [None] * n
    numbers = list(_plain(indices))
    if len(numbers) != n:
        raise ValueError(f"There must be one index for each example, but there are {len(numbers)} for {n} examples.")
    wrong = [number for number in numbers if isinstance(number, bool) or not isinstance(number, int) or number < 0]
    if wrong:
        raise ValueError(f"An index is the example's number in the data set, from 0, not {wrong[0]!r}.")
    return numbers


class MrsRouge(ExamplesMetric):
    """Weighted ROUGE of each example's best suggestion.

    >>> metric = MrsRouge()
    >>> metric.update([["No.", "Yes!"]], ["Yes!"])
    >>> round(metric.compute()["weighted"].item(), 4)
    0.5
    """

    module = mrs_rouge.MrsRouge


class DistN(ExamplesMetric):
    """Dist-n of suggestions; references only count for `chosen="best"`.

    >>> metric = DistN()
    >>> metric.update([["i do"], ["i do not"]])
    >>> metric.compute()["dist1"].item()
    0.6
    """

    module = dist_n.DistN


class SelfRouge(ExamplesMetric):
    """How similar the suggestions of one message are."""

    module, higher_is_better = self_rouge.SelfRouge, False


class SimulatedClicks(ExamplesMetric):
    """Clicks and typing saved, if people want to send the reference."""

    module = simulated_clicks.SimulatedClicks


class ResponseRanking(ExamplesMetric):
    """MRR, precision at k and, with `replies`, macro-MRR; equal scores count against the system.

    >>> metric = ResponseRanking()
    >>> metric.update([[-0.1, -2.0, -0.5], [0.3, 0.3]], [0, 1])
    >>> metric.compute()["mrr"].item()
    0.75
    """

    module, example = response_ranking.ResponseRanking, {"predictions": [[1.0]], "references": [0]}


class WeightedF1(ExamplesMetric):
    """Weighted macro F1 and its relatives.

    >>> metric = WeightedF1()
    >>> accepted = [{"text": "Sim, claro.", "weight": 0.75}, {"text": "Sim!", "weight": 0.25}]
    >>> metric.update([["sim claro", "não"]], [accepted])
    >>> metric.compute()["weighted_macro_f1"].item()
    0.6
    """

    module, example = weighted_f1.WeightedF1, {"predictions": [["a"]], "references": [[{"text": "a", "weight": 1}]]}
