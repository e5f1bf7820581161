"""The script of a text: enough to see that a file is not in its language's script."""

import unicodedata
from functools import lru_cache

from mrs_suggest.common.io.packaged import read_packaged

MIN_LETTERS = 5  # "OK", "lol" and names are in Latin letters in any language

_NAMES = {script: tuple(names) for script, names in read_packaged("mrs_suggest.common.text", "scripts.yaml").items()}


def knows_script(script: str) -> bool:
    """Whether the letters of a script (ISO 15924) are known here."""
    return script in _NAMES


def in_other_script(text: str, script: str) -> bool:
    """Whether a text has `MIN_LETTERS` letters or more, and none of them is of the script (ISO 15924).

    Raises:
        KeyError: a script that `knows_script` does not know.

    >>> in_other_script("Guten Morgen", "Cyrl"), in_other_script("OK, понял", "Cyrl"), in_other_script("OK!", "Cyrl")
    (True, False, False)
    """
    own = _NAMES[script]
    letters = 0
    for character in text:
        if character.isalpha():
            if _name(character).startswith(own):
                return False
            letters += 1
    return letters >= MIN_LETTERS


@lru_cache(maxsize=1 << 16)
def _name(letter: str) -> str:
    return unicodedata.name(letter, "").removeprefix("FULLWIDTH ").removeprefix("HALFWIDTH ")
