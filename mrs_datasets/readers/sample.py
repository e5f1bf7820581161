"""The embedded sample: phrase books, one per language, written for this project (`mrs_datasets/phrase_books/`)."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import MAX_RESPONSES
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.pairs.pairs import split_pairs
from mrs_datasets.synthetic.phrase_books import read_phrase_book
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import LANGUAGES

PACKAGE = Path(__file__).resolve().parent.parent
BOOKS = PACKAGE / "phrase_books"
SAMPLE_SOURCE = "sample"  # its name for users
SAMPLE = PACKAGE / "sample"  # the prepared folder that ships with the package


def read_phrase_books(
    books: Path, report: Report, min_reply_count: int = 1, max_responses: int = MAX_RESPONSES
) -> Chunks:
    """Read every phrase book of the folder and split its pairs like those of a folder of `LANG.tsv` files.

    `LANG.txt` or parts of it, `LANG_a.txt`, `LANG_b.txt`, in the order of their names.
    """
    for language in LANGUAGES:
        parts = sorted(books.glob(f"{language}.txt")) + sorted(books.glob(f"{language}_*.txt"))
        exchanges = [exchange for part in parts for exchange in read_phrase_book(part)]
        messages = Counter(message for exchange in exchanges for message in exchange.messages)
        repeated = [message for message, count in messages.items() if count > 1]
        if repeated or not exchanges:
            found = f"{repeated[0]!r} in two parts" if repeated else "no book"
            raise InputError(f"{books}: a message of {language} must be in one exchange only; found {found}.")
        pairs = (pair for exchange in exchanges for pair in exchange.pairs())
        yield from split_pairs(language, pairs, report, min_reply_count, max_responses)
