"""Rows of token ids for understanding tasks, their batches, and a model's scores for each row.

Four kinds of tasks share them: a `label` of a text or pair, the relevance of a `page`, the `tags` of words
(`tag_rows.py`), and an `answer` in a text (`span_rows.py`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from mrs_suggest.common.batches import by_length
from mrs_suggest.models.generation.padding import IGNORED, padded

LABEL, PAGE, TAGS, ANSWER = KINDS = ("label", "page", "tags", "answer")
AT_ONCE = 1000  # texts that are tokenized together: bounds the memory of the library's own lists
INPUTS = ("input_ids", "token_type_ids")  # the attention mask follows from the padding


@dataclass(frozen=True)
class Row:
    """An example, or a window of one that is longer than a model reads.

    Attributes:
        inputs: name -> (tokens) int32.
        labels: a number (`label`, `page`), one for each token (`tags`), first and last token (`answer`); the loss
            skips `IGNORED`.
        read: where predictions are read: (word, token) of words whose tag this row gives (`tags`), the first and last
            character of each token, or -1 outside the text that holds the answer (`answer`).
    """

    inputs: dict[str, np.ndarray]
    labels: int | np.ndarray
    example: int
    read: np.ndarray = field(default_factory=lambda: np.empty((0, 2), np.int32))

    def __len__(self) -> int:
        return len(self.inputs["input_ids"])


@dataclass(frozen=True)
class Said:
    """A model's scores for a row.

    Attributes:
        loss: summed cross-entropy in nats of the labelled items.
        scores: (labels) of a label; (words, labels) in the order of `Row.read`; (2, tokens) of first and last.
    """

    loss: float
    labelled: int
    scores: np.ndarray


def chunks(items: Sequence[Any]) -> Iterator[tuple[int, Sequence[Any]]]:
    """Slices of `AT_ONCE` items, with the index of their first."""
    for first in range(0, len(items), AT_ONCE):
        yield first, items[first : first + AT_ONCE]


def windows_of(encoded: Any) -> dict[int, list[int]]:
    """The numbers of the rows of each text, in a tokenizer's output with `overflow_to_sample_mapping`."""
    found: dict[int, list[int]] = {}
    for number, text in enumerate(encoded["overflow_to_sample_mapping"]):
        found.setdefault(text, []).append(number)
    return found


def inputs_of(encoded: Any, number: int) -> dict[str, np.ndarray]:
    """One row of a tokenizer's output, without its attention mask."""
    return {name: np.asarray(encoded[name][number], np.int32) for name in INPUTS if name in encoded}


def pair_rows(
    tokenizer: Any, pairs: Sequence[tuple[str, str]], labels: Sequence[int | None], max_tokens: int
) -> list[Row]:
    """A row of at most `max_tokens` for each pair of texts; the longer text is cut first. Unknown labels are None."""
    rows = []
    for start, some in chunks(pairs):
        first, second = ([pair[part] for pair in some] for part in (0, 1))
        encoded = tokenizer(first, second, truncation="longest_first", max_length=max_tokens)
        for number in range(len(some)):
            label = labels[start + number]
            rows.append(Row(inputs_of(encoded, number), IGNORED if label is None else label, start + number))
    return rows


class RowCollator:
    """Rows as one batch, padded on the right.

    Args:
        task: the name that the batch gives a model with several heads; None for a model with one.
    """

    def __init__(self, tokenizer: Any, task: str | None = None) -> None:
        self._fill = {"input_ids": tokenizer.pad_token_id, "token_type_ids": tokenizer.pad_token_type_id}
        self._task = task

    def __call__(self, rows: Sequence[Row]) -> dict[str, Any]:
        """int64 `input_ids`, `attention_mask`, perhaps `token_type_ids` (rows, tokens); `labels` (rows), (rows, tokens)
        or (rows, 2)."""
        batch: dict[str, Any] = {
            name: padded([row.inputs[name].tolist() for row in rows], self._fill[name]) for name in rows[0].inputs
        }
        batch["attention_mask"] = padded([[1] * len(row) for row in rows], 0)
        labels = [row.labels for row in rows]
        if isinstance(labels[0], np.ndarray):
            batch["labels"] = padded([one.tolist() for one in labels if isinstance(one, np.ndarray)], IGNORED)
        else:
            batch["labels"] = torch.tensor(labels, dtype=torch.int64)
        return batch if self._task is None else {**batch, "task": self._task}


def logits_of(outputs: Any, mask: Tensor) -> Tensor:
    """The scores of a model with any of the heads: (rows, labels), (rows, tokens, labels), (rows, 2, tokens).

    Padding cannot hold an answer; transformers' own loss counts it, and so depends on the batch.

    Args:
        mask: (rows, tokens) 0 for padding.
    """
    if "logits" in outputs:
        found: Tensor = outputs["logits"]
        return found.float()
    ends = torch.stack([outputs["start_logits"], outputs["end_logits"]], dim=1).float()
    return ends.masked_fill(mask[:, None] == 0, torch.finfo(ends.dtype).min)


def understanding_loss(logits: Tensor, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Cross-entropy in nats, the mean over the labelled items (texts, words, or firsts and lasts of answers) of the
    step, of all ranks and accumulated batches, so that the gradient does not depend on how a step is cut into batches.

    Args:
        num_items_in_batch: labelled items of the step.
    """
    total = functional.cross_entropy(logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORED, reduction="sum")
    count = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return total / torch.as_tensor(count, device=total.device).clamp(min=1)


@torch.inference_mode()
def say(model: nn.Module, collate: RowCollator, rows: Sequence[Row], batch_size: int, kind: str) -> list[Said]:
    """A model's scores for each row of a kind of task, in their order; rows of similar length are read together."""
    device = next(model.parameters()).device
    found: list[Said | None] = [None] * len(rows)
    for chosen in by_length([-len(row) for row in rows], batch_size):  # the shortest first
        batch = {
            name: value.to(device) if isinstance(value, Tensor) else value
            for name, value in collate([rows[number] for number in chosen]).items()
        }
        labels = batch.pop("labels")
        logits = logits_of(model(**batch), batch["attention_mask"])
        losses = functional.cross_entropy(
            logits.flatten(0, -2), labels.flatten(), ignore_index=IGNORED, reduction="none"
        ).view(len(chosen), -1)
        sums, counts = losses.sum(1).tolist(), (labels != IGNORED).view(len(chosen), -1).sum(1).tolist()
        values = logits.cpu().numpy()
        for place, number in enumerate(chosen):
            found[number] = Said(sums[place], counts[place], _own(values[place], rows[number], kind))
    return [one for one in found if one is not None]


def _own(scores: np.ndarray, row: Row, kind: str) -> np.ndarray:
    """The scores of a row without padding; of tags, those of its words alone."""
    if kind == TAGS:
        return scores[row.read[:, 1]].copy()
    return scores[:, : len(row)].copy() if kind == ANSWER else scores.copy()
