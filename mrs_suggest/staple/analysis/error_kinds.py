"""Kinds of errors (section 4.5 of the paper): what distinguishes two translations, by rules and lists of words.

`kind_of` compares the words of a prediction and of the nearest accepted translation, or the other way round:

1. Words that both have are set aside; if they stand in another order, that is a difference of word order.
2. The other words are paired: by a stem in common, then by their places; what is left over stands alone.
3. A pair or a single word is a difference of number words, pronouns, loanwords, verb suffixes or declension if a list
   of `mrs_suggest.staple.analysis.error_words` says so; where two endings of one stem could be a verb's or a noun's,
   the words before decide, and else the longer endings. A particle that comes with a word goes with its kind. All else
   is `other`.
4. One kind of difference is the pair's kind, two of them are `several`; with an `other` it is `other`, and
   `over_generated` if more than half of the words differ by others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher

from mrs_suggest.staple.analysis.error_words import Class, ErrorWords, letters

WORD_ORDER, PRONOUN, NUMBER, VERB_SUFFIX, DECLENSION, LOANWORD = KNOWN = (
    "word_order", "pronoun", "number", "verb_suffix", "declension", "loanword",
)  # fmt: skip
SEVERAL, OTHER, OVER_GENERATED, NOT_FOUND = "several", "other", "over_generated", "nothing_near"
PRECISION_KINDS = (*KNOWN, SEVERAL, OTHER, OVER_GENERATED)
RECALL_KINDS = (*KNOWN, SEVERAL, OTHER, NOT_FOUND)
FAR = 0.5  # ours: beyond that share of words that differ by `other`, translations are not near
STEM = 2  # letters that two forms of a word share at least; written with Chinese characters, one
JAMO = 2  # letters of a Hangul stem's last syllable that may change with the ending (예쁘-네요, 예뻐-요)
STEM_SHARE = 0.4  # of the shorter form's letters; ours


@dataclass
class _Sides:
    """The words of both translations, and the places of those that the other one lacks."""

    left: Sequence[str]
    right: Sequence[str]
    left_only: list[int] = field(default_factory=list)
    right_only: list[int] = field(default_factory=list)


def kind_of(left: Sequence[str], right: Sequence[str], lists: ErrorWords) -> str:
    """The kind of the difference of two translations, one of `PRECISION_KINDS`.

    Args:
        left, right: their words, as `ErrorWords.cut` gives them.

    >>> from mrs_suggest.staple.analysis.error_words import error_words
    >>> pt = error_words("pt")
    >>> kind_of(pt.cut("não fume por favor"), pt.cut("por favor não fume"), pt)
    'word_order'
    >>> kind_of(pt.cut("gosto disso"), pt.cut("eu gosto disso"), pt)
    'pronoun'
    """
    sides = _Sides(left, right)
    sides.left_only, sides.right_only = _only(left, right), _only(right, left)
    kinds = [WORD_ORDER] if _reordered(sides) else []
    pairs = _by_stem(sides)
    pairs += _by_place(sides, pairs)
    paired_left, paired_right = {x for x, _ in pairs}, {y for _, y in pairs}
    for x, y in pairs:
        kinds += _of_pair(sides, x, y, lists)
    kinds += _of_singles(left, [x for x in sides.left_only if x not in paired_left], lists)
    kinds += _of_singles(right, [y for y in sides.right_only if y not in paired_right], lists)
    others = kinds.count(OTHER)
    if others > FAR * max(len(left), len(right)):
        return OVER_GENERATED
    if others or not kinds:
        return OTHER
    return kinds[0] if len(set(kinds)) == 1 else SEVERAL


def _only(words: Sequence[str], others: Sequence[str]) -> list[int]:
    """Places of words that the other side lacks; of a word that comes more often here, the last ones."""
    spare = Counter(others)
    found = []
    for place, word in enumerate(words):
        if spare[word]:
            spare[word] -= 1
        else:
            found.append(place)
    return found


def _reordered(sides: _Sides) -> bool:
    """Whether the words that both have stand in another order."""
    left_only, right_only = set(sides.left_only), set(sides.right_only)
    left = [word for place, word in enumerate(sides.left) if place not in left_only]
    return left != [word for place, word in enumerate(sides.right) if place not in right_only]


def _by_stem(sides: _Sides) -> list[tuple[int, int]]:
    """Pairs of places whose words share a stem, the longest stems first."""
    found = []
    for x in sides.left_only:
        for y in sides.right_only:
            if size := stem_length(sides.left[x], sides.right[y]):
                found.append((-size, abs(x - y), x, y))
    taken: list[tuple[int, int]] = []
    for _, _, x, y in sorted(found):
        if all(x != a and y != b for a, b in taken):
            taken.append((x, y))
    return taken


def _by_place(sides: _Sides, taken: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs of further places where one word stands for another."""
    left_taken, right_taken = {x for x, _ in taken}, {y for _, y in taken}
    left_open, right_open = set(sides.left_only) - left_taken, set(sides.right_only) - right_taken
    matcher = SequenceMatcher(None, list(sides.left), list(sides.right), autojunk=False)
    found = []
    for tag, start, end, other_start, other_end in matcher.get_opcodes():
        if tag == "replace":
            mine = [x for x in range(start, end) if x in left_open]
            theirs = [y for y in range(other_start, other_end) if y in right_open]
            found += list(zip(mine, theirs, strict=False))
    return found


