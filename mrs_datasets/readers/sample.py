"""The embedded sample, and the phrase books that it is built from (`mrs_datasets/phrase_books/`).

A phrase book is a UTF-8 text file in one language, `LANG.txt`, or several parts, `LANG_a.txt` and so on. `# Topic`
opens a topic; below it are exchanges, separated by empty lines. In an exchange, every line `> text` is a message and
every line `< text` is a reply, and each reply answers each message of its exchange:

    # Greetings

    > Good morning! How are you?
    > Hi, how is it going?
    < Very well, and you?
    < Can't complain, thanks.

An exchange has 2 to 4 different replies (so that every message of the sample has 2 to 4 references). A message is in
one exchange only; a reply may be in any number of exchanges.
"""

import re
from pathlib import Path
from typing import NamedTuple

from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.pairs.pairs import split_pairs
from mrs_suggest.common.text.languages import LANGUAGES

PACKAGE = Path(__file__).resolve().parent.parent
BOOKS = PACKAGE / "phrase_books"
SAMPLE_SOURCE = "sample"  # its name for users
SAMPLE = PACKAGE / "sample"  # the prepared folder that ships with the package


class Exchange(NamedTuple):
    """Messages that ask for the same kind of answer, and the replies that fit all of them."""

    messages: tuple[str, ...]
    replies: tuple[str, ...]


def read_phrase_books(books: Path, report: Report, min_reply_count: int, max_responses: int) -> Chunks:
    """Read every phrase book of a folder, and split its pairs like those of a folder of `LANG.tsv` files."""
    for language in LANGUAGES:
        exchanges = exchanges_of(language, books)
        pairs = ((message, reply) for one in exchanges for message in one.messages for reply in one.replies)
        yield from split_pairs(language, pairs, report, min_reply_count, max_responses)


def exchanges_of(language: str, books: Path = BOOKS) -> list[Exchange]:
    """The exchanges of all parts of a language's phrase book, in the order of their names; tests check that the parts
    keep to the rules above."""
    parts = [*books.glob(f"{language}.txt"), *sorted(books.glob(f"{language}_*.txt"))]
    text = "\n\n".join(part.read_text(encoding="utf-8") for part in parts)
    exchanges: list[Exchange] = []
    for block in re.split(r"\n\s*\n|^#.*$", text, flags=re.MULTILINE):
        lines = [line.strip() for line in block.splitlines()]
        messages, replies = (tuple(line[1:].strip() for line in lines if line[:1] == mark) for mark in "><")
        if messages:
            exchanges.append(Exchange(messages, replies))
    return exchanges
