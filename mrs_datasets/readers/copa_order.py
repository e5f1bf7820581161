"""English COPA put into XCOPA's order by its texts, since `idx` joins the languages and some copies renumber it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

Row = dict[str, Any]
WORD = re.compile(r"\w+")
# Chosen on XCOPA's translations to English. With all ten, or any one, COPA's 100 validation rows are found, in order or
# shuffled, with at most 5 in doubt; rows of another split leave 79 of 100 or more in doubt. A random half, with one
# translation that lost a text, has up to 2 of 50 wrong, and those are in doubt.
OWN_IDX = 0.1  # bonus of a row's own idx: otherwise a weak translation would move rows of a copy in order
CLEAR = 1.5  # a match is in doubt unless it is this many times as similar as the next best idx ...
LOWEST = 0.1  # ... and at least this similar, on the scale of the cosine
MAX_IN_DOUBT = 0.25  # if more rows are in doubt, it is not a copy of this split


class Joined(NamedTuple):
    """English rows with XCOPA's idx.

    Attributes:
        rows: the rows unchanged if none moved; otherwise copies with the idx that was found, sorted by it.
        moved: how many rows have a new idx.
        in_doubt: the (new) idx of rows whose match is not clear, ascending; often a loose translation, or a row of
            another data set.
    """

    rows: list[Row]
    moved: int
    in_doubt: list[int]


def joined_by_text(english: list[Row], translations: list[list[Row]], where: str = "English COPA") -> Joined:
    """Find the idx of every English row by comparing texts with machine translations to English of the same split.

    Each row gets a different idx, so that the sum of all matches' similarities is highest. Similarity is the cosine of
    the TF-IDF weighted sets of words, averaged over the languages; a word counts once for the row and once for the
    premise or choice that contains it.

    Args:
        english: rows of one split of English COPA with `premise`, `choice1`, `choice2`, `idx`; some may be missing.
        translations: the rows of the same split in XCOPA's `data-gmt`, one list per language, with the same columns.
        where: source named in errors, preferably a file.

    Raises:
        InputError: no translations, fewer than English rows, or more than a quarter of the rows without a clear match.
    """
    from scipy.optimize import linear_sum_assignment

    numbers = sorted({row["idx"] for rows in translations for row in rows})
    if not english:
        return Joined(english, 0, [])
    if len(english) > len(numbers):
        raise InputError(
            f"{where}: {len(english)} rows cannot be found among {len(numbers)} translated examples; expected the "
            "same split of COPA, whole or in part."
        )
    similarity = _similarities(english, translations, numbers)
    own, idx = np.array([row["idx"] for row in english]), np.array(numbers)
    found = linear_sum_assignment(similarity + OWN_IDX * (own[:, None] == idx), maximize=True)[1]
    match = similarity[np.arange(len(found)), found]
    # Examples with equal texts are equally good matches and raise no doubt.
    others = np.where(np.isclose(similarity, match[:, None], rtol=1e-9, atol=0), 0, similarity).max(axis=1)
    in_doubt = (match < LOWEST) | (match < CLEAR * others)
    if in_doubt.mean() > MAX_IN_DOUBT:
        some = ", ".join(str(number) for number in own[in_doubt][:3])
        raise InputError(
            f"{where}: {in_doubt.sum()} of {len(english)} rows (idx {some}) have no clear match among this "
            "split's translations; expected the same split of COPA."
        )
    moved = int((idx[found] != own).sum())
    if moved:
        pairs = zip(english, idx[found].tolist(), strict=True)
        english = sorted(({**row, "idx": number} for row, number in pairs), key=lambda row: row["idx"])
    return Joined(english, moved, sorted(idx[found][in_doubt].tolist()))


def labels_differ(english: list[Row], original: list[Row]) -> int:
    """How many shared idx have different labels; in the same order, XCOPA's labels equal COPA's (section 2)."""
    labels = {row["idx"]: row["label"] for row in original}
    return sum(labels.get(row["idx"], row["label"]) != row["label"] for row in english)


def _similarities(english: list[Row], translations: list[list[Row]], numbers: list[int]) -> NDArray[np.float64]:
    """Similarities in [0, 1], one row per English row, one column per idx of `numbers`."""
    from scipy.sparse import csr_matrix

    translated = [row for rows in translations for row in rows]
    vectors = _tf_idf([_words(row) for row in [*english, *translated]])
    column = np.searchsorted(numbers, [row["idx"] for row in translated])
    weights = 1 / np.bincount(column)[column]  # if a language lacks an idx, average over the others
    mean = csr_matrix((weights, (column, np.arange(len(translated)))), (len(numbers), len(translated)))
    product: NDArray[np.float64] = (vectors[: len(english)] @ (mean @ vectors[len(english) :]).T).toarray()
    return product


def _words(row: Row) -> set[tuple[str, str]]:
    texts = ("premise", "choice1", "choice2")
    words = {(name, word) for name in texts for word in WORD.findall(row[name].casefold())}
    return words | {("", word) for _, word in words}


def _tf_idf(documents: list[set[tuple[str, str]]]) -> csr_matrix:
    """One row of length 1 per document (zeros if it is empty), one column per word."""
    from scipy.sparse import csr_matrix

    columns: dict[tuple[str, str], int] = {}
    column = np.array([columns.setdefault(word, len(columns)) for words in documents for word in words], np.intp)
    row = np.repeat(np.arange(len(documents)), [len(words) for words in documents])
    frequency = np.bincount(column, minlength=len(columns))
    values = np.log((1 + len(documents)) / frequency)[column]
    lengths = np.sqrt(np.bincount(row, values**2, len(documents)))
    return csr_matrix((values / lengths[row], (row, column)), (len(documents), len(columns)))
