"""Simulated clicks: the edit distance, and who clicks what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics.clicks import aggregate, edit_distance, score_clicks

pytestmark = pytest.mark.hypothesis
TEXTS = st.text(st.sampled_from("aábc 日😀"), max_size=80)


def by_table(a: str, b: str) -> int:
    """The textbook's table, row by row."""
    row = list(range(len(b) + 1))
    for number, x in enumerate(a, 1):
        below = [number]
        for place, y in enumerate(b, 1):
            below.append(min(row[place] + 1, below[-1] + 1, row[place - 1] + (x != y)))
        row = below
    return row[-1]


@given(TEXTS, TEXTS)
def test_the_distance_is_that_of_the_table(a: str, b: str) -> None:
    assert edit_distance(a, b) == by_table(a, b) == edit_distance(b, a)


@given(st.lists(st.lists(TEXTS, max_size=4), min_size=1, max_size=4), TEXTS)
def test_more_suggestions_never_save_less(rows: list[list[str]], reply: str) -> None:
    scores, fewer = (score_clicks(some, [reply] * len(rows)) for some in (rows, [row[:1] for row in rows]))
    assert (scores.saved >= fewer.saved).all()
    assert (scores.clicked >= fewer.clicked).all()
    assert (2 * (scores.length - scores.saved) <= scores.length)[scores.clicked == 1].all()
    assert ((scores.saved >= 0) & (scores.saved <= scores.length)).all()


def test_who_clicks_what() -> None:
    references = ["Yes, sure", "yes", "abcd", ["no", "Caf\u0065\u0301 at  noon"]]
    suggestions = [["no", "YES,  sure ", "yes, sure"], ["yet", "yes!"], ["abxy", "abxyz"], ["café at noon!"]]
    scores = score_clicks(suggestions, references)
    assert scores.place.tolist() == [1, 0, 0, 0], "the first of equals"
    assert scores.saved.tolist() == [9, 2, 2, 11]
    assert score_clicks([["abxyz"]], ["abcd"]).clicked.tolist() == [0], "more than half of it would be edited"
    assert score_clicks([["abxyz"]], ["abcd"], edits=0.75).clicked.tolist() == [1]
    assert score_clicks([[]], ["abcd"], edits=1).clicked.tolist() == [0]


def test_what_it_refuses() -> None:
    with pytest.raises(ValueError, match="expected a share from 0 to 1"):
        score_clicks([["a"]], ["a"], edits=1.5)
    with pytest.raises(ValueError, match="No example has a reference"):
        aggregate(score_clicks([["a"]], [" "]))
