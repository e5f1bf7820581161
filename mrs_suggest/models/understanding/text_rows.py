"""Rows of token ids for understanding tasks, their batches, and a model's scores for each row.

Four kinds of tasks share them: a `label` of a text or pair, the relevance of a `page`, the `tags` of words, and an
`answer` in a text.
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
QUESTION_TOKENS = 64  # longer questions are cut, as BERT's run_squad.py does
MAX_ANSWER_TOKENS = 30  # the longest answer that is predicted, as there


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


# --- tags of words: that of a word is its first piece's (Devlin et al. 2019, section 5.3)
#
# A longer sentence is read in windows that overlap. Each word's tag is learned and predicted in one of them, that with
# the most context around its first piece. A word of which the tokenizer makes no piece is in no row.


def tag_rows(
    tokenizer: Any, sentences: Sequence[Sequence[str]], labels: Sequence[Sequence[int]], max_tokens: int, overlap: int
) -> list[Row]:
    """A row of at most `max_tokens` for each sentence, or for each window of a longer one.

    Args:
        labels: of each word; `IGNORED` if unknown.
        overlap: pieces that two windows share, at most half of those that fit.
    """
    rows = []
    overlap = min(overlap, (max_tokens - tokenizer.num_special_tokens_to_add(pair=False)) // 2)
    for start, some in chunks(sentences):
        encoded = tokenizer(
            [list(words) for words in some], is_split_into_words=True, truncation=True, max_length=max_tokens,
            stride=overlap, return_overflowing_tokens=True,
        )  # fmt: skip
        for sentence, numbers in windows_of(encoded).items():
            words = [encoded.word_ids(number) for number in numbers]
            for number, read in zip(numbers, _places(words, overlap), strict=True):
                inputs = inputs_of(encoded, number)
                own = np.full(len(inputs["input_ids"]), IGNORED, np.int32)
                for word, token in read:
                    own[token] = labels[start + sentence][word]
                rows.append(Row(inputs, own, start + sentence, np.asarray(read, np.int32).reshape(-1, 2)))
    return rows


def _places(windows: Sequence[Sequence[int | None]], overlap: int) -> list[list[tuple[int, int]]]:
    """Of each window, the words whose tag it gives and the tokens of their first pieces.

    Args:
        windows: the word of each token, None of special ones.
    """
    first: dict[int, int] = {}  # word -> its first piece in the sentence
    spans: list[tuple[int, int, int]] = []  # of each window: its first and last piece in the sentence, and its token
    before = 0
    for words in windows:
        own = [token for token, word in enumerate(words) if word is not None]
        if spans:
            before = spans[-1][1] - overlap
        spans.append((before, before + len(own), own[0] if own else 0))
        for place, token in enumerate(own):
            word = words[token]
            assert word is not None
            first.setdefault(word, before + place)
    found: list[list[tuple[int, int]]] = [[] for _ in windows]
    for word, piece in first.items():
        room = [_room(piece, begin, end, spans[-1][1]) for begin, end, _ in spans]
        best = int(np.argmax(room))
        found[best].append((word, piece - spans[best][0] + spans[best][2]))
    return found


def _room(piece: int, begin: int, end: int, pieces: int) -> float:
    """Pieces on the side of a window where it has fewer; the sentence's own ends do not limit it."""
    if not begin <= piece < end:
        return -1.0
    left = float("inf") if begin == 0 else piece - begin
    return min(left, float("inf") if end == pieces else end - 1 - piece)


def read_tags(
    rows: Sequence[Row], said: Sequence[Said], sentences: Sequence[Sequence[str]], tags: Sequence[str], rest: str
) -> list[list[str]]:
    """The tag of each word, of `tags` the one with the highest score; `rest` for words without a piece."""
    found = [[rest] * len(words) for words in sentences]
    for row, one in zip(rows, said, strict=True):
        best = one.scores.argmax(-1).tolist() if len(row.read) else ()
        for (word, _), number in zip(row.read.tolist(), best, strict=True):
            found[row.example][word] = tags[number]
    return found


# --- answers in texts (Devlin et al. 2019, section 4.2; Rajpurkar et al. 2016)
#
# A longer text is read in windows that overlap. Tokens keep their place in the text, so that an answer is always a
# piece of the text itself, with the characters that the tokenizer changes or drops.


@dataclass(frozen=True)
class Asked:
    """A question about a text.

    Attributes:
        answer: its first and one past its last character in the text; None if unknown.
    """

    question: str
    text: str
    answer: tuple[int, int] | None = None