def stem_length(a: str, b: str) -> int:
    """How many letters the stem has that two words share; 0 if they share none.

    >>> stem_length("kertbe", "kerthez"), stem_length("gosto", "tarde")
    (4, 0)
    """
    a, b = letters(a), letters(b)
    size = _shared(a, b)
    least = 1 if a[:1] >= "\u3400" and a[:1] <= "\u9fff" else STEM
    return size if size >= max(least, STEM_SHARE * min(len(a), len(b))) else 0


def _shared(a: str, b: str) -> int:
    """How many characters both begin with."""
    return next((place for place, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


def _of_pair(sides: _Sides, x: int, y: int, lists: ErrorWords) -> list[str]:
    """The kinds of the difference between two paired words."""
    left, right = sides.left[x], sides.right[y]
    if lists.is_number(left) or lists.is_number(right):
        return [NUMBER]
    mine, theirs = lists.pronoun(left), lists.pronoun(right)
    if any(left in forms and right in forms for forms in lists.nouns.forms):
        return [DECLENSION]
    if mine and theirs:
        return [DECLENSION if mine == theirs else PRONOUN]
    if lists.is_loan(left) != lists.is_loan(right):
        return [LOANWORD]
    if left in lists.nouns.words and right in lists.nouns.words:
        return [DECLENSION]
    if left in lists.verbs.words and right in lists.verbs.words:
        return [VERB_SUFFIX]
    if stem_length(left, right):
        return [_of_endings(sides, x, y, lists)]
    if mine or theirs or {left, right} & (lists.nouns.words | lists.verbs.words):
        return [_of_word(left, lists), _of_word(right, lists)]
    return [OTHER]


def _of_endings(sides: _Sides, x: int, y: int, lists: ErrorWords) -> str:
    """Verb suffix or declension, for two words with one stem."""
    left, right = sides.left[x], sides.right[y]
    verb, noun = _endings_length(left, right, lists.verbs), _endings_length(left, right, lists.nouns)
    if verb and noun:
        before = {*sides.left[max(0, x - 1) : x], *sides.right[max(0, y - 1) : y]}
        after_verb, after_noun = bool(before & lists.verbs.after), bool(before & lists.nouns.after)
        if after_verb != after_noun:
            return VERB_SUFFIX if after_verb else DECLENSION
        if verb == noun:
            return OTHER
        return VERB_SUFFIX if verb > noun else DECLENSION
    return VERB_SUFFIX if verb else DECLENSION if noun else OTHER


def _endings_length(left: str, right: str, words: Class) -> int:
    """The length of the endings of a class that account for what two words do not share; 0 if none do.

    A word without any rest needs no ending.
    """
    stem = _shared(letters(left), letters(right))
    total = 0
    for word in (left, right):
        rest = len(letters(word)) - stem
        fitting = (len(letters(end)) for end in words.endings if letters(word).endswith(letters(end)))
        slack = JAMO if letters(word) != word else 0
        size = next((size for size in fitting if rest <= size + slack and size < len(letters(word))), 0)
        if rest and not size:
            return 0
        total += size if rest else 0
    return total


def _of_singles(words: Sequence[str], places: Sequence[int], lists: ErrorWords) -> list[str]:
    """The kinds of words that nothing stands for on the other side."""
    alone = set(places)
    found = []
    for place in places:
        particle = words[place] in lists.nouns.words
        if particle and place - 1 in alone and words[place - 1] not in lists.nouns.words:
            continue  # it comes with the word before it
        found.append(_of_word(words[place], lists))
    return found


def _of_word(word: str, lists: ErrorWords) -> str:
    if lists.is_number(word):
        return NUMBER
    if lists.pronoun(word):
        return PRONOUN
    if lists.is_loan(word):
        return LOANWORD
    if word in lists.verbs.words:
        return VERB_SUFFIX
    return DECLENSION if word in lists.nouns.words else OTHER
