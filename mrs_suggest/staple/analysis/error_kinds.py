"""Kinds of errors (section 4.5 of the paper): differences between two translations, by rules and word lists.

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

from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from mrs_suggest.staple.analysis.error_words import Class, ErrorWords, letters

TITLES = {
    "word_order": "word order",
    "pronoun": "pronouns",
    "number": "number words",
    "verb_suffix": "verb suffixes",
    "declension": "declension, particles",
    "loanword": "loanwords",
    "several": "several of these",
    "other": "other, undecided",
    "over_generated": "over-generated",
    "nothing_near": "nothing near",
}
*KNOWN, SEVERAL, OTHER, OVER_GENERATED, NOT_FOUND = TITLES
WORD_ORDER, PRONOUN, NUMBER, VERB_SUFFIX, DECLENSION, LOANWORD = KNOWN
PRECISION_KINDS = (*KNOWN, SEVERAL, OTHER, OVER_GENERATED)
RECALL_KINDS = (*KNOWN, SEVERAL, OTHER, NOT_FOUND)
FAR = 0.5  # ours: beyond that share of words that differ by `other`, translations are not near
STEM = 2  # letters that two forms of a word share at least; written with Chinese characters, one
JAMO = 2  # letters of a Hangul stem's last syllable that may change with the ending (예쁘-네요, 예뻐-요)
STEM_SHARE = 0.4  # of the shorter form's letters; ours


def kind_of(left: Sequence[str], right: Sequence[str], lists: ErrorWords) -> str:
    """The kind of the difference of two translations, one of `PRECISION_KINDS`.

    >>> from mrs_suggest.staple.analysis.error_words import error_words
    >>> pt = error_words("pt")
    >>> kind_of(pt.cut("não fume por favor"), pt.cut("por favor não fume"), pt)
    'word_order'
    >>> kind_of(pt.cut("gosto disso"), pt.cut("eu gosto disso"), pt)
    'pronoun'
    """
    left_only, right_only = _only(left, right), _only(right, left)
    shared = [
        [word for place, word in enumerate(words) if place not in only]
        for words, only in ((left, set(left_only)), (right, set(right_only)))
    ]
    kinds = [] if shared[0] == shared[1] else [WORD_ORDER]
    pairs = _by_stem(left, right, left_only, right_only)
    paired = [{pair[side] for pair in pairs} for side in (0, 1)]
    pairs += _by_place(left, right, set(left_only) - paired[0], set(right_only) - paired[1])
    paired = [{pair[side] for pair in pairs} for side in (0, 1)]
    for x, y in pairs:
        kinds += _of_pair(left, right, x, y, lists)
    kinds += _of_singles(left, [x for x in left_only if x not in paired[0]], lists)
    kinds += _of_singles(right, [y for y in right_only if y not in paired[1]], lists)
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


def _by_stem(
    left: Sequence[str], right: Sequence[str], left_only: Sequence[int], right_only: Sequence[int]
) -> list[tuple[int, int]]:
    """Pairs of places whose words share a stem, the longest stems first."""
    found = [
        (-size, abs(x - y), x, y) for x in left_only for y in right_only if (size := stem_length(left[x], right[y]))
    ]
    taken: list[tuple[int, int]] = []
    for _, _, x, y in sorted(found):
        if all(x != a and y != b for a, b in taken):
            taken.append((x, y))
    return taken


def _by_place(
    left: Sequence[str], right: Sequence[str], left_open: set[int], right_open: set[int]
) -> list[tuple[int, int]]:
    """Pairs of further places where one word replaces another."""
    matcher = SequenceMatcher(None, list(left), list(right), autojunk=False)
    found: list[tuple[int, int]] = []
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


def _of_pair(mine: Sequence[str], theirs: Sequence[str], x: int, y: int, lists: ErrorWords) -> list[str]:
    """The kinds of the difference between two paired words."""
    left, right = mine[x], theirs[y]
    if lists.is_number(left) or lists.is_number(right):
        return [NUMBER]
    pronouns = lists.pronoun(left), lists.pronoun(right)
    if any(left in forms and right in forms for forms in lists.nouns.forms):
        return [DECLENSION]
    if all(pronouns):
        return [DECLENSION if pronouns[0] == pronouns[1] else PRONOUN]
    if lists.is_loan(left) != lists.is_loan(right):
        return [LOANWORD]
    if left in lists.nouns.words and right in lists.nouns.words:
        return [DECLENSION]
    if left in lists.verbs.words and right in lists.verbs.words:
        return [VERB_SUFFIX]
    if stem_length(left, right):
        before = {*mine[max(0, x - 1) : x], *theirs[max(0, y - 1) : y]}
        return [_of_endings(left, right, before, lists)]
    if any(pronouns) or {left, right} & (lists.nouns.words | lists.verbs.words):
        return [_of_word(left, lists), _of_word(right, lists)]
    return [OTHER]


def _of_endings(left: str, right: str, before: set[str], lists: ErrorWords) -> str:
    """Verb suffix or declension, for two words with one stem, by their endings and the words before them."""
    verb, noun = _endings_length(left, right, lists.verbs), _endings_length(left, right, lists.nouns)
    if verb and noun:
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
