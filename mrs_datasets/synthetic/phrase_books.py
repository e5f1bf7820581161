"""Phrase books: the readable source of the embedded sample.

A phrase book is a UTF-8 text file, one per language. `# Topic` opens a topic; below it are exchanges, separated by
empty lines. In an exchange, every line `> text` is a message and every line `< text` is a reply, and each reply
answers each message of its exchange:

    # Greetings

    > Good morning! How are you?
    > Hi, how is it going?
    < Very well, and you?
    < Can't complain, thanks.

An exchange has 2 to 4 different replies (so that every message of the sample has 2 to 4 references), a message is
in one exchange only, and a reply may be in any number of exchanges.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines

MIN_REPLIES, MAX_REPLIES = 2, 4


@dataclass(frozen=True)
class Exchange:
    """Messages that ask for the same kind of answer, and the replies that fit all of them."""

    topic: str
    messages: tuple[str, ...]
    replies: tuple[str, ...]
    line: int

    def pairs(self) -> Iterator[tuple[str, str]]:
        for message in self.messages:
            for reply in self.replies:
                yield message, reply


def read_phrase_book(path: Path) -> list[Exchange]:
    """Read and check one phrase book.

    Raises:
        InputError: a line has no mark, an exchange has no message or too few or many replies, or a message
            is repeated; the sentence names the file and line.
    """
    exchanges: list[Exchange] = []
    seen: dict[str, int] = {}
    topic, start = "", 0
    messages: list[str] = []
    replies: list[str] = []

    def close() -> None:
        if not messages and not replies:
            return
        where = f"{path}, line {start}"
        if not messages or not topic:
            raise InputError(f"{where}: an exchange needs a topic above it and at least one message (`> text`).")
        if not MIN_REPLIES <= len(set(replies)) <= MAX_REPLIES or len(set(replies)) != len(replies):
            raise InputError(
                f"{where}: an exchange needs {MIN_REPLIES} to {MAX_REPLIES} different replies, found {replies}."
            )
        exchanges.append(Exchange(topic, tuple(messages), tuple(replies), start))
        messages.clear()
        replies.clear()

    for number, raw in read_lines(path):
        line = raw.strip()
        mark, text = line[:1], line[1:].strip()
        if not line or mark == "#":
            close()
            topic = text if mark == "#" else topic
            continue
        if mark not in "><" or not text or "\t" in text:
            raise InputError(f"{path}, line {number}: expected `# topic`, `> message` or `< reply`, found {line!r}.")
        start = start if messages or replies else number
        if mark == ">":
            if text in seen:
                raise InputError(f"{path}, line {number}: the message {text!r} is in line {seen[text]} already.")
            seen[text] = number
            messages.append(text)
        else:
            replies.append(text)
    close()
    return exchanges
