"""The texts of mrs-everyday: situations with their messages and replies in each language.

`situations.tsv` lists the situations: id, topic, register, what the messages say, and the stances of the replies with
their numbers. `LANG.txt` has their texts in one language; each reply fits each message of its situation:

    ## dinner-tonight
    > Are you coming to dinner tonight?
    > dinner at ours at 7, are you in?
    < [yes] Sure, see you then!
    < [no] Sorry, I can't tonight.

A situation in ten is held out as a whole, the same ones in every language: half of these are validation, so that
weights are chosen on situations that a model does not know, too, and half are `unseen`. The messages of the others are
split as those of a user's own pairs. The base install reads them.
"""

import hashlib
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines

EVERYDAY = "mrs-everyday"
EMBEDDED = "embedded"  # the source that ships with the package
TEXTS = Path(__file__).resolve().parent
RECORD = TEXTS.parent / "catalogue" / f"{EVERYDAY}.yaml"
PLAN = "situations.tsv"
REVIEWS = "reviews.json"  # language -> what a second reader changed: lines by reason
UNSEEN = "unseen"
ONE_IN = 10  # situations that are held out
COLUMNS = ["id", "topic", "register", "messages", "replies"]
_REPLY = re.compile(r"\[([a-z]+)\] (.+)")


@dataclass
class Situation:
    """One kind of exchange, and its texts in one language.

    Attributes:
        stances: of the replies -> how many there are.
        replies: (stance, text).
    """

    name: str
    topic: str
    register: str
    stances: dict[str, int]
    messages: list[str] = field(default_factory=list)
    replies: list[tuple[str, str]] = field(default_factory=list)

    def split(self, message: str) -> str:
        """The split of a message; equal for all messages if the situation is held out."""
        from mrs_datasets.readers.pairs.pairs import split_of  # which needs pyarrow

        number = int.from_bytes(hashlib.blake2b(self.name.encode(), digest_size=8).digest(), "big")
        if number % ONE_IN == 0:
            return "validation" if number // ONE_IN % 2 else UNSEEN
        return split_of(message)


def read_plan(path: Path) -> dict[str, Situation]:
    """The situations of a `situations.tsv`, without texts; InputError if it is damaged."""
    found: dict[str, Situation] = {}
    if not path.is_file():
        raise InputError(f"{path}: no such file; expected the list of situations.")
    for number, line in read_lines(path):
        where, row = f"{path}, line {number}", line.split("\t")
        if len(row) != len(COLUMNS) or (number == 1 and row != COLUMNS):
            raise InputError(f"{where}: expected the columns {', '.join(COLUMNS)}, found {row}.")
        if number == 1:
            continue
        name, topic, register, _, stances = row
        counts = [part.split(" ") for part in stances.split(", ")]
        if name in found or not all(len(part) == 2 and part[1].isdigit() for part in counts):
            raise InputError(f"{where}: expected a new id, and replies such as `yes 4, no 3, ask 1`, found {row}.")
        found[name] = Situation(name, topic, register, {stance: int(count) for stance, count in counts})
    return found


def read_situations(path: Path) -> list[Situation]:
    """Read the texts of one language, and check them against the plan in the same folder.

    Raises:
        InputError: a line has no mark, a situation is unknown, comes twice or lacks replies, or a text is repeated; the
            sentence names the line or the situation.
    """
    plan = read_plan(path.parent / PLAN)
    here: Situation | None = None
    seen: dict[str, int] = {}
    for number, line in read_lines(path):
        mark, text = line[:2], line[2:].strip()
        where = f"{path}, line {number}"
        reply = _REPLY.fullmatch(text) if mark == "< " else None
        if not line.strip():
            continue
        if line.startswith("## "):
            here = plan.get(line[3:].strip())
            if here is None or here.messages:
                raise InputError(f"{where}: expected a situation of {PLAN} that has no texts yet, found {line[3:]!r}.")
        elif here is None or not text or not (mark == "> " or reply):
            raise InputError(f"{where}: expected `## situation`, `> message` or `< [stance] reply`, found {line!r}.")
        elif reply is None:
            if seen.setdefault(text, number) != number:
                raise InputError(f"{where}: the message {text!r} is in line {seen[text]} already.")
            here.messages.append(text)
        else:
            here.replies.append((reply[1], reply[2]))
    found = [one for one in plan.values() if one.messages]
    for one in found:
        stances = Counter(stance for stance, _ in one.replies)
        if stances != one.stances or len({text for _, text in one.replies}) != len(one.replies):
            expected = ", ".join(f"{stance} {count}" for stance, count in one.stances.items())
            raise InputError(f"{path}: {one.name} needs different replies by stance: {expected}; found {one.replies}.")
    return found
