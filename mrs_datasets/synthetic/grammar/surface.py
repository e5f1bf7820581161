"""How an invented language says a clause: a few rules, and words that a seed draws."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from mrs_datasets.synthetic.grammar.conversation import (
    ASK,
    HOW_MANY,
    MODALS,
    NAMES,
    OPENINGS,
    PLEASE,
    PRONOUNS,
    QUALITIES,
    SAY,
    WHEN,
    WHERE,
    WHO,
    Clause,
)
from mrs_datasets.synthetic.grammar.english import NOUNS, TIMES, VERBS
from mrs_datasets.synthetic.grammar.words import Words
from mrs_suggest.common.io.packaged import read_packaged

BEFORE, AFTER, PREFIX, SUFFIX = "before", "after", "prefix", "suffix"  # positions of a mark
COGNATES = 0.2  # share of the nouns that are derived from the English word (our choice)
WRONG_WORD, LEFT_WORD = 0.1, 0.05  # shares of words in an imperfect translation: wrong, and left in English (ours)
LEXICON: dict[str, Sequence[str]] = {  # kind -> English
    "mark": ("object", "plural", "place", "not"),
    "person": (*PRONOUNS, "other"),
    "modal": MODALS,
    "opening": OPENINGS,
    "question": (ASK, WHERE, WHEN, WHO, HOW_MANY, PLEASE),
    "pronoun": PRONOUNS,
    "quality": QUALITIES,
    "time": TIMES,
    "verb": ("", *VERBS),
    "noun": tuple(NOUNS),
}
SHORT = ("mark", "person", "modal", "opening", "question")  # kinds whose words have one syllable


@dataclass(frozen=True)
class Rules:
    """The rules of a language; `surfaces.yaml` explains them."""

    consonants: str
    vowels: Sequence[str]
    order: str
    marks: dict[str, str]
    number: str
    agreement: bool
    be: bool
    cognate: str


RULES = {code: Rules(**of) for code, of in read_packaged("mrs_datasets.synthetic.grammar", "surfaces.yaml").items()}


class MadeUpSurface:
    """One language with the words of a seed.

    Args:
        known: words of other languages, which are not drawn again; the words of this one are added.

    Attributes:
        words: (kind, English) -> word.
    """

    def __init__(self, rules: Rules, random: Random, known: set[str]) -> None:
        self.rules = rules
        source = Words(rules.consonants, rules.vowels, random, known)
        self.words: dict[tuple[str, str], str] = {}
        for kind, names in LEXICON.items():
            for name in names:
                word = f"{name.rstrip('aeiou')}{rules.cognate}"
                if kind == "noun" and random.random() < COGNATES and word not in known:
                    known.add(word)
                else:
                    syllables = 1 if kind in SHORT else random.choice((1, 2, 2))
                    word = source.word(syllables, closed=kind != "person")
                self.words[kind, name] = word

    def sentence(self, clause: Clause) -> str:
        """The sentence, in lower case."""
        said = {
            "Q": self.words["question", clause.mood] if clause.mood != SAY else "",
            "S": self._subject(clause),
            "M": self.words["modal", clause.modal] if clause.modal else "",
            "V": self._verb(clause),
            "O": self._object(clause) if clause.thing else "",
            "A": self.words["quality", clause.quality] if clause.quality else "",
            "P": self._marked(self.words["noun", clause.place], "place") if clause.place else "",
            "T": self.words["time", clause.time] if clause.time else "",
        }
        return self._punctuated(" ".join(said[place] for place in self.rules.order if said[place]), clause)

    def word_by_word(self, clause: Clause, random: Random) -> str:
        """An imperfect translation: English order, no marks, and words that are wrong or left in English."""
        found = []
        for kind, name in self._stems(clause):
            draw = random.random()
            if kind == "name" or (kind in ("noun", "verb", "quality") and name and draw < LEFT_WORD):
                found.append(name)
            elif draw < LEFT_WORD + WRONG_WORD:
                found.append(random.choice([word for (other, _), word in self.words.items() if other == kind]))
            else:
                found.append(self.words[kind, name])
        return self._punctuated(" ".join(found), clause)

    def _punctuated(self, text: str, clause: Clause) -> str:
        opening = f"{self.words['opening', clause.opening]}, " if clause.opening else ""
        return f"{opening}{text}{clause.mark}"

    def _subject(self, clause: Clause) -> str:
        if clause.subject in PRONOUNS:
            return self.words["pronoun", clause.subject]
        return clause.subject if clause.subject in ("", *NAMES) else self.words["noun", clause.subject]

    def _verb(self, clause: Clause) -> str:
        if not clause.verb and not self.rules.be:
            return self.words["mark", "not"] if clause.negated else ""
        stem = self.words["verb", clause.verb]
        if self.rules.agreement and clause.mood != PLEASE:
            stem += self.words["person", clause.subject if clause.subject in PRONOUNS else "other"]
        return self._marked(stem, "not") if clause.negated else stem

    def _object(self, clause: Clause) -> str:
        word = self.words["noun", clause.thing]
        if clause.number > 1 or clause.mood == HOW_MANY:
            word = self._marked(word, "plural")
        word = self._marked(word, "object")
        if clause.number == 1:
            return word
        return f"{clause.number} {word}" if self.rules.number == BEFORE else f"{word} {clause.number}"

    def _marked(self, word: str, mark: str) -> str:
        own, where = self.words["mark", mark], self.rules.marks[mark]
        return {
            BEFORE: f"{own} {word}", AFTER: f"{word} {own}", PREFIX: own + word, SUFFIX: word + own,
        }[where]  # fmt: skip

    def _stems(self, clause: Clause) -> Iterator[tuple[str, str]]:
        """(kind, English) of the words in English order."""
        if clause.mood != SAY:
            yield "question", clause.mood
        if clause.subject:
            kind = "name" if clause.subject in NAMES else "pronoun" if clause.subject in PRONOUNS else "noun"
            yield kind, clause.subject
            if clause.negated:
                yield "mark", "not"
        if clause.modal:
            yield "modal", clause.modal
        if clause.verb or self.rules.be:
            yield "verb", clause.verb
        if clause.number > 1:
            yield "name", str(clause.number)
        rest = (("noun", clause.thing), ("quality", clause.quality), ("noun", clause.place), ("time", clause.time))
        yield from ((kind, name) for kind, name in rest if name)


def surfaces(seed: int) -> dict[str, MadeUpSurface]:
    """The languages with the words of a seed; they share only names and numbers."""
    known: set[str] = set()
    return {code: MadeUpSurface(rules, Random(f"{seed}/surface/{code}"), known) for code, rules in RULES.items()}
