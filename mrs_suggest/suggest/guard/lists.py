"""The word lists of a language, which find sensitive messages and unfit replies."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.suggest.guard import EVERYDAY, SENSITIVE
from mrs_suggest.suggest.guard.patterns import Phrases, fold, spellings

LISTS, PROTOTYPES = "lists", "prototypes"  # folders, here and in a custom folder
REPLIES = ("slurs", "addresses", "dates", "places")
NEUTRAL = "neutral"
HARMLESS = "harmless"
# Safe, as yaml.safe_load, and ten times as fast with libyaml, which the wheels of PyYAML have.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_HOW = "docs/guard.md shows how phrases are written"
_HIDDEN = " \u241f "  # in place of a harmless phrase: a symbol that no phrase holds


class WordLists:
    """The lists of one language.

    Args:
        content: the mapping of a file in `lists/`.
        where: its name, for errors.

    Raises:
        InputError: a key is unknown, a list does not hold texts, or a phrase is invalid.

    Example:
        >>> lists = WordLists({"harmless": ["killed me"], "self_harm": ["(kill/killed) me"], "slurs": ["twit"]}, "en")
        >>> lists.sensitive("Kill me."), lists.sensitive("That joke killed me!"), lists.holds("slurs", "You twit")
        ('self_harm', None, ['twit'])
    """

    def __init__(self, content: Mapping[str, Any], where: str) -> None:
        self.where = where
        known = ("spaces", "accents", "groups", HARMLESS, *SENSITIVE, *REPLIES, NEUTRAL)
        if unknown := sorted(set(content) - set(known)):
            raise InputError(f"{where}: unknown key {unknown[0]!r}; the keys are {' '.join(known)}.")
        self._spaced, self._accents = bool(content.get("spaces", True)), bool(content.get("accents", True))
        groups = {name: "/".join(_texts(row, f"{where}, {name}")) for name, row in content.get("groups", {}).items()}
        self._groups = groups
        self._phrases = {
            key: _texts(content.get(key) or [], f"{where}, {key}") for key in (HARMLESS, *SENSITIVE, *REPLIES)
        }
        self._finders: dict[str, Phrases] = {}
        self.neutral = {
            code: _texts(row, f"{where}, {NEUTRAL}, {code}") for code, row in (content.get(NEUTRAL) or {}).items()
        }
        if wrong := sorted(set(self.neutral) - set(SENSITIVE)):
            raise InputError(f"{where}, {NEUTRAL}: {wrong[0]!r} is not a reason; they are {' '.join(SENSITIVE)}.")

    def check(self) -> None:
        """Compile every phrase; InputError if one is invalid."""
        for key in self._phrases:
            try:
                self._finder(key).compile_all()
            except re.error as error:
                raise InputError(f"{self.where}, {key}: {error}; {_HOW}.") from None

    def sensitive(self, message: str) -> str | None:
        """The reason not to answer a message, or None."""
        harmless = self._finder(HARMLESS)
        texts = [harmless.without(text, _HIDDEN) for text in spellings(fold(message, self._accents))]
        return next((reason for reason in SENSITIVE if any(map(self._finder(reason).first, texts))), None)

    def without_harmless(self, message: str) -> str:
        """The message without its harmless phrases, folded; without any, the message itself."""
        folded = fold(message, self._accents)
        rest = self._finder(HARMLESS).without(folded, " ")
        return message if rest == folded else " ".join(rest.split())

    def holds(self, key: str, text: str) -> list[str]:
        """The phrases of a list, one of `REPLIES`, that a text holds, folded."""
        return self._finder(key).every(fold(text, self._accents))

    def _finder(self, key: str) -> Phrases:
        if key not in self._finders:
            try:
                self._finders[key] = Phrases(self._phrases[key], self._groups, self._spaced, self._accents)
            except ValueError as error:
                raise InputError(f"{self.where}, {key}: {error}; {_HOW}.") from None
        return self._finders[key]


class GuardData(Mapping[str, WordLists]):
    """Language -> its word lists, each read on first use; and the example messages of all languages.

    Args:
        folder: with `lists/LANG.yaml` or `prototypes/LANG.yaml`, which replace those of the package.

    Raises:
        InputError: the folder has neither, or a file is damaged.
    """

    def __init__(self, folder: Path | None = None) -> None:
        own = Path(str(resources.files(__package__)))
        if folder is not None and not any((folder / name).is_dir() for name in (LISTS, PROTOTYPES)):
            raise InputError(f"{folder}: no {LISTS}/ or {PROTOTYPES}/ folder; docs/guard.md shows what is in them.")
        self._files: dict[str, dict[str, Path]] = {LISTS: {}, PROTOTYPES: {}}
        for kind, files in self._files.items():
            for place in (own, *([folder] if folder else [])):
                files |= {path.stem: path for path in sorted((place / kind).glob("*.yaml"))}
            if wrong := sorted(set(files) - set(LANGUAGES)):
                raise InputError(f"{files[wrong[0]]}: {wrong[0]!r} is not the code of a language; name it LANG.yaml.")
        self._read: dict[str, WordLists] = {}
        self.own_examples = folder is not None and (folder / PROTOTYPES).is_dir()

    def __getitem__(self, language: str) -> WordLists:
        if language not in self._read:
            path = self._files[LISTS][language]
            self._read[language] = WordLists(_mapping(path), str(path))
        return self._read[language]

    def __iter__(self) -> Iterator[str]:
        return iter(self._files[LISTS])

    def __len__(self) -> int:
        return len(self._files[LISTS])

    @cached_property
    def prototypes(self) -> dict[str, dict[str, list[str]]]:
        """Language -> reason, or `everyday` -> example messages."""
        return {language: self._examples(path) for language, path in sorted(self._files[PROTOTYPES].items())}

    def prototypes_for(self, languages: Iterable[str]) -> dict[str, dict[str, list[str]]]:
        """The examples for a model of these languages: theirs, or all if a language lacks examples."""
        paths = self._files[PROTOTYPES]
        if not set(languages) <= set(paths):
            return self.prototypes
        return {language: self._examples(paths[language]) for language in sorted(set(languages))}

    def _examples(self, path: Path) -> dict[str, list[str]]:
        content = _mapping(path)
        known = (*SENSITIVE, EVERYDAY)
        if unknown := sorted(set(content) - set(known)):
            raise InputError(f"{path}: unknown key {unknown[0]!r}; the keys are {' '.join(known)}.")
        return {key: _texts(row, f"{path}, {key}") for key, row in content.items()}


def _mapping(path: Path) -> dict[str, Any]:
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_LOADER)
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        problem = " ".join(str(error).split())
        raise InputError(f"{path}: cannot be read ({problem}); expected YAML with lists of texts.") from None
    if not isinstance(content, dict) or not all(isinstance(key, str) for key in content):
        raise InputError(f"{path}: expected YAML with a mapping of names to lists of texts.")
    return content


def _texts(row: Any, where: str) -> list[str]:
    if not isinstance(row, Sequence) or isinstance(row, str) or not all(isinstance(text, str) for text in row):
        raise InputError(f"{where}: expected a list of texts; quote words that YAML would convert, such as no.")
    return list(row)
