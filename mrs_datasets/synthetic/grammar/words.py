"""The words of an invented language, drawn from a seed: synonyms with the share of learners who choose each."""

from collections.abc import Sequence
from random import Random

from mrs_datasets.synthetic.grammar.english import NOUNS, NUMBERS, SUBJECTS, TIMES, VERBS

Options = Sequence[tuple[str, float]]  # ways to say something, each with the share of learners who choose it
SYNONYMS = (0.35, 0.42, 0.23)  # shares of senses with one, two and three words (our choice)
HEAD = (0.55, 0.9)  # the least and greatest share of learners who choose the first of several words (our choice)
LOANS = ("drink", "instrument", "game", "tool")  # classes whose nouns may have an accepted loanword
LOAN_SHARE = 0.06
PLEASE = ((0.72, 0.28), (0.6, 0.4))  # one word is much more usual, as in the paper's example (section 4.5)


class Words:
    """Draws words that are all different.

    Args:
        vowels: sets of vowels; all vowels of a word come from one set (vowel harmony).
        known: words that are not drawn again, such as those of other languages; drawn words are added.
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

    def synonyms(self) -> Options:
        """One to three words, the most usual one first."""
        count = self.random.choices((1, 2, 3), SYNONYMS)[0]
        shares = [1.0]
        for _ in range(count - 1):
            head = shares.pop()
            first = head * self.random.uniform(*HEAD)
            shares += [first, head - first]
        return [(self.word(self.random.choice((1, 2, 2))), share) for share in sorted(shares, reverse=True)]


class Lexicon:
    """The vocabulary that both languages of `paraphrases` have.

    Attributes:
        nouns: (noun, class) -> stems, including accepted loanwords.
        loans: noun -> its loanword.
        subjects, times: of `SUBJECTS` and `TIMES` -> words.
    """

    def __init__(self, words: Words, ending: str) -> None:
        self.verbs: dict[tuple[str, str], Options] = {}
        for verb, facts in VERBS.items():
            for name in facts.classes if facts.split else ("",):
                self.verbs[verb, name] = words.synonyms()
        self.nouns: dict[tuple[str, str], Options] = {}
        self.loans: dict[str, str] = {}
        for noun, about in NOUNS.items():
            self.loans[noun] = f"{noun.rstrip('aeiou')}{ending}"
            accepted = set(about.classes) <= set(LOANS) and words.random.random() < 0.6
            for name in about.classes:
                found = words.synonyms()
                if accepted:
                    found = [(stem, share * (1 - LOAN_SHARE)) for stem, share in found]
                    found.append((self.loans[noun], LOAN_SHARE))
                self.nouns[noun, name] = sorted(found, key=lambda option: -option[1])
        subjects = {name: words.synonyms()[:2] for name in SUBJECTS}
        self.subjects = {
            name: [(word, share / sum(share for _, share in found)) for word, share in found]
            for name, found in subjects.items()
        }
        self.times = {name: words.synonyms() for name in TIMES}
        self._digits = {number: words.word(1) for number in NUMBERS if number < 10}
        self._ten = words.word(1, closed=False)  # 13, 16 and 18 are this word with 3, 6 and 8
        self.please = [(words.word(2), share) for share in words.random.choice(PLEASE)]

    def number(self, number: int) -> str:
        """The word of a number; empty for 1."""
        if number == 1:
            return ""
        return self._digits[number] if number in self._digits else self._ten + self._digits[number - 10]

    def verb(self, verb: str, name: str) -> Options:
        """The stems of a verb for an object of a class."""
        return self.verbs[verb, name if VERBS[verb].split else ""]
