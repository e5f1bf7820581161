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

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import NamedTuple

from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import MAX_RESPONSES
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.pairs.pairs import split_pairs
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.languages import LANGUAGES

PACKAGE = Path(__file__).resolve().parent.parent
BOOKS = PACKAGE / "phrase_books"
SAMPLE_SOURCE = "sample"  # its name for users
SAMPLE = PACKAGE / "sample"  # the prepared folder that ships with the package
MIN_REPLIES, MAX_REPLIES = 2, 4


class Exchange(NamedTuple):
    """Messages that ask for the same kind of answer, and the replies that fit all of them."""

    messages: tuple[str, ...]
    replies: tuple[str, ...]


def read_phrase_books(
    books: Path, report: Report, min_reply_count: int = 1, max_responses: int = MAX_RESPONSES
) -> Chunks:
    """Read every phrase book of a folder, and split its pairs like those of a folder of `LANG.tsv` files."""
    for language in LANGUAGES:
        exchanges = exchanges_of(language, books)
        messages = Counter(message for exchange in exchanges for message in exchange.messages)
        repeated = [message for message, count in messages.items() if count > 1]
        if repeated or not exchanges:
            found = f"{repeated[0]!r} in two parts" if repeated else "no book"
            raise InputError(f"{books}: a message of {language} must be in one exchange only; found {found}.")
        pairs = ((message, reply) for one in exchanges for message in one.messages for reply in one.replies)
        yield from split_pairs(language, pairs, report, min_reply_count, max_responses)


def exchanges_of(language: str, books: Path = BOOKS) -> list[Exchange]:
    """The exchanges of all parts of a language's phrase book, in the order of their names."""
    parts = [*books.glob(f"{language}.txt"), *sorted(books.glob(f"{language}_*.txt"))]
    return [exchange for part in parts for exchange in read_phrase_book(part)]


def read_phrase_book(path: Path) -> list[Exchange]:
    """Read and check one phrase book."""
    exchanges: list[Exchange] = []
    seen: dict[str, int] = {}
    topic, start = False, 0
    messages: list[str] = []
    replies: list[str] = []
    for number, raw in [*read_lines(path), (0, "")]:
        line = raw.strip()
        mark, text = line[:1], line[1:].strip()
        if not line or mark == "#":
            if messages or replies:
                where = f"{path}, line {start}"
                if not messages or not topic:
                    raise InputError(
                        f"{where}: an exchange needs a topic above it and at least one message (`> text`)."
                    )
                if not MIN_REPLIES <= len(replies) == len(set(replies)) <= MAX_REPLIES:
                    raise InputError(
                        f"{where}: an exchange needs {MIN_REPLIES} to {MAX_REPLIES} different replies, found {replies}."
                    )
                exchanges.append(Exchange(tuple(messages), tuple(replies)))
                messages, replies = [], []
            topic = topic or (mark == "#" and bool(text))
            continue
        if mark not in "><" or not text or "\t" in text:
            raise InputError(f"{path}, line {number}: expected `# topic`, `> message` or `< reply`, found {line!r}.")
        start = start if messages or replies else number
        if mark == ">":
            if seen.setdefault(text, number) != number:
                raise InputError(f"{path}, line {number}: the message {text!r} is in line {seen[text]} already.")
            messages.append(text)
        else:
            replies.append(text)
    return exchanges
