"""The made-up language qaa: verbs agree with the subject, pronouns are dropped, endings follow vowel harmony."""

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

BACK, FRONT = "aou", "eiü"
PERSONS = ("1s", "2s", "3s", "1p", "2p", "3p", "request", "formal request")
OBJECT, TO, INTO = "object", "to", "into"
# Shares are ours. The polite form of `you` agrees like he and she; he and she are one word.
PERSON_OF = {
    "i": (("1s", 1.0),), "you": (("2s", 0.62), ("formal", 0.28), ("2p", 0.1)), "he": (("3s", 1.0),),
    "she": (("3s", 1.0),), "we": (("1p", 1.0),), "they": (("3p", 1.0),),
}  # fmt: skip
DROPPED = {"1s": 0.72, "2s": 0.72, "formal": 0.3, "2p": 0.6, "3s": 0.2, "1p": 0.72, "3p": 0.3}
PLURAL_NOUNS = ("the children", "my parents")
STATEMENT = options(SVOT=0.5, TSVO=0.3, STVO=0.12, SOVT=0.08)
REQUEST = options(PVOT=0.62, VOTP=0.24, TPVO=0.08, VPOT=0.06)
NEVER: tuple[Order, ...] = ((O, S, T, V, P), (V, T, O, S, P))


class Qaa(MadeUpLanguage):
    """See the module; the words of a seed."""

    code = "qaa"

    def __init__(self, random: Random) -> None:
        words = Words("ptkmnlsr", (BACK, FRONT), random)
        self.endings = dict(zip(PERSONS, _endings(random), strict=True))
        self.case_endings = dict(zip((OBJECT, TO, INTO), _endings(random, long=True), strict=False))
        self.pronouns = {name: words.word(1, closed=name != "3s") for name in DROPPED}
        self.rare_pronouns = {"1s": words.word(2), "1p": words.word(2)}  # with stress, seldom used
        self.lexicon = Lexicon(words, "o")
        self.into = {noun for noun, name in self.lexicon.nouns if name == "place" and random.random() < 0.5}

    def subjects(self, meaning: Meaning) -> Options[tuple[str, str]]:
        if not meaning.subject:
            return [Option(("", "request"), 0.6), Option(("", "formal request"), 0.4)]
        if meaning.subject not in PRONOUNS:
            person = "3p" if meaning.subject in PLURAL_NOUNS else "3s"
            return [Option((word, person), share) for word, share in self.lexicon.subjects[meaning.subject]]
        found = []
        for person, share in PERSON_OF[meaning.subject]:
            agrees, rare = "3s" if person == "formal" else person, 0.0
            if person in self.rare_pronouns:
                rare = 0.04
                found.append(Option((self.rare_pronouns[person], agrees), share * rare))
            found.append(Option(("", agrees), share * DROPPED[person]))
            found.append(Option((self.pronouns[person], agrees), share * (1 - DROPPED[person] - rare)))
        return found

    def particles(self, subject: str) -> Options[str]:
        return [Option("", 1.0)]

    def suffixes(self, meaning: Meaning, person: str, stem: str) -> Options[str]:
        return [Option(harmonic(self.endings[person], stem), 1.0)]

    def cases(self, meaning: Meaning, stem: str) -> Options[str]:
        if not meaning.motion:
            return [Option(harmonic(self.case_endings[OBJECT], stem), 1.0)]
        to, into = (harmonic(self.case_endings[case], stem) for case in (TO, INTO))
        return [Option(into, 0.75), Option(to, 0.25)] if meaning.noun in self.into else [Option(to, 1.0)]

    def numbers(self, meaning: Meaning, name: str) -> Options[str]:
        return [Option(self.lexicon.number(meaning.number), 1.0)]

    def orders(self, meaning: Meaning) -> Options[Order]:
        return STATEMENT if meaning.subject else REQUEST

    def text(self, parts: Parts) -> str:
        words = {
            S: parts.subject,
            V: parts.verb + parts.suffix,
            O: f"{parts.number} {parts.noun}{parts.case}" if parts.number else parts.noun + parts.case,
            T: parts.time,
            P: parts.please,
        }
        return " ".join(words[place] for place in parts.order if words[place])

    def phenomena(self) -> Phenomena:
        return Phenomena(
            frozenset([*self.pronouns.values(), *self.rare_pronouns.values()]),
            frozenset(self.lexicon.number(number) for number in NUMBERS),
            dict(self.lexicon.loans),
            frozenset(self.lexicon.loans[noun] for noun in self.lexicon.rejected),
            frozenset(ending for pair in self.endings.values() for ending in pair),
            frozenset(ending for pair in self.case_endings.values() for ending in pair),
        )

    def wrong(self, meaning: Meaning, parts: Parts, phenomenon: str) -> Iterator[Parts]:
        if phenomenon == WORD_ORDER:
            for order in NEVER:
                kept = tuple(place for place in order if place in parts.order)
                yield parts._replace(order=kept)
        elif phenomenon == PRONOUN and meaning.subject in PRONOUNS:
            order = parts.order if S in parts.order else (S, *parts.order)
            for person, pronoun in self.pronouns.items():
                if person != parts.person:
                    yield parts._replace(subject=pronoun, order=order)
        elif phenomenon == NUMBER and parts.number:
            for number in NUMBERS:
                yield parts._replace(number=self.lexicon.number(number))
        elif phenomenon == VERB_SUFFIX:
            for pair in self.endings.values():
                yield parts._replace(suffix=harmonic(pair, parts.verb))
        elif phenomenon == DECLENSION:
            for pair in self.case_endings.values():
                for ending in pair:
                    yield parts._replace(case=ending)
        elif phenomenon == LOANWORD:
            loan = self.lexicon.loans[meaning.noun]
            yield parts._replace(noun=loan, case=self.cases(meaning, loan)[0].value)


def harmonic(pair: tuple[str, str], stem: str) -> str:
    """The ending for a stem: back vowels after back vowels, front ones after front ones."""
    last = next(letter for letter in reversed(stem) if letter in BACK + FRONT)
    return pair[0] if last in BACK else pair[1]


def _endings(random: Random, long: bool = False) -> list[tuple[str, str]]:
    """Eight endings, each with a back and a front vowel, and a consonant of its own."""
    consonants = random.sample("ptkmnlsr", 8)
    found = []
    for number, consonant in enumerate(consonants):
        place = random.randrange(3)
        start = consonants[number - 1] if long else ""
        found.append((f"{start}{BACK[place]}{consonant}", f"{start}{FRONT[place]}{consonant}"))
    return found
