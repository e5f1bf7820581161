"""A translator that reads a dictionary: word for word, as a baseline and for languages without a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from mrs_datasets.texts.dictionary_texts import TermReplacer, read_dictionary
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.common.text.text_services import ServiceFacts

PREFIX = "dictionary:"
MOST = 1_000_000  # entries that are read


class DictionaryTranslator:
    """Replaces the terms of a text by their translations (`mrs_datasets.texts.dictionary_texts.TermReplacer`).

    A text without a term of the dictionary has no translation. The file says nothing of languages, so any direction is
    taken.

    Args:
        file: lines of term, tab, translation, and perhaps a tab and a confidence.

    Raises:
        InputError: the file cannot be read.
    """

    def __init__(self, file: Path) -> None:
        if not file.is_file():
            raise InputError(f"--translator {PREFIX}{file}: no such file; expected lines of term, tab, translation.")
        self._file = file
        self._replacer = TermReplacer(read_dictionary(file, MOST))
        self._facts = ServiceFacts("dictionary", file.name, content_hash([file]))

    def __reduce__(self) -> tuple[type[DictionaryTranslator], tuple[Path]]:
        return DictionaryTranslator, (self._file,)

    @property
    def facts(self) -> ServiceFacts:
        return self._facts

    @property
    def settings(self) -> Mapping[str, object]:
        return {}

    def require(self, source: str, target: str) -> None:
        """A dictionary does not name its languages."""

    def translate(self, texts: Sequence[str], source: str, target: str) -> list[str]:
        found = []
        for text in texts:
            before = self._replacer.replaced
            translation = self._replacer(text)
            found.append(translation if self._replacer.replaced > before else "")
        return found

    def fits(self, texts: Sequence[str], source: str, target: str) -> list[bool]:
        return [True] * len(texts)
