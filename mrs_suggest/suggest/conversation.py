"""Conversations: the message to answer, and the turns before it.

A conversation is a list of turns, oldest first: `{"from": "them", "text": "Are you coming?"}`, or `"from": "me"` for a
turn of the person who replies. Its last `TURNS` turns count:

- Their last turns up to mine are one message, joined by spaces; nothing is suggested if the last turn is mine.
- If the language of that message is not clear, it is that of the turns before it, mine and theirs.
- Replies that are among my turns are not suggested again.
- The guard reads all of their turns: nothing is suggested if one has a reason of `GRAVE`, or one of the last `RECENT`
  turns has any other reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.common.spans import span
from mrs_suggest.common.suggest_arguments import is_valid, require_list, require_messages
from mrs_suggest.common.text.text import normalise_reply, visible
from mrs_suggest.suggest.answering import Answer, ServedModel, Suggestion

if TYPE_CHECKING:
    from mrs_suggest.suggest.guard.guard import Guard

TURNS = 10  # ours
RECENT = 4  # ours: with one turn at a time, the answered message and the one before it
GRAVE = frozenset({"self_harm", "exploitation", "extortion", "threat", "abuse"})
THEM, ME = "them", "me"
Chat = Sequence[Mapping[str, str]]  # the turns of a conversation as callers pass them
_FORM = f'expected {{"from": "{THEM}" or "{ME}", "text": ...}}'


class Turn(NamedTuple):
    """One text of a conversation.

    Attributes:
        number: its place in the whole conversation, from 1.
    """

    number: int
    mine: bool
    text: str


@dataclass(frozen=True)
class Conversation:
    """The turns that count; `read_conversation` checks and selects them.

    Attributes:
        turns: 1 to `TURNS`, oldest first.
    """

    turns: tuple[Turn, ...]

    @cached_property
    def _start(self) -> int:
        """The index of the first turn of the answered message."""
        return next((place for place in range(len(self.turns), 0, -1) if self.turns[place - 1].mine), 0)

    @property
    def mine(self) -> bool:
        return self.turns[-1].mine

    @cached_property
    def message(self) -> str:
        """The message to answer; empty if the last turn is mine."""
        texts = [turn.text for turn in self.turns[self._start :]]
        return texts[0] if len(texts) == 1 else " ".join(filter(str.strip, texts))

    @property
    def context(self) -> list[str]:
        """The texts before the answered message, oldest first."""
        return [turn.text for turn in self.turns[: self._start]]

    @property
    def before(self) -> str:
        """The same, latest first."""
        return " ".join(reversed(self.context))

    @cached_property
    def _sent(self) -> frozenset[str]:
        return frozenset(normalise_reply(turn.text) for turn in self.turns if turn.mine)

    def repeats(self, reply: str) -> bool:
        """Whether a reply is among my turns, apart from its case and punctuation."""
        return bool(self._sent) and normalise_reply(reply) in self._sent

    @property
    def watched(self) -> list[tuple[str, bool]]:
        """Their texts, in addition to `message`, latest first, and whether only the reasons of `GRAVE` count."""
        several = len(self.turns) - self._start > 1
        theirs = [place for place, turn in enumerate(self.turns) if not turn.mine and (place < self._start or several)]
        recent = min(self._start, len(self.turns) - RECENT)
        return [(text, place < recent) for place in reversed(theirs) if (text := self.turns[place].text).strip()]

    def too_long(self, most: int) -> str | None:
        """A sentence about a text of more than `most` characters; None if all are shorter."""
        texts = [("the message", self.message), *((f"turn {turn.number}", turn.text) for turn in self.turns)]
        long = next(((name, len(text)) for name, text in texts if len(text) > most), None)
        return long and f"{long[0]} has {long[1]} characters; the server accepts {most}, shorten it."


def read_conversation(turns: Iterable[Any], where: str = "") -> Conversation:
    """Check the turns of a conversation.

    Args:
        where: names the conversation in errors, such as " of the conversation at index 2".

    Raises:
        ArgumentError: the list is empty, or a turn has other keys, another sender or no valid text.
    """
    read = []
    for number, turn in enumerate(turns, start=1):
        problem = _problem(turn)
        if problem:
            raise ArgumentError("messages", f"turn {number}{where}: {problem}")
        read.append(Turn(number, turn["from"] == ME, turn["text"]))
    if not read:
        raise ArgumentError("messages", f"expected turns{where}, found none.")
    return Conversation(tuple(read[-TURNS:]))


def _problem(turn: Any) -> str | None:
    if not isinstance(turn, Mapping):
        return f"{_FORM}, found {type(turn).__name__}."
    if set(turn) != {"from", "text"}:
        return f"{_FORM}, found the keys {visible(' '.join(map(str, turn)))[:60] or '(none)'}."
    if not isinstance(turn["from"], str) or turn["from"] not in (THEM, ME):
        return f"{_FORM}, found from={visible(repr(turn['from']))[:60]}."
    if not isinstance(turn["text"], str):
        return f"{_FORM}, found a text of type {type(turn['text']).__name__}."
    if not is_valid(turn["text"]):
        return "its text holds a lone surrogate, which is not valid text; decode it again from its bytes."
    return None


def read_conversations(messages: Iterable[Any]) -> list[Conversation]:
    """Texts and conversations, all as conversations; a text is one of a single turn.

    Raises:
        ArgumentError: this is not a list, or an item is neither a text nor a conversation.
    """
    rows = [
        read_conversation(row, f" of the conversation at index {number}") if isinstance(row, list | tuple) else row
        for number, row in enumerate(require_list(messages))
    ]
    require_messages(["" if isinstance(row, Conversation) else row for row in rows])
    return [row if isinstance(row, Conversation) else Conversation((Turn(1, False, row),)) for row in rows]


def read_single(messages: Any) -> Conversation | None:
    """A text or one conversation, as a conversation; None for a list of these; errors as `read_conversations`."""
    if isinstance(messages, str | Conversation):
        return read_conversations([messages])[0]
    one = isinstance(messages, list | tuple) and messages and isinstance(messages[0], Mapping)
    return read_conversation(messages) if one else None


def fitting(
    model: ServedModel | None,
    guard: Guard | None,
    asked: Conversation,
    text: str,
    language: str,
    found: list[Suggestion],
    count: int,
) -> Answer:
    """The suggestions that were not sent and that the guard lets through, topped up with the next best for `text`."""
    wide = count
    while True:
        fit = [
            one for one in found
            if not asked.repeats(one.reply) and (guard is None or guard.fits(one.reply, asked.message, language))
        ]  # fmt: skip
        if model is None or len(fit) >= count or len(found) < wide:  # enough, or the model has no more
            return Answer(fit[:count])
        wide = model.most(4 * wide)
        if wide <= len(found):
            return Answer(fit[:count])
        found = model.suggest([text], language, wide)[0]


def guard_reasons(
    guard: Guard, asked: Sequence[Conversation], language: str, other: Callable[[Conversation, str], str | None]
) -> list[str | None]:
    """The guard's reason not to answer each conversation, or None.

    Args:
        other: the language that a text of a conversation is surely in, if it is not `language`.
    """
    read = [
        (number, text, grave)
        for number, one in enumerate(asked) for text, grave in ((one.message, False), *one.watched)
    ]  # fmt: skip
    reasons: list[str | None] = [None] * len(asked)
    with span("guard"):
        found = guard.reasons([text for _, text, _ in read], language, [other(asked[n], text) for n, text, _ in read])
    for (number, _, grave), reason in zip(read, found, strict=True):
        if reason is not None and reasons[number] is None and (reason in GRAVE or not grave):
            reasons[number] = reason
    return reasons
