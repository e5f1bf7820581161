"""Simulated clicks: how often a person would have clicked one of the suggestions, and how much typing that saves.

The user model: a person wants to send the reference. They click the suggestion from which it can be made with the
fewest edits, if that takes at most a share (`edits`, half by default) of the characters of the reference; otherwise
they type it. A clicked suggestion saves the characters of the reference less the edits.

1. Texts are compared in NFC and lower case, each run of white space as one space, none at the ends.
2. Edits are characters inserted, deleted or replaced (Levenshtein 1966).
3. Of several suggestions that take equally few edits, the first is clicked.
4. An empty reference, or one of white space only, is skipped and counted.

`clicked` is the click-through rate of an interface in which everybody wants to send what was sent, and accepts no other
reply: a lower bound under this model, not a forecast. The keystroke savings rate is that of word prediction (Trnka and
McCoy 2008, "Evaluating Word Prediction: Framing Keystroke Savings"), with edits in place of key presses; the share of
edits was chosen here.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.signature import Reference, as_lists, check_suggestions, signature

EDITS = 0.5  # of the characters of the reference


@dataclass(frozen=True, eq=False)
class ClickScores:
    """Simulated clicks of the n examples with a reference; statistics stay apart from their aggregation.

    Attributes:
        clicked: (n,) 1 where a suggestion is clicked, else 0.
        place: (n,) the index of that suggestion; -1 for none.
        saved: (n,) characters that the click saves; 0 for none.
        length: (n,) characters of the reference.
        kept: (n,) index of the example in the input.
        skipped: examples left out, by reason: `reference_empty`.
    """

    clicked: NDArray[np.int64]
    place: NDArray[np.int64]
    saved: NDArray[np.int64]
    length: NDArray[np.int64]
    kept: NDArray[np.int64]
    skipped: dict[str, int]
    signature: str


def score_clicks(
    predictions: Sequence[Sequence[str]], references: Sequence[Reference], edits: float = EDITS
) -> ClickScores:
    """Simulate one person for each example.

    Args:
        predictions: for each example its suggestions, in the order in which they are shown.
        references: for each example the reply that was sent; of several, that from which the click saves most.
        edits: the share of a reference's characters that the person is ready to edit, 0 to 1.

    Raises:
        ValueError: an entry has the wrong type, or `edits` is out of range.

    >>> scores = score_clicks([["No.", "Yes, sure!"], ["Thanks!"]], ["yes sure", "See you at noon"])
    >>> scores.clicked.tolist(), scores.place.tolist(), scores.saved.tolist()
    ([1, 0], [1, -1], [6, 0])
    """
    check_suggestions(predictions, references)
    if not 0 <= edits <= 1:
        raise ValueError(f"edits={edits:g}: expected a share from 0 to 1.")
    rows, kept = [], []
    for index, (suggestions, given) in enumerate(zip(predictions, as_lists(references), strict=True)):
        wanted = [text for text in map(_plain, given) if text]
        if wanted:
            shown = [_plain(text) for text in suggestions]
            rows.append(max((_click(shown, text, edits) for text in wanted), key=lambda row: (row[1], -row[2])))
            kept.append(index)
    place, saved, length = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    nbest = max(map(len, predictions), default=0)
    return ClickScores(
        (place >= 0).astype(np.int64), place, saved, length, np.array(kept, dtype=np.int64),
        {"reference_empty": len(predictions) - len(kept)},
        signature("simulated_clicks", nbest=nbest, edits=f"levenshtein<={edits:g}", case="lower", norm="nfc"),
    )  # fmt: skip


def aggregate(scores: ClickScores) -> dict[str, float]:
    """Average the clicks over the examples, and the savings over all characters.

    Returns:
        `n` (int), `clicked`, `first` (the first suggestion is clicked), `exact` (it is sent as it stands), and `saved`,
        the share of all characters that clicks save; each 0 to 1.

    Raises:
        ValueError: no example has a reference.
    """
    if not len(scores.kept):
        raise ValueError(f"No example has a reference to be typed; skipped: {scores.skipped}.")
    return {
        "n": len(scores.kept),
        "clicked": float(scores.clicked.mean()),
        "first": float((scores.place == 0).mean()),
        "exact": float((scores.saved == scores.length).mean()),
        "saved": float(scores.saved.sum() / scores.length.sum()),
    }


def edit_distance(a: str, b: str) -> int:
    """Characters to insert, delete or replace to turn one text into the other (bit vectors: Hyyrö 2003, "A Bit-Vector
    Algorithm for Computing Levenshtein and Damerau Edit Distances").

    >>> edit_distance("kitten", "sitting"), edit_distance("", "no")
    (3, 2)
    """
    if not a:
        return len(b)
    places: dict[str, int] = {}
    for number, character in enumerate(a):
        places[character] = places.get(character, 0) | 1 << number
    whole, last = (1 << len(a)) - 1, 1 << len(a) - 1
    more, fewer, distance = whole, 0, len(a)
    for character in b:
        equal = places.get(character, 0)
        down = equal | fewer
        across = (((equal & more) + more) ^ more) | equal
        up, back = fewer | ~(across | more) & whole, more & across
        distance += bool(up & last) - bool(back & last)
        up, back = up << 1 | 1, back << 1
        more, fewer = (back | ~(down | up)) & whole, up & down & whole
    return distance


def _click(shown: Sequence[str], wanted: str, edits: float) -> tuple[int, int, int]:
    """Place of the clicked suggestion (-1: none), characters saved, characters wanted."""
    found = [edit_distance(wanted, text) for text in shown]
    least = min(found, default=len(wanted) + 1)
    if least > edits * len(wanted):
        return -1, 0, len(wanted)
    return found.index(least), len(wanted) - least, len(wanted)


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).lower().split())
