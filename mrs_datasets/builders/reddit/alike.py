"""Whether two texts mean the same: they differ in a typing error, or, if they are long, in few words."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import cache
from itertools import chain
from os.path import commonprefix

from mrs_datasets.readers.sample import PACKAGE
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.text import Table, normalise_reply

THRESHOLD = 0.8  # the Jaccard index of the shingles of long texts that are alike
SHINGLE = 5  # characters; a shorter text has one shingle, itself
OFTEN, RATIO = 5, 100  # a rare word is in fewer texts, or in less than a hundredth as many as the word in its place
LEAST, LEAST_KANA = 6, 4  # letters of a text that may have a typing error; of one with kana
NAMELESS = "de"  # where nouns are capitalised as names are
_SIGNS = Table(lambda c: "'" if c in "'’" else None if c != " " and unicodedata.category(c)[0] in "PZC" else c)
_VOWELS = frozenset("aeiouаеиоуыюя")
KANA = frozenset(map(chr, (*range(0x3041, 0x3097), *range(0x30A1, 0x30FB), 0x30FC)))
_PARTICLES = frozenset("かがでとなにねのはへもやよわを")
_MARK, FEWEST = "_", 1_000  # begins a sequence of letters, and no word; counts texts with kana: so many are needed
_OTHER_WORD = re.compile(  # a demonstrative, a name before a title, a word in katakana, an inflection
    r"(.*)[こそあど]?(.*)\n\1[こそあど]?\2"
    r"|(.*)[ぁ-ヺー]?([ぁ-ヺー]{,3}(?:さ[んま]|ちゃん|くん|[君様]).*)\n\3[ぁ-ヺー]?\4"
    r"|((?:.*[^ァ-ヺー])?)[ァ-ヺー]{1,5}((?:[^ァ-ヺー].*)?)\n\5[ァ-ヺー]{1,5}\6"
    r"|(.*)[いうえかきくけげさしすせただつってでなべまみむめらりるれわ]?((?:[いかたてなねまよるん].*)?)"
    r"\n\7[いうえかきくけげさしすせただつってでなべまみむめらりるれわ]?\8"
)
_SHAPE, _OTHERS = Table(lambda c: c if c in KANA else "漢"), Table(lambda c: None if c in KANA else c)
_NEGATIONS = frozenset(read_packaged("mrs_datasets.builders.reddit", "negations.yaml"))


def count_words(texts: Iterable[str], language: str) -> Counter[str]:
    """How many of the different texts, and of those of `mrs-everyday` in the language, have each word.

    And each of the `_sequences` of words with kana; those in `mrs-everyday`, which has no errors, count as common.
    """
    lines, counts = _everyday(language)
    return counts + Counter(chain.from_iterable(map(_different_words, {*texts} - lines)))


@cache
def _everyday(language: str) -> tuple[frozenset[str], Counter[str]]:
    """The lines of `mrs-everyday` in a language, and their words and sequences, as in `count_words`."""
    own = PACKAGE / "everyday" / f"{language}.txt"
    lines = frozenset(own.read_text(encoding="utf-8").splitlines() if own.is_file() else ())
    counts = Counter(chain.from_iterable(map(_different_words, lines)))
    return lines, counts + Counter({entry: OFTEN for entry in counts if entry[0] == _MARK})


def alike(one: str, other: str, counts: Counter[str], language: str) -> bool:
    """Whether texts are equal up to case and punctuation, have one typing error, or are long and nearly equal.

    A typing error is a letter too many, too few or wrong, or two that are exchanged, if it makes a word rare: `counts`
    has how many texts have a word. In Japanese, see `kana_error`. No other word may be replaced. Texts whose `jaccard`
    index is at least `THRESHOLD` may also have several such errors and added words. Texts with different numbers,
    symbols, negations or capitalised words (those may be names) are not alike.
    """
    letters, others = normalise_reply(one), normalise_reply(other)
    if letters == others:
        return True
    long = jaccard(letters, others) >= THRESHOLD
    if not long and not one_error(letters, others):
        return False
    (before, names), (after, more) = _words(one), _words(other)
    for tag, start, end, begin, stop in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gone, come = before[start:end], after[begin:stop]
        words, negated = (*gone, *come), not _NEGATIONS.isdisjoint((*gone, *come))
        if tag == "equal":
            continue
        if tag == "replace" and not KANA.isdisjoint("".join(words)):
            if not kana_error("".join(gone), "".join(come), counts):
                return False
            continue
        named = language != NAMELESS and any((*names[start:end], *more[begin:stop]))
        if named or not all(word.replace("'", "").isalpha() for word in words):
            return False
        if tag != "replace" and (negated or not long):
            return False
        few, many = sorted(min((counts[word] for word in side), default=0) for side in (gone, come))
        rare = few < OFTEN or (few * RATIO < many and not negated)
        if tag == "replace" and not (rare and one_error("".join(gone), "".join(come))):
            return False
    return True


def one_error(one: str, other: str) -> bool:
    """Whether words are equal, or become so by one letter: inserted, left out, changed, or exchanged with the next.

    Another vowel at the end is another form of the word, and another particle another sentence (in Japanese, where only
    kana are letters, since others are converted).
    """
    for _ in range(2):  # what begins alike, then what ends alike
        shared = commonprefix((one, other))  # noqa: RUF071
        one, other = one[len(shared) :][::-1], other[len(shared) :][::-1]
    if len(one) > 1 or len(other) > 1:
        return len(one) == 2 and one == other[::-1] and (one.lower() != one.upper() or not KANA.isdisjoint(one))
    letters = one + other
    if letters and KANA.issuperset(letters):
        return not _PARTICLES.issuperset(letters if len(letters) == 2 else letters + shared)
    if not all(letter.lower() != letter.upper() for letter in letters):
        return not letters.strip("'")
    return bool(shared) or len(letters) < 2 or not _VOWELS.issuperset(letters)


def kana_error(one: str, other: str, counts: Counter[str]) -> bool:
    """Whether words have `one_error` in their kana, which makes all sequences of letters rare that were common.

    Japanese has no spaces between words: sequences of at least `FEWEST` texts take their place. Where a change may
    make an `_OTHER_WORD`, it is no error.
    """
    error = one_error(one, other) and one.translate(_OTHERS) == other.translate(_OTHERS) and counts[_MARK] >= FEWEST
    kinds = [(a - b, b - a) for a, b in zip(_sequences(one), _sequences(other), strict=True)]
    common = {tuple(all(counts[found] >= OFTEN for found in side) for side in kind) for kind in kinds}
    rare = common in ({(True, False)}, {(False, True)})
    return error and rare and not _OTHER_WORD.fullmatch(f"{one}\n{other}")


def jaccard(one: str, other: str) -> float:
    """The Jaccard index of the shingles of two texts."""
    a, b = ({text[at : at + SHINGLE] for at in range(max(1, len(text) - SHINGLE + 1))} for text in (one, other))
    return len(a & b) / len(a | b)


def _different_words(text: str) -> set[str]:
    """Those of `_words`; of all texts of a language, so without what only candidates need."""
    words = (plain := _plain(_parts(text))).split(" ")
    found = set(words if "'" not in plain else [word.strip("'") for word in words]) - {""}
    return found if KANA.isdisjoint(plain) else found.union({_MARK}, *chain.from_iterable(map(_sequences, found)))


def _sequences(word: str) -> list[set[str]]:
    """Sequences of letters of a word, marked: three; three, and five, where all letters but kana are the same."""
    forms = (f" {word} ", 3), (shape := f" {word.translate(_SHAPE)} ", 3), (shape, 5)
    return [{_MARK + form[at : at + length] for at in range(len(form) - length + 1)} for form, length in forms]


def _words(text: str) -> tuple[list[str], list[bool]]:
    """The words of a text without case and punctuation, and which of them are capitalised inside a sentence."""
    parts = _parts(text)
    words, capitalised, inside = [], [], False
    for part, kept in zip(parts, _plain(parts).split(" "), strict=False):
        if word := kept.strip("'"):
            words.append(word)
            capitalised.append(inside and part[0].isupper() and word.partition("'")[0] != "i")
        inside = part[-1] not in ".!?:"
    return words, capitalised


def _parts(text: str) -> list[str]:
    return unicodedata.normalize("NFKC", text).split()


def _plain(parts: list[str]) -> str:
    """The parts of a text, with spaces between them, without case and without punctuation other than apostrophes."""
    return " ".join(parts).casefold().translate(_SIGNS)
