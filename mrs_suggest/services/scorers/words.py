"""Word lists as a scorer: 1 for a text with one of a language's words, otherwise 0."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.languages import find_language
from mrs_suggest.common.text.text_services import ServiceFacts
from mrs_suggest.suggest.guard.lists import LISTS, GuardData
from mrs_suggest.suggest.guard.patterns import Phrases, fold, spellings

UNSPACED = ("Jpan", "Hans", "Hant", "Thai", "Laoo", "Khmr", "Mymr")  # scripts without spaces between words (ISO 15924)
COMMENT = "#"
Holds = Callable[[str], bool]


class WordScorer:
    """1 for texts that hold a phrase of their language's list.

    Whole words match in any case, also with stretched letters ("diiie"). In languages without spaces between words, a
    phrase is found anywhere. docs/guard.md explains phrases (`suicid*`, `(a/b) c`).

    Args:
        lists: language -> whether a text holds one of its phrases.
    """

    at_once = None  # a lookup in the cache takes as long as scoring

    def __init__(self, lists: Mapping[str, Holds], facts: ServiceFacts) -> None:
        self._lists, self.facts = lists, facts

    def languages(self) -> frozenset[str]:
        return frozenset(self._lists)

    def score(self, texts: Sequence[str], language: str) -> list[float]:
        """n texts -> n scores, 1 or 0."""
        holds = self._lists[language]
        return [float(holds(text)) for text in texts]


def own_words() -> WordScorer:
    """The package's lists of slurs and swear words, those of the guard (docs/guard.md)."""
    data = GuardData()

    def of(language: str) -> Holds:
        return lambda text: any(data[language].holds("slurs", spelling) for spelling in spellings(fold(text)))

    version = content_hash(Path(str(resources.files("mrs_suggest.suggest.guard") / LISTS)).glob("*.yaml"))
    return WordScorer(
        {language: of(language) for language in data}, ServiceFacts("words", "guard", version, "apache-2.0")
    )


def read_words(path: Path, option: str = "--toxicity") -> WordScorer:
    """The lists `LANG.txt` of a folder, or one such file: a phrase per line; lines that begin with `#` are comments."""
    files = sorted(path.glob("*.txt")) if path.is_dir() else [path] if path.suffix == ".txt" and path.is_file() else []
    if not files:
        raise InputError(f"{option} words:{path}: no word lists there; expected a folder with LANG.txt, or LANG.txt.")
    lists = {file.stem: _list(file) for file in files}
    version = hashlib.sha256("".join(f"{file.name} {content_hash([file])}\n" for file in files).encode()).hexdigest()
    return WordScorer(lists, ServiceFacts("words", path.resolve().name, version[:16]))


def _list(file: Path) -> Holds:
    language = find_language(file.stem)
    if language is None:
        raise InputError(
            f"{file}: {file.stem!r} is not the code of a language; name the list LANG.txt, such as es.txt."
        )
    lines = ((number, line.strip()) for number, line in read_lines(file))
    phrases = {number: line for number, line in lines if line and not line.startswith(COMMENT)}
    if not phrases:
        raise InputError(f"{file}: has no words; expected one per line.")
    spaced = language.script not in UNSPACED
    for number, phrase in phrases.items():
        try:
            Phrases([phrase], {}, spaced).compile_all()
        except ValueError as error:  # as re.error is
            raise InputError(f"{file}, line {number}: {error}; docs/guard.md shows how phrases are written.") from None
    found = Phrases(phrases.values(), {}, spaced)
    return lambda text: any(found.first(spelling) is not None for spelling in spellings(fold(text)))
