"""Questions about a text as rows, and the answer in the text (Devlin et al. 2019, section 4.2; Rajpurkar et al. 2016).

A text that is longer than a row is read in windows that overlap. Tokens keep their place in the text, so that an answer
is always a piece of the text itself, with the characters that the tokenizer changes or drops.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.understanding.text_rows import Row, Said, chunks, inputs_of, windows_of

QUESTION_TOKENS = 64  # longer questions are cut, as BERT's run_squad.py does
MAX_ANSWER_TOKENS = 30  # the longest answer that is predicted, as there


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
            places = [_places(encoded, number) for number in numbers]
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


def _places(encoded: Any, number: int) -> np.ndarray:
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
