"""Text for pretraining from a bilingual dictionary (Ponti et al. 2020, section 4.4): the D-corpus and T-REP.

A dictionary has lines `term<TAB>English`, or `term<TAB>English<TAB>confidence`, as PanLex gives one.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, Self

from mrs_datasets.readers.sources import as_number
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.masks import MASK_PATTERN
from mrs_suggest.common.text.text_services import ServiceFacts

PREFIX = "dictionary:"  # of the option `--translator`
MOST_UNTRANSLATED = 0.25  # ours: three words of four are translated
_WORD = re.compile(rf"{MASK_PATTERN}|([^\W\d_](?:[\w'’]*\w)?)")  # a word begins with a letter and is not a mask
PAIRS = 5000  # section 4.4: "the 5k most reliable word translation pairs"


class Entry(NamedTuple):
    """A translation pair."""

    term: str
    english: str


def read_dictionary(path: Path, most: int = PAIRS) -> list[Entry]:
    """The `most` reliable pairs of a dictionary, the best first; equal pairs count once.

    Without a third column, the first lines are the most reliable ones.

    Raises:
        InputError: a line does not have two or three columns, has an empty one, or its confidence is not a number; or
            the file has no pair.
    """
    found: dict[Entry, float] = {}
    width = 0
    for number, line in read_lines(path):
        if not line.strip():
            continue
        columns = [" ".join(column.split()) for column in line.split("\t")]
        width = width or len(columns)
        if len(columns) != width or width not in (2, 3) or not all(columns):
            raise InputError(
                f"{path}, line {number}: expected term, tab, English, and in every line or in none a tab and a "
                f"confidence; found {len(columns)} columns{'' if all(columns) else ', including an empty one'}."
            )
        entry = Entry(columns[0], columns[1])
        confidence = as_number(columns[2]) if width == 3 else 0.0
        if math.isnan(confidence):
            raise InputError(f"{path}, line {number}: expected a number as confidence, found {columns[2]!r}.")
        found[entry] = max(found.get(entry, -math.inf), confidence)
    if not found:
        raise InputError(f"{path}: has no translation pair; expected lines of term, tab, English.")
    return sorted(found, key=lambda entry: -found[entry])[:most]  # stable: the order of the file among equals


def quasi_sentences(entries: Iterable[Entry]) -> Iterator[str]:
    """The D-corpus: each pair as a sentence, English first (the paper names its dictionaries en-ht and en-qu).

    >>> list(quasi_sentences([Entry("dlo", "water")]))
    ['water dlo']
    """
    return (f"{entry.english} {entry.term}" for entry in entries)


class TermReplacer:
    """T-REP: the terms of a dictionary in a text become their English translations.

    Terms are matched as whole words, in any case, the longest first; of several translations the most reliable is
    taken. The translation of a capitalised term is capitalised. Inflected forms that the dictionary does not have stay,
    and so do texts in scripts without spaces between words.

    Args:
        entries: the most reliable first.

    Example:
        >>> replacer = TermReplacer([Entry("dlo", "water"), Entry("bwè dlo", "drink"), Entry("dlo", "juice")])
        >>> replacer("Dlo a, mwen bwè dlo, dlope."), replacer.replaced
        ('Water a, mwen drink, dlope.', 2)
    """

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._english: dict[str, str] = {}
        for entry in entries:
            self._english.setdefault(entry.term.casefold(), entry.english)
        longest = sorted(self._english, key=lambda term: (-len(term), term))
        self._pattern = re.compile(rf"(?<!\w)(?:{'|'.join(map(re.escape, longest))})(?!\w)", re.IGNORECASE)
        self.replaced = 0

    def __call__(self, text: str) -> str:
        return self._pattern.sub(self._translate, text)

    def untranslated(self, text: str) -> float:
        """The share of a text's words that belong to no term; 0 for a text without words."""
        words, left = (sum(map(bool, _WORD.findall(each))) for each in (text, self._pattern.sub(" ", text)))
        return left / words if words else 0.0

    def _translate(self, found: re.Match[str]) -> str:
        english = self._english.get(found[0].casefold())
        if english is None:  # equal for the pattern, but not by its folded form
            return found[0]
        self.replaced += 1
        return english[:1].upper() + english[1:] if found[0][:1].isupper() else english


class DictionaryTranslator:
    """A `mrs_suggest.common.text.text_services.Translator` that replaces the terms of a text word for word:
    a baseline, also for languages without a model.

    A text without a term of the dictionary has no translation, and neither has one with more than `MOST_UNTRANSLATED`
    of its words outside of it. The file does not name its languages, so any direction is taken.
    """

    settings: Mapping[str, object] = MappingProxyType({"most untranslated words": MOST_UNTRANSLATED})

    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise InputError(f"--translator {PREFIX}{file}: no such file; expected lines of term, tab, translation.")
        self._file = file
        self._replacer = TermReplacer(read_dictionary(file, 1_000_000))
        self.facts = ServiceFacts("dictionary", file.name, content_hash([file]))

    def __reduce__(self) -> tuple[type[Self], tuple[Path]]:
        return type(self), (self._file,)

    def require(self, source: str, target: str) -> None:
        """A dictionary does not name its languages."""

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        found = []
        for text in texts:
            before = self._replacer.replaced
            translation = self._replacer(text)
            whole = self._replacer.replaced > before and self._replacer.untranslated(text) <= MOST_UNTRANSLATED
            found.append(translation if whole else "")
        return found

    def fits(self, texts: Sequence[str], source: str, target: str) -> list[bool]:
        return [True] * len(texts)
