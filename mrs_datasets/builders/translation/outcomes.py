"""What became of a translated text: kept, or dropped for a reason."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from mrs_suggest.common.text.language_id import is_other_language
from mrs_suggest.common.text.text import is_blank, normalise_reply
from mrs_suggest.common.text.text_services import Translator

KEPT, NONE, TOO_LONG, COPY, OTHER_LANGUAGE = range(5)
REASONS = {
    NONE: "no translation",
    TOO_LONG: "too long for the model",
    COPY: "copy of the source",
    OTHER_LANGUAGE: "other language",
}
_MASK = re.compile(r"<[a-z]+>")  # what a build puts in place of links, names and addresses
_WORD = re.compile(r"[^\W\d_](?:[\w'’]*\w)?")  # begins with a letter


class Identifier(Protocol):
    """Names the language of texts, such as `mrs_suggest.common.text.language_id.LanguageIdentifier`."""

    def identify(self, texts: Sequence[str]) -> list[tuple[str, float]]: ...
    def knows(self, code: str) -> bool: ...


def is_copy(text: str, translation: str) -> bool:
    """Whether a translation is its source, but for case and punctuation.

    A text is not taken for copied where equal texts are right in both languages: without letters outside `<url>` and
    the like, of a single word, or of capitalised words alone, which are names. In a script without spaces between
    words, a text without spaces counts as one word.

    >>> is_copy("See you later!", "see you later."), is_copy("Harry Potter", "Harry Potter")
    (True, False)
    """
    words = _WORD.findall(_MASK.sub(" ", text))
    if len(words) < 2 or all(word[0].isupper() for word in words):
        return False
    return normalise_reply(text) == normalise_reply(translation)


def outcomes(
    translations: Mapping[str, str], translator: Translator, identifier: Identifier | None, source: str, target: str
) -> dict[str, int]:
    """What became of each text: text -> one of `KEPT`, `NONE`, `TOO_LONG`, `COPY`, `OTHER_LANGUAGE`.

    The language is another one if the identifier is surer of that than of MRS's own threshold
    (`mrs_suggest.common.text.language_id.is_other_language`); a language that it does not know is not checked.
    """
    found = dict.fromkeys(translations, KEPT)
    empty = [text for text, translation in translations.items() if is_blank(translation)]
    for text, fits in zip(empty, translator.fits(empty, source, target) if empty else [], strict=True):
        found[text] = NONE if fits else TOO_LONG
    there = [text for text, code in found.items() if code == KEPT]
    found.update((text, COPY) for text in there if is_copy(text, translations[text]))
    there = [text for text in there if found[text] == KEPT]
    if identifier is not None and there and identifier.knows(target.partition("-")[0]):
        answers = identifier.identify([translations[text] for text in there])
        found.update(
            (text, OTHER_LANGUAGE)
            for text, answer in zip(there, answers, strict=True)
            if is_other_language(answer, target)
        )
    return found
