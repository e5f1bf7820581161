"""The phrases of the lists as people write them, compiled to regular expressions.

    died                 a whole word
    suicid*              any ending; also *tod and *tod*
    (mum/dad) died       one of these
    want [to] die        with or without
    my ... passed away   up to four words of the same sentence between
    <kin> died           a group that the file names under `groups`
    rent & (can't/owe)   all of these in one sentence, in any order, up to 80 characters apart

In a language without spaces, a phrase is found anywhere, and `...` stands for up to eight characters.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import pairwise, permutations

_WORD = re.compile(r"\w+")
_BETWEEN = r"[^\w.!?\n]+"
_NEAR = r"[^.!?。！？\n]{0,80}?"  # bounded, so that long messages take linear time
_STRETCHED = re.compile(r"([^\W\d_])\1{2,}")
# Signs in place of letters, and letters with something between: k!ll, su1cide, s u i c i d e.
_DISGUISED = re.compile(r"(?<=[^\W\d_])[!|1*$@0345]+(?=[^\W\d_])")
_MEANT = str.maketrans("!|1*$@0345", "iiiisaoeas")
_SPACED_OUT = re.compile(r"(?<!\w)[^\W\d_](?:[ ._*-][^\W\d_]){3,}(?!\w)")
_MOST_START = 16  # characters by which the words that may begin a phrase are found; ours
MOST_SIDES = 3  # of a `&`: each order of them is a separate expression
_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "´": "'", "`": "'"})
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
_MARKS = re.compile("[\u0300-\u036f]")


def fold(text: str, accents: bool = True) -> str:
    """The form in which texts and phrases are compared: NFKC, case-folded, straight apostrophes.

    Args:
        accents: keep them, since they distinguish words, as in Swedish; otherwise they are dropped.

    >>> fold("JE SUIS DÉCÉDÉ", accents=False), fold("Wa\u200bffe")
    ('je suis decede', 'waffe')
    """
    # Apostrophes first: NFKC takes an acute accent on its own apart.
    folded = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).translate(_QUOTES)).casefold()
    if accents or folded.isascii():
        return folded
    return unicodedata.normalize("NFC", _MARKS.sub("", unicodedata.normalize("NFD", folded)))


def spellings(folded: str) -> list[str]:
    """A folded text, and, if it hides letters or stretches them for emphasis, also what it stands for.

    >>> spellings("my dad diiied"), spellings("he called"), spellings("k!ll me")
    (['my dad diiied', 'my dad diied', 'my dad died'], ['he called'], ['k!ll me', 'kill me'])
    """
    meant = _SPACED_OUT.sub(lambda found: "".join(_WORD.findall(found[0].replace("_", " "))), folded)
    meant = _DISGUISED.sub(lambda found: found[0].translate(_MEANT), meant)
    found = [folded] if meant == folded else [folded, meant]
    if _STRETCHED.search(meant):
        found += [_STRETCHED.sub(r"\1\1", meant), _STRETCHED.sub(r"\1", meant)]
    return found


class Phrases:
    """Phrases to find in folded texts; each is compiled when its first word first occurs, so loading is quick.

    Args:
        phrases: as above.
        groups: name -> alternatives, as they stand in parentheses.
        spaced: whether the language puts spaces between words.
        accents: as in `fold`.

    Raises:
        ValueError: a phrase is empty, begins with an optional word, or names an unknown group.

    Example:
        >>> found = Phrases(["(mum/dad) ... died", "suicid*"], {})
        >>> found.first("my dad has just died"), found.first("my dad. the phone died")
        ('dad has just died', None)
        >>> found.without("a suicidal act", "-")
        'a - act'
    """

    def __init__(
        self, phrases: Iterable[str], groups: Mapping[str, str], spaced: bool = True, accents: bool = True
    ) -> None:
        self._spaced = spaced
        self._parts: list[list[list[str]]] = []  # phrase -> what stands between its `&` -> the parts of that
        self._compiled: dict[int, re.Pattern[str]] = {}
        self._words: dict[str, list[int]] = {}
        self._prefixes: dict[str, list[int]] = {}
        for number, phrase in enumerate(phrases):
            sides = _sides(_parts(fold(_named(phrase, groups), accents)))
            if any(not parts or parts[0] == "..." or parts[0].startswith("[") for parts in sides):
                raise ValueError(f"{phrase!r} must begin with a word, and so must each part after a &")
            if len(sides) > MOST_SIDES:
                raise ValueError(f"{phrase!r} has more than {MOST_SIDES - 1} &")
            self._parts.append(sides)
            for start in _expanded(sides[0][0]):
                self._index(start, number)

    def _index(self, start: str, number: int) -> None:
        found = _WORD.match(start)
        whole = found is not None and self._spaced and start[found.end() :][:1] != "*"
        key = (found[0] if whole else found[0][:_MOST_START]) if found else ""
        numbers = (self._words if whole else self._prefixes).setdefault(key, [])
        if number not in numbers[-1:]:
            numbers.append(number)

    def first(self, text: str) -> str | None:
        """The match of the first phrase that a folded text holds, or None."""
        return next((found[0] for regex in self._candidates(text) if (found := regex.search(text))), None)

    def every(self, text: str) -> list[str]:
        """All matches in a folded text."""
        return [found[0] for regex in self._candidates(text) for found in regex.finditer(text)]

    def without(self, text: str, instead: str) -> str:
        """A folded text with every phrase replaced."""
        for regex in self._candidates(text):
            text = regex.sub(instead, text)
        return text

    def compile_all(self) -> None:
        """Compile every phrase; re.error if one is invalid."""
        for number in range(len(self._parts)):
            self._regex(number)

    def _candidates(self, text: str) -> Iterator[re.Pattern[str]]:
        if not self._spaced:
            found = [numbers for prefix, numbers in self._prefixes.items() if prefix in text]
        else:
            words, starts = _words_and_starts(text)
            found = [self._words[word] for word in words & self._words.keys()]
            found += [self._prefixes[start] for start in starts & self._prefixes.keys()]
        return map(self._regex, sorted({number for numbers in found for number in numbers}))

    def _regex(self, number: int) -> re.Pattern[str]:
        if number not in self._compiled:
            sides = [_phrase(parts, self._spaced) for parts in self._parts[number]]
            self._compiled[number] = re.compile("|".join(_NEAR.join(order) for order in permutations(sides)))
        return self._compiled[number]


@lru_cache(maxsize=8)
def _words_and_starts(text: str) -> tuple[set[str], set[str]]:
    """The words of a text and all their beginnings, and the empty one of a phrase that begins with another sign."""
    words = set(_WORD.findall(text))
    return words, {"", *(word[:end] for word in words for end in range(1, min(len(word), _MOST_START) + 1))}


def _sides(parts: list[str]) -> list[list[str]]:
    """Split the parts of a phrase at its `&`."""
    cuts = [-1, *(number for number, part in enumerate(parts) if part == "&"), len(parts)]
    return [parts[left + 1 : right] for left, right in pairwise(cuts)]


def _named(phrase: str, groups: Mapping[str, str]) -> str:
    def group(match: re.Match[str]) -> str:
        if match[1] not in groups:
            raise ValueError(f"{phrase!r} names the group <{match[1]}>, which is not under `groups`")
        return f"({groups[match[1]]})"

    return re.sub(r"<(\w+)>", group, phrase)


def _parts(phrase: str) -> list[str]:
    """Split at the spaces that are not between brackets."""
    parts, depth = [""], 0
    for character in phrase:
        depth += (character in "([") - (character in ")]")
        if character.isspace() and depth == 0:
            parts.append("")
        else:
            parts[-1] += character
    if depth:
        raise ValueError(f"{phrase!r} has unbalanced brackets")
    return [part for part in parts if part]


def _expanded(part: str) -> list[str]:
    """The texts that a part with alternatives in parentheses stands for."""
    begin = part.find("(")
    if begin < 0:
        return [part]
    depth, cuts = 0, [begin]
    for place in range(begin, len(part)):
        depth += (part[place] == "(") - (part[place] == ")")
        if depth == 0 or (part[place] == "/" and depth == 1):
            cuts.append(place)
        if depth == 0:
            break
    middle = [part[left + 1 : right] for left, right in pairwise(cuts)]
    rest = part[cuts[-1] + 1 :]
    if not rest and not begin:
        return [text for option in middle for text in _expanded(option)]
    return [part[:begin] + own + end for option in middle for own in _expanded(option) for end in _expanded(rest)]


def _phrase(parts: list[str], spaced: bool) -> str:
    between = _BETWEEN if spaced else r"\s*"
    made = _alternatives(parts[0], between)
    for part in parts[1:]:
        if part == "...":
            made += rf"(?:{_BETWEEN}\w[\w'-]*){{0,4}}" if spaced else r"[^。.!?！？\n]{0,8}?"
        elif part.startswith("["):
            made += f"(?:{between}{_alternatives(f'({part[1:-1]})', between)})?"
        else:
            made += between + _alternatives(part, between)
    return rf"(?<!\w){made}(?!\w)" if spaced else made


def _alternatives(part: str, between: str) -> str:
    texts = [between.join(map(_escaped, text.split())) for text in _expanded(part)]
    return texts[0] if len(texts) == 1 else f"(?:{'|'.join(texts)})"


def _escaped(text: str) -> str:
    return r"\w*".join(re.escape(piece) for piece in text.split("*"))
