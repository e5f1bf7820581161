"""Words and tags as rows: each word once, at its first piece, whatever the length of the sentence."""

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.models.understanding.text_rows import Said, read_tags, tag_rows

TOKENIZER = train_tokenizer(["rain falls on the river bank", "the running dogs rained", "12.5 % of it"] * 9, 60)
WORDS = st.lists(
    st.one_of(
        st.sampled_from(
            ["rain", "running", "bank", "U.S.", "12.5%", "dogs", "\u0301", "\u200b", " ", "\ufe0f", "ñandú"]
        ),
        st.text(min_size=1, max_size=6),
    ),
    min_size=1,
    max_size=40,
)


def pieces(words: list[str]) -> dict[int, int]:
    """Word -> the token id of its first piece; words without a piece are missing."""
    encoded: Any = TOKENIZER(words, is_split_into_words=True, add_special_tokens=False)
    found: dict[int, int] = {}
    for token, word in zip(encoded["input_ids"], encoded.word_ids(), strict=True):
        found.setdefault(word, token)
    return found


@settings(max_examples=40)
@given(sentences=st.lists(WORDS, min_size=1, max_size=4), room=st.integers(16, 40), overlap=st.integers(0, 40))
def test_each_word_is_read_once_at_its_first_piece(sentences: list[list[str]], room: int, overlap: int) -> None:
    labels = [list(range(len(words))) for words in sentences]
    rows = tag_rows(TOKENIZER, sentences, labels, room, overlap)
    read: dict[tuple[int, int], int] = {}
    for row in rows:
        assert len(row) <= room
        assert isinstance(row.labels, np.ndarray)
        assert len(row.labels) == len(row)
        for word, token in row.read.tolist():
            assert (row.example, word) not in read, "each word in one window"
            read[row.example, word] = int(row.inputs["input_ids"][token])
            assert row.labels[token] == word
        assert np.count_nonzero(row.labels != IGNORED) == len(row.read), "continuations are not labelled"
    assert read == {(n, word): token for n, words in enumerate(sentences) for word, token in pieces(words).items()}


@given(words=WORDS, room=st.integers(16, 40), overlap=st.integers(0, 40))
def test_what_is_said_of_the_pieces_comes_back_to_the_words(words: list[str], room: int, overlap: int) -> None:
    tags = [f"T{number}" for number in range(len(words))]
    rows = tag_rows(TOKENIZER, [words], [list(range(len(words)))], room, overlap)
    said = [Said(0.0, 0, np.eye(len(words))[row.read[:, 0]]) for row in rows]
    own = pieces(words)
    expected = [tag if word in own else "O" for word, tag in enumerate(tags)]
    assert read_tags(rows, said, [words], tags, "O") == [expected]
