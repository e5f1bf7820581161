"""The made-up language qab: the verb comes last, particles mark subject and object, numbers have classifiers."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from mrs_datasets.synthetic.grammar.english import NUMBERS, PRONOUNS, Meaning
from mrs_datasets.synthetic.grammar.language import (
    DECLENSION,
    LOANWORD,
    NUMBER,
    PRONOUN,
    VERB_SUFFIX,
    WORD_ORDER,
    MadeUpLanguage,
    N,
    O,
    Order,
    P,
    Parts,
    Phenomena,
    S,
    T,
    V,
    options,
)
from mrs_datasets.synthetic.grammar.words import Lexicon, Option, Options, Words

PLAIN, POLITE, REQUEST_SUFFIX, NUANCE = SUFFIXES = ("plain", "polite", "request", "nuance")
TOPIC, SUBJECT, OBJECT, TO, TOWARDS, OF = PARTICLES = ("topic", "subject", "object", "to", "towards", "of")
COUNTED = ("food", "text", "clothes", "animal", "instrument", "tool")  # classes with a classifier of their own
# Shares are ours: of the forms of a pronoun, and of learners who drop it. Formal pronouns need the polite verb.
FORMS = {
    "i": (("i", 0.7), ("i formal", 0.3)), "you": (("you", 0.45), ("you formal", 0.55)), "he": (("he", 1.0),),
    "she": (("she", 1.0),), "we": (("we", 0.85), ("we formal", 0.15)), "they": (("they", 1.0),),
}  # fmt: skip
NEVER_USED = "i rude"  # a word of the language, but nothing that a learner writes (the paper's boku, section 4.5)
DROPPED = {"i": 0.42, "you": 0.5, "he": 0.08, "she": 0.08, "we": 0.3, "they": 0.08}
ANY, FORMAL = "any", "formal"
STATEMENT = options(SOV=0.86, OSV=0.14)
TIMED = options(TSOV=0.52, STOV=0.34, SOTV=0.14)
REQUEST = options(POTV=0.55, TOPV=0.3, OTVP=0.15)
NUMBER_BEHIND = 0.5  # of learners: noun, particle, number; the others say number, of, noun
NEVER: tuple[Order, ...] = ((V, O, S, T, P), (O, V, T, S, P))


class Qab(MadeUpLanguage):
    """See the module; the words of a seed."""

    code = "qab"

    def __init__(self, random: Random) -> None:
        words = Words("bdgvzfhj", ("äëöüy",), random)
        self.endings = {name: words.word(1, closed=False) for name in SUFFIXES}
        self.endings[PLAIN] = ""
        self.marks = {name: words.word(1, closed=False) for name in PARTICLES}
        names = dict.fromkeys([*(form for forms in FORMS.values() for form, _ in forms), NEVER_USED])
        self.pronouns = {name: words.word(2, closed=False) for name in names}
        self.classifiers = {name: words.word(1, closed=False) for name in COUNTED}
        self.lexicon = Lexicon(words, "ë")
        self.towards = {noun for noun, name in self.lexicon.nouns if name == "place" and random.random() < 0.6}

    def subjects(self, meaning: Meaning) -> Options[tuple[str, str]]:
        if not meaning.subject:
            return [Option(("", "request"), 1.0)]
        if meaning.subject not in PRONOUNS:
            return [Option((word, ANY), share) for word, share in self.lexicon.subjects[meaning.subject]]
        dropped = DROPPED[meaning.subject]
        found = [Option(("", ANY), dropped)]
        for form, share in FORMS[meaning.subject]:
            register = FORMAL if form.endswith("formal") else ANY
            found.append(Option((self.pronouns[form], register), share * (1 - dropped)))
        return found

    def particles(self, subject: str) -> Options[str]:
        if not subject:
            return [Option("", 1.0)]
        return [Option(self.marks[TOPIC], 0.8), Option(self.marks[SUBJECT], 0.2)]

    def suffixes(self, meaning: Meaning, person: str, stem: str) -> Options[str]:
        polite, plain = Option(self.endings[POLITE], 0.66), Option(self.endings[PLAIN], 0.34)
        if person == "request":
            asked = Option(self.endings[REQUEST_SUFFIX], 1.0 if meaning.polite else 0.7)
            return [asked] if meaning.polite else [asked, Option(self.endings[PLAIN], 0.3)]
        return [Option(polite.value, 1.0)] if person == FORMAL else [polite, plain]

    def cases(self, meaning: Meaning, stem: str) -> Options[str]:
        if not meaning.motion:
            return [Option(self.marks[OBJECT], 1.0)]
        to, towards = self.marks[TO], self.marks[TOWARDS]
        return [Option(to, 0.7), Option(towards, 0.3)] if meaning.noun in self.towards else [Option(to, 1.0)]

    def numbers(self, meaning: Meaning, name: str) -> Options[str]:
        word = self.lexicon.number(meaning.number)
        return [Option(word + self.classifiers[name] if word else "", 1.0)]

    def orders(self, meaning: Meaning) -> Options[Order]:
        plain = REQUEST if not meaning.subject else TIMED if meaning.time else STATEMENT
        if meaning.number == 1:
            return plain
        found = []
        for order, share in plain:
            place = order.index(O) + 1
            found.append(Option((*order[:place], N, *order[place:]), share * NUMBER_BEHIND))
            found.append(Option(order, share * (1 - NUMBER_BEHIND)))
        return found

    def text(self, parts: Parts) -> str:
        thing = f"{parts.noun} {parts.case}"
        if parts.number and N not in parts.order:
            thing = f"{parts.number} {self.marks[OF]} {thing}"
        words = {
            S: f"{parts.subject} {parts.particle}",
            V: parts.verb + parts.suffix,
            O: thing,
            N: parts.number,
            T: parts.time,
            P: parts.please,
        }
        return " ".join(words[place] for place in parts.order)

    def phenomena(self) -> Phenomena:
        numbers = [self.lexicon.number(number) for number in NUMBERS]
        return Phenomena(
            frozenset(self.pronouns.values()),
            frozenset(word + name for word in numbers for name in self.classifiers.values()),
            dict(self.lexicon.loans),
            frozenset(self.lexicon.loans[noun] for noun in self.lexicon.rejected),
            frozenset(ending for ending in self.endings.values() if ending),
            frozenset(self.marks.values()),
        )

    def wrong(self, meaning: Meaning, parts: Parts, phenomenon: str) -> Iterator[Parts]:
        if phenomenon == WORD_ORDER:
            for order in NEVER:
                kept = [place for place in order if place in parts.order]
                if N in parts.order:
                    kept.insert(kept.index(O) + 1, N)
                yield parts._replace(order=tuple(kept))
        elif phenomenon == PRONOUN and meaning.subject in PRONOUNS:
            order = parts.order if S in parts.order else (S, *parts.order)
            for pronoun in self.pronouns.values():
                yield parts._replace(subject=pronoun, particle=self.marks[TOPIC], order=order)
        elif phenomenon == NUMBER and parts.number:
            for word in self.phenomena().numbers:
                yield parts._replace(number=word)
        elif phenomenon == VERB_SUFFIX:
            for suffix in self.endings.values():
                yield parts._replace(suffix=suffix)
        elif phenomenon == DECLENSION:
            for mark in (OBJECT, SUBJECT, TO, TOWARDS):
                yield parts._replace(case=self.marks[mark])
        elif phenomenon == LOANWORD:
            yield parts._replace(noun=self.lexicon.loans[meaning.noun])
