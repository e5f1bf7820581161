"""The words of a made-up language, drawn from a seed: synonyms with the share of learners who choose each."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Generic, NamedTuple, TypeVar

from mrs_datasets.synthetic.grammar.english import NOUNS, NUMBERS, SUBJECTS, TIMES, VERBS

Value = TypeVar("Value")
SYNONYMS = (0.35, 0.42, 0.23)  # shares of senses with one, two and three words; ours
HEAD = (0.55, 0.9)  # the share of learners who take the first of several words, at least and at most; ours
LOANS = ("drink", "instrument", "game", "tool")  # classes whose nouns may have an accepted loanword
LOAN_SHARE = 0.06
PLEASE = ((0.72, 0.28), (0.6, 0.4))  # one word is much more usual, as in the paper's example (section 4.5)


class Option(NamedTuple, Generic[Value]):
    """One of several ways to say something, and the share of learners who choose it."""

    value: Value
    share: float


Options = Sequence[Option[Value]]


class Words:
    """Draws words that are all different.

    Args:
        consonants: of all syllables.
        vowels: sets of vowels; a word has its vowels from one set (vowel harmony).
        known: words that are not drawn, such as other languages'; those drawn are added.
    """

    def __init__(self, consonants: str, vowels: Sequence[str], random: Random, known: set[str] | None = None) -> None:
        self.consonants, self.vowels, self.random = consonants, vowels, random
        self._known: set[str] = set() if known is None else known

    def word(self, syllables: int = 2, closed: bool = True) -> str:
        """A new word; a closed one ends in a consonant."""
        while True:
            vowels = self.random.choice(self.vowels)
            drawn = "".join(self.random.choice(self.consonants) + self.random.choice(vowels) for _ in range(syllables))
            drawn += self.random.choice(self.consonants) if closed else ""
            if drawn not in self._known:
                self._known.add(drawn)
                return drawn

    def synonyms(self) -> list[Option[str]]:
        """One to three words, the most usual one first."""
        count = self.random.choices((1, 2, 3), SYNONYMS)[0]
        shares = [1.0]
        for _ in range(count - 1):
            head = shares.pop()
            first = head * self.random.uniform(*HEAD)
            shares += [first, head - first]
        shares.sort(reverse=True)
        return [Option(self.word(self.random.choice((1, 2, 2))), share) for share in shares]


class Lexicon:
    """What both languages have words for.

    Attributes:
        verbs: (verb, class of its object) -> stems; the class is empty where it does not matter.
        nouns: (noun, class) -> stems, accepted loanwords among them.
        loans: noun -> its loanword.
        rejected: nouns whose loanword is never accepted.
        subjects, times: of `SUBJECTS` and `TIMES` -> words.
        digits: 2, 3, 5, 6 and 8 -> words; ten: the word that makes 13, 16 and 18 of 3, 6 and 8.
    """

    def __init__(self, words: Words, ending: str) -> None:
        self.verbs: dict[tuple[str, str], list[Option[str]]] = {}
        for verb, facts in VERBS.items():
            for name in facts.classes if facts.split else ("",):
                self.verbs[verb, name] = words.synonyms()
        self.nouns: dict[tuple[str, str], list[Option[str]]] = {}
        self.loans: dict[str, str] = {}
        self.rejected: set[str] = set()
        for noun, about in NOUNS.items():
            self.loans[noun] = f"{noun.rstrip('aeiou')}{ending}"
            taken = set(about.classes) <= set(LOANS) and words.random.random() < 0.6
            if not taken:
                self.rejected.add(noun)
            for name in about.classes:
                found = words.synonyms()
                if taken:
                    found = [Option(stem, share * (1 - LOAN_SHARE)) for stem, share in found]
                    found.append(Option(self.loans[noun], LOAN_SHARE))
                self.nouns[noun, name] = sorted(found, key=lambda option: -option.share)
        self.subjects = {name: words.synonyms()[:2] for name in SUBJECTS}
        self.subjects = {name: normalised(found) for name, found in self.subjects.items()}
        self.times = {name: words.synonyms() for name in TIMES}
        self.digits = {number: words.word(1) for number in NUMBERS if number < 10}
        self.ten = words.word(1, closed=False)
        self.please = [Option(words.word(2), share) for share in words.random.choice(PLEASE)]

    def number(self, number: int) -> str:
        """The word of a number; empty for 1."""
        if number == 1:
            return ""
        return self.digits[number] if number in self.digits else self.ten + self.digits[number - 10]

    def verb(self, verb: str, name: str) -> list[Option[str]]:
        """The stems of a verb for an object of a class."""
        return self.verbs[verb, name if VERBS[verb].split else ""]


def normalised(options: Options[Value]) -> list[Option[Value]]:
    """The options with shares that sum to 1."""
    total = sum(option.share for option in options)
    return [Option(value, share / total) for value, share in options]
