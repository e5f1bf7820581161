"""Stage 1, clean: a line of text normalised, and the rules by which it stays; the key by which two lines are equal."""

import hashlib
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrs_datasets.builders.reddit.clean import CleanRules, clean_column
from mrs_suggest.common.text.text import Table

NOT_UTF8 = "not UTF-8"
EMPTY = "empty"
TOO_SHORT = "too short"
TOO_LONG = "too long"
FEW_LETTERS = "mostly not letters"

# Least share of letters and marks among the characters that are not white space. Ours: Rae et al. 2021 ("Gopher",
# appendix A.1.1) ask for a letter in 80 % of the words, but not all scripts have spaces.
MIN_LETTERS = 0.5

# Invisible in running text, and no part of a word: the byte-order mark, soft hyphen, word joiner, and what reorders
# text (UAX 9). Joiners stay, since Persian, Indic scripts and emoji spell with them.
_DROPPED = {0xFEFF, 0xAD, 0x2060, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFFFE, 0xFFFF}
_ACCENTS = range(0x300, 0x370)  # of Latin, Greek and Cyrillic letters; marks of other scripts are often vowels
_HALF_PAIR = re.compile("[\ud800-\udfff]")


def _visible(character: str) -> str | None:
    invisible = ord(character) in _DROPPED or (unicodedata.category(character) == "Cc" and not character.isspace())
    return None if invisible else character


def _of_key(character: str) -> str | None:
    category = unicodedata.category(character)
    return "0" if category == "Nd" else None if category[0] == "P" or ord(character) in _ACCENTS else character


_VISIBLE, _OF_KEY = Table(_visible), Table(_of_key)


@dataclass(frozen=True)
class LineRules:
    """Changes to a line, and the conditions for keeping it.

    Attributes:
        repair: wrongly decoded characters are repaired and HTML tags left out, as in the build's profile `clean`.
        mask: links, users' names, e-mail and IP addresses and telephone numbers become masks, as in the build.
        min_characters: ours; a shorter line is a heading or a button more often than a sentence. It is low since a
            sentence in Chinese or Japanese has few characters.
        max_characters: ours; longer lines are files without line ends. CCNet's documents are web pages, which stay.
    """

    repair: bool = False
    mask: bool = False
    min_characters: int = 10
    max_characters: int = 100_000


def normalise_line(text: str) -> str:
    """NFC (which changes no letter, unlike NFKC), single spaces, without control characters and invisible marks.

    >>> normalise_line("\\ufeff Cafe\\u0301\\t\\x00 so\\u00adlo ")
    'Café solo'
    """
    if not text.isascii() or not text.isprintable():
        text = unicodedata.normalize("NFC", text.translate(_VISIBLE))
    return " ".join(text.split())


def key_text(text: str) -> str:
    """The form by which two lines are duplicates: CCNet's (Wenzek et al. 2020, section 3.2).

    Lower case, digits as 0, without punctuation and accents. Accents of Latin, Greek and Cyrillic letters alone are
    left out (ours). A text of punctuation alone stays as it is.

    >>> key_text("Él llegó el 3.") == key_text("el llego el 7")
    True
    """
    folded = text.casefold()
    if not folded.isascii():
        folded = unicodedata.normalize("NFD", folded)
    return " ".join(folded.translate(_OF_KEY).split()) or text


def line_keys(texts: Sequence[str]) -> NDArray[np.uint64]:
    """(n,) the first 64 bits of SHA-1 of each text's key, as in CCNet: equal for duplicates on every machine."""
    digests = b"".join(hashlib.sha1(key_text(text).encode(), usedforsecurity=False).digest()[:8] for text in texts)
    return np.frombuffer(digests, dtype="<u8").astype(np.uint64)


def clean_lines(
    lines: Sequence[str], rules: LineRules, dropped: Counter[str], repairs: Counter[str] | None = None
) -> list[str]:
    """The normalised lines that stay, in their order.

    Args:
        lines: bytes that were not UTF-8 are lone surrogates.
        dropped: one is added for the first rule, in the order of the reasons above, that a line breaks.
        repairs: see `mrs_datasets.builders.reddit.clean.clean_column`.
    """
    whole = [line for line in lines if line.isascii() or not _HALF_PAIR.search(line)]
    dropped[NOT_UTF8] += len(lines) - len(whole)
    texts = [normalise_line(line) for line in whole]
    if rules.repair or rules.mask:
        reddit = CleanRules(markdown=False, masks=rules.mask, repairs=rules.repair)
        short = [place for place, text in enumerate(texts) if len(text) <= rules.max_characters]
        column = pa.array([whole[place] for place in short], pa.string())
        # wrongly decoded letters hold control characters
        for place, text in zip(short, clean_column(column, reddit, repairs).to_pylist(), strict=True):
            texts[place] = normalise_line(text)
    found = []
    for text in texts:
        if not text:
            dropped[EMPTY] += 1
        elif len(text) < rules.min_characters:
            dropped[TOO_SHORT] += 1
        elif len(text) > rules.max_characters:
            dropped[TOO_LONG] += 1
        else:
            found.append(text)
    enough = letter_shares(found) >= MIN_LETTERS
    dropped[FEW_LETTERS] += int((~enough).sum())
    return [text for text, stays in zip(found, enough, strict=True) if stays]


def letter_shares(texts: Sequence[str]) -> NDArray[np.float64]:
    """(n,) the share of letters and marks among each text's characters that are not white space; 0 without any."""
    if not texts:
        return np.empty(0)
    codes = np.frombuffer("\n".join([*texts, ""]).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    kinds = _kinds()[codes]
    number = np.cumsum(codes == ord("\n"))
    of_text = np.concatenate([[0], number[:-1]])
    letters = np.bincount(of_text[kinds == _LETTER], minlength=len(texts))
    solid = np.bincount(of_text[kinds != _SPACE], minlength=len(texts))
    return np.divide(letters, solid, out=np.zeros(len(texts)), where=solid > 0)


_OTHER, _LETTER, _SPACE = range(3)


@cache
def _kinds() -> NDArray[np.uint8]:
    """The kind of each code point."""
    kinds = [
        _LETTER if unicodedata.category(c)[0] in "LM" else _SPACE if c.isspace() else _OTHER
        for c in map(chr, range(0x110000))
    ]
    return np.array(kinds, dtype=np.uint8)
