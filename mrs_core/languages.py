"""The languages that the data sets have (`languages.yaml`), and the ten of MRS in the order of Table 1
(Zhang et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import yaml

from mrs_core.errors import InputError


@dataclass(frozen=True)
class Language:
    """One language.

    Attributes:
        code: BCP-47 (here always the two letters of ISO 639-1).
        iso3: ISO 639-3, as URIEL names the language.
        family: as the XCOPA paper names it (Ponti et al. 2020, section 2).
        area: one of the six macro-areas of WALS.
        script: ISO 15924.
        branch: the family as Table 1 of MRS names it; empty for a language that MRS does not have.
    """

    code: str
    name: str
    iso3: str
    family: str
    script: str
    area: str
    branch: str = ""


def _read() -> dict[str, Language]:
    entries = yaml.safe_load(resources.files("mrs_core").joinpath("languages.yaml").read_text(encoding="utf-8"))
    return {code: Language(code, **entry) for code, entry in entries.items()}


KNOWN: dict[str, Language] = _read()
MRS_CODES = ("en", "es", "de", "pt", "fr", "ja", "sv", "it", "nl", "ru")
LANGUAGES: dict[str, Language] = {code: KNOWN[code] for code in MRS_CODES}


def require_language(code: str, where: str) -> Language:
    """Return the language of MRS for `code`; `where` starts the sentence of the error (a file, an option)."""
    try:
        return LANGUAGES[code]
    except KeyError:
        raise InputError(f"{where}: unknown language {code!r}; MRS has {' '.join(LANGUAGES)}.") from None


def require_known(code: str, where: str) -> Language:
    """Return any language of the data sets for `code`; `where` starts the sentence of the error."""
    try:
        return KNOWN[code]
    except (KeyError, TypeError):  # the latter: YAML gave no text (`no` is false there)
        raise InputError(f"{where}: unknown language {code!r}; mrs_core/languages.yaml describes the known.") from None
