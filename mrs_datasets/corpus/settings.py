"""Settings of a corpus for pretraining, and what it is made from."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, Protocol

from mrs_datasets.corpus.lines import LineRules
from mrs_datasets.corpus.ngrams import MOST_ORDER, ORDER
from mrs_datasets.texts.text_files import require_text
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location

HEAD, MIDDLE, TAIL, ALL = "head", "middle", "tail", "all"
BUCKETS = (HEAD, MIDDLE, TAIL)


class Identifier(Protocol):
    """Identifies the language of texts, such as `mrs_suggest.common.text.language_id.LanguageIdentifier`."""

    @property
    def languages(self) -> Any:
        """The codes that it knows."""

    def identify(self, texts: Sequence[str], /) -> list[tuple[str, float]]:
        """The language of each text with its probability."""


@dataclass(frozen=True)
class IdentifierFile:
    """An identifier by its file, so that each process opens its own, once."""

    path: Path
    load: Callable[[Path], Identifier]

    def open(self) -> Identifier:
        """The identifier."""
        return _open(self)


@lru_cache(maxsize=1)
def _open(file: IdentifierFile) -> Identifier:
    return file.load(file.path)


@dataclass(frozen=True)
class Source:
    """One file of texts in a language."""

    language: str
    path: Location


@dataclass(frozen=True)
class CorpusSettings:
    """The values of a corpus.

    Attributes:
        rules: of a line.
        min_language_score: a line stays if its language has a higher probability (Wenzek et al. 2020, section 3.3: .5).
        unchecked: languages of which no line's language is checked.
        order: characters of the model's longest n-grams.
        reference_characters: of a reference text, lines are taken evenly until there are about this many (ours: 1 GB
            of memory).
        keep: thirds of each language by perplexity that are written: head (the lowest), middle, tail (section 3.4).
            Ours: head and middle.
        max_perplexity: by language; a line stays if its perplexity is not above it.
        shard_lines: lines of a file that is written, at most (ours: some 30 MB).
    """

    rules: LineRules = field(default_factory=LineRules)
    min_language_score: float = 0.5
    unchecked: tuple[str, ...] = ()
    order: int = ORDER
    reference_characters: int = 10_000_000
    keep: tuple[str, ...] = (HEAD, MIDDLE)
    max_perplexity: Mapping[str, float] = field(default_factory=dict)
    shard_lines: int = 1_000_000

    def __post_init__(self) -> None:
        rules = self.rules
        for name, value, least in (
            ("min-characters", rules.min_characters, 1),
            ("max-characters", rules.max_characters, 1),
            ("reference-characters", self.reference_characters, 1),
            ("shard-lines", self.shard_lines, 1),
        ):
            if value < least:
                raise InputError(f"--{name}: expected {least} or more, found {value}.")
        if rules.min_characters > rules.max_characters:
            raise InputError(
                f"--min-characters {rules.min_characters}: is more than --max-characters, which is "
                f"{rules.max_characters}; lower it."
            )
        if not 0 <= rules.min_letters <= 1:
            raise InputError(f"--min-letters: expected a share from 0 to 1, found {rules.min_letters}.")
        if not 0 <= self.min_language_score < 1:
            raise InputError(f"--min-language-score: expected 0 or more and below 1, found {self.min_language_score}.")
        if not 1 <= self.order <= MOST_ORDER:
            raise InputError(f"--order: expected 1 to {MOST_ORDER}, found {self.order}.")
        if not self.keep or set(self.keep) - set(BUCKETS):
            raise InputError(f"--keep: expected some of {', '.join(BUCKETS)}, found {' '.join(self.keep) or 'none'}.")
        for language, most in self.max_perplexity.items():
            if not 1 < most < math.inf:
                raise InputError(f"--max-perplexity {language}={most}: expected a number above 1.")

    def as_dict(self) -> dict[str, Any]:
        """All values, for JSON."""
        return asdict(self)


OF_WRITING = ("keep", "max_perplexity", "shard_lines")  # settings of the last stage, which may change when resuming


@dataclass(frozen=True)
class Corpus:
    """What a corpus is made from.

    Attributes:
        sources: files by language, in the order in which their lines count.
        identifier: of languages; None: languages are not checked.
        models: of a language, a file that `CharacterModel.save` wrote.
        references: of a language, files of clean text from which a model is trained.
    """

    sources: tuple[Source, ...]
    identifier: IdentifierFile | None
    models: Mapping[str, Path] = field(default_factory=dict)
    references: Mapping[str, tuple[Location, ...]] = field(default_factory=dict)

    @property
    def languages(self) -> list[str]:
        """The languages, in the order of the sources."""
        return list(dict.fromkeys(source.language for source in self.sources))

    def require_sound(self, settings: CorpusSettings) -> None:
        """Refuse what cannot become a corpus.

        Raises:
            InputError: a file is binary, the identifier does not know a language, there are two models of one, or an
                option names a language that has no text or no model.
        """
        for path in [*(source.path for source in self.sources), *chain.from_iterable(self.references.values())]:
            require_text(path)
        languages = self.languages
        known = set(self.identifier.open().languages) if self.identifier else set()
        for language in languages:
            plain = language.partition("-")[0]
            if self.identifier and plain not in known and language not in settings.unchecked:
                raise InputError(
                    f"--language-model {self.identifier.path}: does not know {plain!r}; pass another, or leave this "
                    f"language unchecked with --unchecked {language}."
                )
        for option, named in (
            ("--model", self.models),
            ("--reference", self.references),
            ("--unchecked", settings.unchecked),
            ("--max-perplexity", settings.max_perplexity),
        ):
            for language in named:
                if language not in languages:
                    raise InputError(
                        f"{option} {language}: there is no --text in it; the languages are {' '.join(languages)}."
                    )
        for language in self.references:
            if language in self.models:
                raise InputError(
                    f"--reference {language}: there is a --model for this language, too; pass one of them."
                )
        for language in settings.max_perplexity:
            if language not in self.models and language not in self.references:
                raise InputError(
                    f"--max-perplexity {language}: it has no language model; pass --reference {language}=FILE or "
                    f"--model {language}=FILE."
                )
