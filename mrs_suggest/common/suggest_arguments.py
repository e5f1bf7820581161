"""Checks of the arguments of `suggest`, before a model sees them."""

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from mrs_suggest.common.errors import ArgumentError

Answer = TypeVar("Answer")
Message = TypeVar("Message")
MOST_SUGGESTIONS = 20  # that a request to `mrs serve` may ask for
_SURROGATE = re.compile("[\ud800-\udfff]")


def require_list(messages: Iterable[Message]) -> list[Message]:
    """The messages as a list.

    Raises:
        ArgumentError: they are a single text, a single turn or None.
    """
    if isinstance(messages, (str, bytes, Mapping)) or not isinstance(messages, Iterable):
        kind = "None" if messages is None else f"one {type(messages).__name__}"
        raise ArgumentError("messages", f"expected a list of texts, found {kind}; pass [message].")
    return list(messages)


def require_messages(messages: Iterable[str]) -> list[str]:
    """The messages as a list.

    Raises:
        ArgumentError: they are a single text or None, or one of them is not a text.
    """
    texts = require_list(messages)
    for number, message in enumerate(texts):
        if not isinstance(message, str):
            kind = type(message).__name__
            raise ArgumentError("messages", f"expected texts, found {kind} at index {number}; pass str.")
        if not is_valid(message):
            raise ArgumentError(
                "messages",
                f"the one at index {number} holds a lone surrogate, which is not valid text; decode it again from its "
                'bytes, with errors="replace" where they are damaged.',
            )
    return texts


def is_valid(text: str) -> bool:
    """Whether a text can be encoded: it holds no lone surrogate."""
    return text.isascii() or not _SURROGATE.search(text)


def require_count(k: int, most: int | None = None) -> int:
    """The number of suggestions per message.

    Raises:
        ArgumentError: it is not a whole number from 1 to `most`.
    """
    expected = "from 1" if most is None else f"from 1 to {most}"
    try:
        count = -1 if isinstance(k, bool) else operator.index(k)
    except TypeError:
        count = -1
    if count < 1 or (most is not None and count > most):
        raise ArgumentError("k", f"expected a whole number {expected}.", k)
    return count


def require_score(min_score: float | None) -> None:
    """Raise ArgumentError if a least score is not a number from 0 to 1, or None."""
    number = isinstance(min_score, (int, float)) and not isinstance(min_score, bool)
    if min_score is not None and not (number and 0 <= min_score <= 1):
        raise ArgumentError("min_score", "expected a number from 0 to 1.", min_score)


def answer_all(messages: list[str], answer: Callable[[list[str]], list[list[Answer]]]) -> list[list[Answer]]:
    """The answers to all messages in their order; `answer` gets those that are not blank."""
    asked = [message for message in messages if message.strip()]
    answers = iter(answer(asked) if asked else [])
    return [next(answers) if message.strip() else [] for message in messages]
