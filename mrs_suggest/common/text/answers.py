"""The rule by which the text that a language model generates becomes a list of replies or translations.

The prompt asks for one on each line, so:

1. A line that only holds white space is left out; runs of white space become one space.
2. Where two lines or more have a list's mark, the answer is a list: those lines count, without the mark, and the others
   ("Here are three replies:") do not. A mark is `-`, `*` or `•` with a space after it, or the next number from 1 with a
   dot or bracket, so that "3. Juli passt mir." as the first line is not a list.
3. A pair of quotation marks around a whole line is removed.
4. A line that is equal to an earlier one but for case is left out.
5. The first ones count, as many as were asked for. Missing ones are not made up: an answer of two replies is scored by
   the better of two. An answer without any becomes one empty text, which scores 0.
"""

import re
from collections.abc import Iterable

_NUMBERED = re.compile(r"\(?(\d+)(?:[.):]\s|[．）、])\s*(?P<text>.*)")
_BULLET = re.compile(r"[-*•]\s(?P<text>.*)")
_QUOTES = {'"': '"', "'": "'", "“": "”", "„": "“", "«": "»", "»": "«", "「": "」", "『": "』", "”": "”"}


def read_answer(text: str, most: int | None = None) -> list[str]:
    """The replies or translations in a generated text, in its order.

    Returns:
        Different texts without line ends or tabs, at most `most` of them; none if there is nothing to read.

    >>> read_answer(" Sure!\\nsure!\\n\\n“No, sorry.”\\nLater?\\nNever.", 3)
    ['Sure!', 'No, sorry.', 'Later?']
    >>> read_answer("Here are three replies:\\n1. Sure!\\n2. No.\\nI hope that they help.", 3)
    ['Sure!', 'No.']
    """
    lines = [" ".join(line.split()) for line in text.splitlines()]
    lines = [line for line in lines if line]
    listed = _listed(lines)
    found: dict[str, str] = {}
    for line in listed if len(listed) > 1 else lines:
        quoted = len(line) > 1 and _QUOTES.get(line[0]) == line[-1] and line[-1] not in line[1:-1]
        if plain := line[1:-1].strip() if quoted else line:
            found.setdefault(plain.casefold(), plain)
    return list(found.values())[:most]


def read_samples(texts: Iterable[str], most: int | None = None) -> list[str]:
    """One reply from each of several generated texts: the first that it has; equal ones count once.

    >>> read_samples(["Sure!\\nNo.", "", "sure!", "Later."], 3)
    ['Sure!', 'Later.']
    """
    firsts = [reply for text in texts for reply in read_answer(text, 1)]
    return list({reply.casefold(): reply for reply in reversed(firsts)}.values())[::-1][:most]


def _listed(lines: list[str]) -> list[str]:
    """The texts after the marks of a list, line by line."""
    found: list[str] = []
    number = 0
    for line in lines:
        if match := _BULLET.fullmatch(line):
            found.append(match["text"])
        elif (match := _NUMBERED.fullmatch(line)) and int(match[1]) == number + 1:
            number += 1
            found.append(match["text"])
    return found
