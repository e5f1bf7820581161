"""Questions about texts as rows: windows lose no character of an answer, and spans are decoded exactly."""

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.models.understanding.text_rows import (
    MAX_ANSWER_TOKENS,
    Asked,
    Said,
    best_span,
    read_answers,
    span_rows,
)

TOKENIZER = train_tokenizer(["the river rose in 1907", "who crossed the bridge", "12.5 % of it"] * 9, 60)
PIECES = ["river", " ", "ﬁ", "1907", "Ａ", ".", "é", "e\u0301", "中", "文", "bridge ", "\u200b", "I\u0307"]
TEXT = st.lists(st.sampled_from(PIECES), min_size=1, max_size=60).map("".join)


def covered(text: str, span: tuple[int, int]) -> str:
    return text[span[0] : span[1]].strip()


@given(text=TEXT, question=TEXT, places=st.tuples(st.integers(0, 200), st.integers(1, 12)), room=st.integers(24, 60))
def test_the_labelled_tokens_hold_all_characters_of_the_answer(
    text: str, question: str, places: tuple[int, int], room: int
) -> None:
    start = places[0] % len(text)
    answer = (start, min(len(text), start + places[1]))
    asked = Asked(question, text, answer)
    rows = span_rows(TOKENIZER, [asked], room, room)
    assert all(len(row) <= room for row in rows)
    tokens = [tuple(place) for row in rows for place in row.read.tolist() if place[1] > place[0] >= 0]
    seen = {character for begin, end in tokens for character in range(begin, end)}
    assume(set(range(*answer)) <= seen)  # the tokenizer leaves out some white space, and marks without a base
    overlapping = {place for place in tokens if place[0] < answer[1] and place[1] > answer[0]}
    found = []
    for row in rows:
        assert isinstance(row.labels, np.ndarray)
        first, last = row.labels.tolist()
        if last:
            begin, end = int(row.read[first][0]), int(row.read[last][1])
            assert begin <= answer[0]
            assert end >= answer[1]
            found.append(row)
    if len(overlapping) <= 4:  # fewer than two windows share
        assert found, "some window has the whole answer"
    best = found[0] if found else None
    if best is not None and isinstance(best.labels, np.ndarray):
        scores = [Said(0.0, 0, np.zeros((2, len(row)))) for row in rows]
        place = next(number for number, row in enumerate(rows) if row is best)
        scores[place].scores[0, best.labels[0]] = scores[place].scores[1, best.labels[1]] = 9.0
        if best.labels[1] - best.labels[0] < MAX_ANSWER_TOKENS:
            assert covered(text, answer) in read_answers(rows, scores, [asked])[0]


@given(text=TEXT, room=st.integers(24, 60), overlap=st.integers(0, 40))
def test_windows_leave_no_token_of_the_text_out(text: str, room: int, overlap: int) -> None:
    rows = span_rows(TOKENIZER, [Asked("who?", text)], room, overlap)
    whole = TOKENIZER(text, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    assert {tuple(place) for row in rows for place in row.read.tolist() if place[0] >= 0} == {*map(tuple, whole)}
    assert all(label == IGNORED for row in rows for label in np.atleast_1d(row.labels))


@given(
    scores=st.lists(st.tuples(st.integers(-9, 9), st.integers(-9, 9)), min_size=1, max_size=12),
    special=st.sets(st.integers(0, 11)),
    longest=st.integers(1, 5),
)
def test_the_best_span_is_that_of_trying_all(scores: list[tuple[int, int]], special: set[int], longest: int) -> None:
    size = len(scores)
    places = np.array([(-1, -1) if n in special else (3 * n, 3 * n + 2) for n in range(size)])
    text = [n for n in range(size) if n not in special]
    found = best_span(np.array(scores, dtype=np.float32).T, places, longest)
    spans = [(a, b) for i, a in enumerate(text) for b in text[i : i + longest]]
    if not spans:
        assert found is None
        return
    first, last = max(spans, key=lambda span: (scores[span[0]][0] + scores[span[1]][1], -span[0], -span[1]))
    assert found == (scores[first][0] + scores[last][1], 3 * first, 3 * last + 2)


def test_a_long_question_leaves_room_for_the_text() -> None:
    asked = Asked("who crossed the bridge " * 40, "the river rose in 1907 " * 9, (4, 9))
    rows = span_rows(TOKENIZER, [asked], 32, 128)
    assert all(len(row) <= 32 for row in rows)
    assert any(np.asarray(row.labels).any() for row in rows)
