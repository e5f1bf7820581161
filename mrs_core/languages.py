"""The ten languages of MRS, in the order of Table 1 (Zhang et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

from mrs_core.errors import InputError


@dataclass(frozen=True)
class Language:
    """One language: `code` is BCP-47 (here always the ISO 639-1 code), `family` as the data set's paper names it,
    `area` its macro-area."""

    code: str
    name: str
    family: str
    script: str
    area: str = "Eurasia"


LANGUAGES: dict[str, Language] = {
    language.code: language
    for language in (
        Language("en", "English", "West Germanic", "Latn"),
        Language("es", "Spanish", "Romance", "Latn"),
        Language("de", "German", "West Germanic", "Latn"),
        Language("pt", "Portuguese", "Romance", "Latn"),
        Language("fr", "French", "Romance", "Latn"),
        Language("ja", "Japanese", "Japonic", "Jpan"),
        Language("sv", "Swedish", "North Germanic", "Latn"),
        Language("it", "Italian", "Romance", "Latn"),
        Language("nl", "Dutch", "West Germanic", "Latn"),
        Language("ru", "Russian", "East Slavic", "Cyrl"),
    )
}


def require_language(code: str, where: str) -> Language:
    """Return the language for `code`; `where` starts the sentence of the error (a file, an option)."""
    try:
        return LANGUAGES[code]
    except KeyError:
        raise InputError(f"{where}: unknown language {code!r}; MRS has {' '.join(LANGUAGES)}.") from None
