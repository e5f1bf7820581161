"""The languages of the data sets (`languages.yaml`), and the ten of MRS in the order of Table 1
(Zhang et al. 2021)."""

import re
from dataclasses import dataclass, replace
from functools import cache

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.packaged import read_packaged


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


KNOWN: dict[str, Language] = {
    code: Language(code, **entry) for code, entry in read_packaged("mrs_suggest.common.text", "languages.yaml").items()
}
MRS_CODES = ("en", "es", "de", "pt", "fr", "ja", "sv", "it", "nl", "ru")
LANGUAGES: dict[str, Language] = {code: KNOWN[code] for code in MRS_CODES}


def require_known(code: str, where: str) -> Language:
    """Return any language of the data sets for `code`; `where` (a file, an option) starts the error message."""
    try:
        return KNOWN[code]
    except (KeyError, TypeError):  # TypeError: not a text (YAML reads `no` as false)
        raise InputError(f"{where}: unknown language {code!r}; expected one of {' '.join(KNOWN)}.") from None


def is_made_up(code: str) -> bool:
    """Whether it is a private-use code (ISO 639-3: qaa to qtz), as generated data sets have for their languages."""
    return _PRIVATE_USE.fullmatch(code) is not None


_PRIVATE_USE = re.compile("q[a-t][a-z]")
# BCP-47 without its rarer parts: a language, then a script, then a region.
_CODE = re.compile(r"(?P<language>[a-z]{2,3})(?:-(?P<script>[A-Z][a-z]{3}))?(?:-(?P<region>[A-Z]{2}|\d{3}))?")


@cache
def find_language(code: str) -> Language | None:
    """Any language by its code, such as `pl`, `pt-BR` or `sr-Latn`; None if it is not a code.

    Two letters must be a code of ISO 639-1; three are taken as ISO 639-3 by their form. For a
    language that is not in `languages.yaml` only the name may be known, and the script if it is part of the code.
    """
    if code in KNOWN:
        return KNOWN[code]
    match = _CODE.fullmatch(code)
    if not match:
        return None
    plain = match["language"]
    name = _iso_639_1().get(plain)
    if name is None and len(plain) == 2:
        return None
    language = KNOWN.get(plain) or Language(plain, name or plain, plain if len(plain) == 3 else "", "", "", "")
    further = [part for part in (match["script"], match["region"]) if part]
    shown = f"{language.name} ({', '.join(further)})" if further else language.name
    return replace(language, code=code, name=shown, script=match["script"] or language.script)


def language_name(code: str) -> str:
    """The English name of a language; its code if that is unknown."""
    language = find_language(code)
    return language.name if language else code


def require_any_language(code: str, where: str) -> Language:
    """Return any language for its code (see `find_language`); `where` starts the error message."""
    language = find_language(code)
    if language is None:
        raise InputError(
            f"{where}: unknown language {code!r}; expected a BCP-47 code such as es, pl or pt-BR (ISO 639-1, or three "
            "letters of ISO 639-3)."
        )
    return language


@cache
def _iso_639_1() -> dict[str, str]:
    return dict(read_packaged("mrs_suggest.common.text", "iso639_1.yaml"))
