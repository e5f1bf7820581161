"""Settings of a corpus for pretraining, and its sources."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from mrs_datasets.corpus.lines import LineRules
from mrs_datasets.texts.text_sources import require_text
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location

HEAD, MIDDLE, TAIL, ALL = "head", "middle", "tail", "all"
BUCKETS = (HEAD, MIDDLE, TAIL)


@dataclass(frozen=True)
class IdentifierFile:
    """A language identifier by its file, so that each process opens it once.

    Attributes:
        load: opens the file; the result has `languages` and `identify`, as
            `mrs_suggest.common.text.language_id.LanguageIdentifier`.
    """

    path: Path
    load: Callable[[Path], Any]

    def open(self) -> Any:
        return _open(self)


@lru_cache(maxsize=1)
def _open(file: IdentifierFile) -> Any:
    return file.load(file.path)


class Source(NamedTuple):
    """One file of texts in a language."""

    language: str
    path: Location


@dataclass(frozen=True)
class CorpusSettings:
    """The settings of a corpus.

    Attributes:
        min_language_score: a line stays if its language has a higher probability (Wenzek et al. 2020, section 3.3: .5).
        keep: thirds of each language by perplexity to write: head (the lowest), middle, tail (section 3.4). Ours: head
            and middle.
    """

    rules: LineRules = field(default_factory=LineRules)
    min_language_score: float = 0.5
    keep: tuple[str, ...] = (HEAD, MIDDLE)

    def __post_init__(self) -> None:
        low, high = self.rules.min_characters, self.rules.max_characters
        for name, value in (("min-characters", low), ("max-characters", high)):
            if value < 1:
                raise InputError(f"--{name}: expected 1 or more, found {value}.")
        if low > high:
            raise InputError(f"--min-characters {low}: is more than --max-characters, which is {high}; lower it.")
        if not 0 <= self.min_language_score < 1:
            raise InputError(f"--min-language-score: expected 0 or more and below 1, found {self.min_language_score}.")
        if not self.keep or set(self.keep) - set(BUCKETS):
            raise InputError(f"--keep: expected some of {', '.join(BUCKETS)}, found {' '.join(self.keep) or 'none'}.")

    def as_dict(self) -> dict[str, Any]:
        """All settings, for JSON."""
        return {**asdict(self), "keep": list(self.keep)}


@dataclass(frozen=True)
class Corpus:
    """The sources of a corpus.

    Attributes:
        sources: files by language, in the order in which their lines count.
        identifier: identifies the language of lines; None leaves it unchecked.
        models: language -> a file that `CharacterModel.save` wrote.
        references: language -> files of clean text to train a model on.
        unchecked: languages whose lines are not checked by `identifier`.

    Raises:
        InputError: a file is binary, the identifier does not know a language, a language has two models, or an option
            names a language without text.
    """

    sources: tuple[Source, ...]
    identifier: IdentifierFile | None
    models: Mapping[str, Path] = field(default_factory=dict)
    references: Mapping[str, tuple[Location, ...]] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for path in [*(source.path for source in self.sources), *chain.from_iterable(self.references.values())]:
            require_text(path)
        known = set(self.identifier.open().languages) if self.identifier else set()
        for language in self.languages:
            plain = language.partition("-")[0]
            if self.identifier and plain not in known and language not in self.unchecked:
                raise InputError(
                    f"--language-model {self.identifier.path}: does not know {plain!r}; pass another, or leave this "
                    f"language unchecked with --unchecked {language}."
                )
        options = {"--model": self.models, "--reference": self.references, "--unchecked": self.unchecked}
        for option, named in options.items():
            if other := [language for language in named if language not in self.languages]:
                named_by_text = " ".join(self.languages)
                raise InputError(f"{option} {other[0]}: no --text in this language; the languages are {named_by_text}.")
        if both := [language for language in self.references if language in self.models]:
            raise InputError(f"--reference {both[0]}: this language also has a --model; pass one of them.")

    @property
    def languages(self) -> list[str]:
        """The languages, in the order of the sources."""
        return list(dict.fromkeys(source.language for source in self.sources))
