"""Words and their tags as rows: the tag of a word is that of its first piece (Devlin et al. 2019, section 5.3).

A sentence that is longer than a row is read in windows that overlap. Each word's tag is learned and predicted in one of
them, that with the most context around its first piece, so that no word is cut off. A word of which the tokenizer makes
no piece, such as a control character, is in no row: whoever calls gives it a tag.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.understanding.text_rows import Row, Said, chunks, inputs_of, windows_of


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
