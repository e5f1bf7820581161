"""How a made-up language says a sentence: a few rules, and words that a seed draws."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

from mrs_datasets.synthetic.grammar.clauses import (
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

BEFORE, AFTER, PREFIX, SUFFIX = "before", "after", "prefix", "suffix"  # where a mark stands
MARKS = ("object", "plural", "place", "not")  # of the words that they belong to
ASKING = (ASK, WHERE, WHEN, WHO, HOW_MANY)
COGNATES = 0.2  # share of the nouns whose word is made of the English one; ours
ENGLISH_ORDER = "QSMVOAPT"
WRONG_WORD, LEFT_WORD = 0.1, 0.05  # of the words of an imperfect translation: another word; left in English. Ours


@dataclass(frozen=True)
class Rules:
    """The rules of a language.

    Attributes:
        consonants, vowels: of its syllables.
        order: initials of question word, subject, modal, verb, object, quality, place and time.
        marks: mark -> where it stands, `BEFORE` or `AFTER` as a word, `PREFIX` or `SUFFIX` as a part of the word.
        number: where the number stands beside its noun.
        agreement: verbs have an ending for the person of the subject.
        be: there is a verb for to be; else nothing stands there.
        cognate: the end of words that are made of English ones.
    """

    consonants: str
    vowels: tuple[str, ...]
    order: str
    marks: dict[str, str]
    number: str
    agreement: bool
    be: bool
    cognate: str


RULES = {
    "qaa": Rules(
        "ptkmnlsr", ("ae", "iou"), "QTSVMOAP",
        {"object": SUFFIX, "plural": SUFFIX, "place": SUFFIX, "not": PREFIX}, BEFORE, True, True, "ak",
    ),
    "qab": Rules(
        "bdgvzfhj", ("äëöüy",), "STPOAVMQ",
        {"object": AFTER, "plural": PREFIX, "place": AFTER, "not": SUFFIX}, AFTER, False, True, "ë",
    ),
    "qac": Rules(
        "lwhngtdm", ("aui", "eo"), "VMQSAOPT",
        {"object": BEFORE, "plural": AFTER, "place": BEFORE, "not": BEFORE}, AFTER, True, False, "on",
    ),
}  # fmt: skip


class MadeUpSurface:
    """One language with the words of a seed.

    Args:
        known: words of other languages; none is drawn again, and those of this one are added.

    Attributes:
        words: (kind, English) -> word.
    """

    def __init__(self, rules: Rules, random: Random, known: set[str]) -> None:
        self.rules = rules
        source = Words(rules.consonants, rules.vowels, random, known)
        self.words: dict[tuple[str, str], str] = {}
        for kind, names in _lexicon().items():
            for name in names:
                word = f"{name.rstrip('aeiou')}{rules.cognate}"
                if kind == "noun" and random.random() < COGNATES and word not in known:
                    known.add(word)
                else:
                    short = kind in ("mark", "person", "modal", "opening", "question")
                    word = source.word(1 if short else random.choice((1, 2, 2)), closed=kind != "person")
                self.words[kind, name] = word

    def sentence(self, clause: Clause) -> str:
        """The sentence, in lower case."""
        parts = {place: word for place in self.rules.order if (word := self._place(place, clause))}
        return self._with_ends(" ".join(parts.values()), clause)

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
        return self._with_ends(" ".join(found), clause)

    def _with_ends(self, text: str, clause: Clause) -> str:
        opening = f"{self.words['opening', clause.opening]}, " if clause.opening else ""
        return f"{opening}{text}{clause.mark}"

    def _place(self, place: str, clause: Clause) -> str:
        """What stands at a place of the order; empty where nothing does."""
        if place == "Q":
            return self.words["question", clause.mood] if clause.mood != SAY else ""
        if place == "S":
            return self._subject(clause)
        if place == "M":
            return self.words["modal", clause.modal] if clause.modal else ""
        if place == "V":
            return self._verb(clause)
        if place == "O":
            return self._object(clause)
        if place == "A":
            return self.words["quality", clause.quality] if clause.quality else ""
        if place == "P":
            return self._marked(self.words["noun", clause.place], "place") if clause.place else ""
        return self.words["time", clause.time] if clause.time else ""

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
        if not clause.thing:
            return ""
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
        for place in ENGLISH_ORDER:
            if place == "Q" and clause.mood != SAY:
                yield "question", clause.mood
            elif place == "S" and clause.subject:
                kind = "name" if clause.subject in NAMES else "pronoun" if clause.subject in PRONOUNS else "noun"
                yield kind, clause.subject
                if clause.negated:
                    yield "mark", "not"
            elif place == "M" and clause.modal:
                yield "modal", clause.modal
            elif place == "V" and (clause.verb or self.rules.be):
                yield "verb", clause.verb
            elif place == "O" and clause.thing:
                if clause.number > 1:
                    yield "name", str(clause.number)
                yield "noun", clause.thing
            elif place == "A" and clause.quality:
                yield "quality", clause.quality
            elif place == "P" and clause.place:
                yield "noun", clause.place
            elif place == "T" and clause.time:
                yield "time", clause.time


def surfaces(seed: int) -> dict[str, MadeUpSurface]:
    """The languages with the words of a seed; no two share a word, but names and numbers."""
    known: set[str] = set()
    return {code: MadeUpSurface(rules, Random(f"{seed}/surface/{code}"), known) for code, rules in RULES.items()}


def _lexicon() -> dict[str, tuple[str, ...]]:
    return {
        "mark": MARKS,
        "person": (*PRONOUNS, "other"),
        "modal": MODALS,
        "opening": OPENINGS,
        "question": (*ASKING, PLEASE),
        "pronoun": PRONOUNS,
        "quality": QUALITIES,
        "time": TIMES,
        "verb": ("", *VERBS),
        "noun": tuple(NOUNS),
    }