def span_rows(tokenizer: Any, asked: Sequence[Asked], max_tokens: int, overlap: int) -> list[Row]:
    """A row of at most `max_tokens` for each question, or for each window of a longer text.

    A window without the whole answer is labelled with the row's first token, as in BERT's run_squad.py.

    Args:
        overlap: tokens of the text that two windows share, at most half of those that fit.
    """
    rows = []
    most = min(QUESTION_TOKENS, max_tokens // 2)
    room = max_tokens - most - tokenizer.num_special_tokens_to_add(pair=True)
    shared = min(overlap, room // 2)  # the same for all, so that rows do not depend on their neighbours
    for start, some in chunks(asked):
        questions = _cut(tokenizer, [one.question for one in some], most)
        encoded = tokenizer(
            questions, [one.text for one in some], truncation="only_second", max_length=max_tokens,
            stride=shared, return_overflowing_tokens=True, return_offsets_mapping=True,
        )  # fmt: skip
        for example, numbers in windows_of(encoded).items():
            places = [_characters(encoded, number) for number in numbers]
            labels = _labels(places, some[example].answer, shared)
            for number, read, own in zip(numbers, places, labels, strict=True):
                rows.append(Row(inputs_of(encoded, number), own, start + example, read))
    return rows


def _cut(tokenizer: Any, questions: Sequence[str], most: int) -> list[str]:
    """The questions without what is beyond `most` tokens."""
    encoded = tokenizer(
        list(questions), add_special_tokens=False, truncation=True, max_length=most, return_offsets_mapping=True
    )
    kept = []
    for question, tokens in zip(questions, encoded["offset_mapping"], strict=True):
        kept.append(question[: tokens[-1][1]] if len(tokens) == most else question)
    return kept


def _characters(encoded: Any, number: int) -> np.ndarray:
    """(tokens, 2) first and one past the last character of each token of the text; -1 of all others."""
    parts = encoded.sequence_ids(number)
    offsets = np.asarray(encoded["offset_mapping"][number], np.int32).reshape(-1, 2)
    offsets[[part != 1 for part in parts]] = -1
    return offsets


def _labels(windows: Sequence[np.ndarray], answer: tuple[int, int] | None, overlap: int) -> list[np.ndarray]:
    """First and last token of the answer in each window."""
    if answer is None:
        return [np.full(2, IGNORED, np.int32) for _ in windows]
    texts = [np.flatnonzero(window[:, 0] >= 0) for window in windows]
    spans: list[tuple[int, int]] = []  # of each window: its tokens in the text
    whole: list[np.ndarray] = []
    for window, text in zip(windows, texts, strict=True):
        begin = spans[-1][1] - overlap if spans else 0
        spans.append((begin, begin + len(text)))
        whole.append(window[text[overlap if len(spans) > 1 else 0 :]])
    tokens = np.concatenate(whole)
    inside = np.flatnonzero((tokens[:, 0] < answer[1]) & (tokens[:, 1] > answer[0]) & (tokens[:, 1] > tokens[:, 0]))
    found = []
    for text, (begin, end) in zip(texts, spans, strict=True):
        fits = len(inside) and begin <= inside[0] and inside[-1] < end
        found.append(text[inside[[0, -1]] - begin].astype(np.int32) if fits else np.zeros(2, np.int32))
    return found


def best_span(
    scores: np.ndarray, places: np.ndarray, longest: int = MAX_ANSWER_TOKENS
) -> tuple[float, int, int] | None:
    """The span of at most `longest` tokens with the highest sum of its first and last token's scores, the first of
    equal ones: the sum, and its first and one past its last character; None if the row has no token of the text.

    Args:
        scores: (2, tokens) of first and last.
        places: (tokens, 2) see `Row.read`.
    """
    text = np.flatnonzero((places[:, 0] >= 0) & (places[:, 1] > places[:, 0]))
    if not len(text):
        return None
    sums = scores[0, text].astype(np.float64)[:, None] + scores[1, text].astype(np.float64)[None, :]
    steps = np.arange(len(text))[None, :] - np.arange(len(text))[:, None]
    sums[(steps < 0) | (steps >= longest)] = -np.inf
    first, last = np.unravel_index(int(np.argmax(sums)), sums.shape)
    return float(sums[first, last]), int(places[text[first], 0]), int(places[text[last], 1])


def read_answers(rows: Sequence[Row], said: Sequence[Said], asked: Sequence[Asked]) -> list[str]:
    """The answer to each question, from the window whose best span has the highest score; empty for an empty text."""
    best: list[tuple[float, int, int] | None] = [None] * len(asked)
    for row, one in zip(rows, said, strict=True):
        found, before = best_span(one.scores, row.read), best[row.example]
        if found is not None and (before is None or found[0] > before[0]):
            best[row.example] = found
    return [
        "" if one is None else question.text[one[1] : one[2]].strip() for one, question in zip(best, asked, strict=True)
    ]
