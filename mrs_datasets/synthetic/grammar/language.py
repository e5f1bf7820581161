"""A made-up target language: all ways to say something, with the share of learners who choose each."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from mrs_datasets.synthetic.grammar.english import Meaning
from mrs_datasets.synthetic.grammar.words import Lexicon, Option, Options

WORD_ORDER, PRONOUN, NUMBER, VERB_SUFFIX, DECLENSION, LOANWORD = PHENOMENA = (
    "word_order", "pronoun", "number", "verb_suffix", "declension", "loanword",
)  # fmt: skip
LEAST_SHARE = 0.0012  # of learners who give an accepted translation (ours: tens to a few hundred for each prompt)
SENSES = (0.7, 0.3)  # of learners, how many understand a noun as its first and as its second class (ours)
USUAL = 10  # the most usual translations, of which one is made wrong
Order = tuple[str, ...]
# The places of an order: subject, verb, object or place, time, please, and a number after its noun.
S, V, O, T, P, N = "subject", "verb", "object", "time", "please", "number"  # noqa: E741


class Parts(NamedTuple):
    """What a translation is made of.

    Attributes:
        subject: a pronoun or a noun; empty where it is dropped.
        person: what the verb agrees with, such as `1s`.
        particle: behind the subject, in a language that has one.
        verb, suffix: stem and ending.
        number: a number word (qab: with its classifier), or empty.
        noun, case: stem and ending, or particle, of the object or place.
        time, please: words, or empty.
        order: of the places.
    """

    subject: str
    person: str
    particle: str
    verb: str
    suffix: str
    number: str
    noun: str
    case: str
    time: str
    please: str
    order: Order


class Translation(NamedTuple):
    """A translation and the share of all learners who give it."""

    text: str
    share: float
    parts: Parts


class Phenomena(NamedTuple):
    """The words and endings of a language by phenomenon, for telling errors apart.

    Attributes:
        pronouns: all forms, those that are never accepted too.
        numbers: number words (qab: with classifiers).
        loanwords: English noun -> its loanword, without ending.
        rejected_loanwords: those that no learner gives.
        verb_suffixes, cases: endings, or particles.
    """

    pronouns: frozenset[str]
    numbers: frozenset[str]
    loanwords: dict[str, str]
    rejected_loanwords: frozenset[str]
    verb_suffixes: frozenset[str]
    cases: frozenset[str]


class MadeUpLanguage(ABC):
    """Rules and words of a language; a subclass has the rules, a seed gives the words."""

    code: str
    lexicon: Lexicon

    @abstractmethod
    def subjects(self, meaning: Meaning) -> Options[tuple[str, str]]:
        """The subject's word, empty where it is dropped, and the person that the verb agrees with."""

    @abstractmethod
    def particles(self, subject: str) -> Options[str]:
        """What stands behind a subject."""

    @abstractmethod
    def suffixes(self, meaning: Meaning, person: str, stem: str) -> Options[str]:
        """The endings of a verb."""

    @abstractmethod
    def cases(self, meaning: Meaning, stem: str) -> Options[str]:
        """The endings of the object or place."""

    @abstractmethod
    def numbers(self, meaning: Meaning, name: str) -> Options[str]:
        """The word for the number of things of a class; empty for one."""

    @abstractmethod
    def orders(self, meaning: Meaning) -> Options[Order]:
        """The orders of all places."""

    @abstractmethod
    def text(self, parts: Parts) -> str:
        """The sentence."""

    @abstractmethod
    def phenomena(self) -> Phenomena:
        """The words and endings by phenomenon."""

    @abstractmethod
    def wrong(self, meaning: Meaning, parts: Parts, phenomenon: str) -> Iterator[Parts]:
        """The parts with one of `PHENOMENA` wrong; none where the meaning has nothing of it."""

    def accepted(self, meaning: Meaning) -> list[Translation]:
        """The translations that at least `LEAST_SHARE` of learners give, most usual first; all texts differ."""
        found = [Translation(self.text(parts), share, parts) for parts, share in self._all(meaning)]
        return sorted(found, key=lambda one: (-one.share, one.text))

    def count(self, meaning: Meaning) -> int:
        """How many translations are accepted."""
        return sum(1 for _ in self._all(meaning))

    def wrong_translations(self, meaning: Meaning, accepted: Sequence[Translation], random: Random) -> dict[str, str]:
        """Phenomenon -> a translation of the kind that systems give by mistake (section 4.5): one thing is wrong.

        None is accepted; a phenomenon is missing where nothing of it can be wrong.

        Args:
            accepted: the accepted translations of the meaning.
        """
        right = {one.text for one in accepted}
        found = {}
        for phenomenon in PHENOMENA:
            for one in accepted[:USUAL]:
                texts = dict.fromkeys(self.text(parts) for parts in self.wrong(meaning, one.parts, phenomenon))
                if wrong := [text for text in texts if text not in right]:
                    found[phenomenon] = random.choice(wrong)
                    break
        return found

    def nouns(self, meaning: Meaning) -> Iterator[tuple[str, str, float]]:
        """(stem, class, share) of the noun, in each sense that the verb allows."""
        senses = meaning.classes
        shares = (1.0,) if len(senses) == 1 else SENSES
        for name, share in zip(senses, shares, strict=True):
            for stem, one in self.lexicon.nouns[meaning.noun, name]:
                yield stem, name, share * one

    def _all(self, meaning: Meaning) -> Iterator[tuple[Parts, float]]:
        """All combinations with a share of at least `LEAST_SHARE`; with the rare ones, shares would sum to 1."""
        times = self.lexicon.times[meaning.time] if meaning.time else [Option("", 1.0)]
        please = self.lexicon.please if meaning.polite else [Option("", 1.0)]
        absent = {T} if not meaning.time else set()
        absent |= {P} if not meaning.polite else set()
        orders = {gone: _without(self.orders(meaning), absent | ({S} if gone else set())) for gone in (True, False)}
        around = {
            gone: [
                (time, word, order, p1 * p2 * p3) for time, p1 in times for word, p2 in please for order, p3 in found
            ]
            for gone, found in orders.items()
        }
        for noun, name, p1 in self.nouns(meaning):
            for verb, p2 in self.lexicon.verb(meaning.verb, name):
                for (subject, person), p3 in self.subjects(meaning):
                    if (head := p1 * p2 * p3) < LEAST_SHARE:
                        continue
                    for inner, p4 in self._endings(meaning, name, noun, verb, subject, person, head):
                        for time, word, order, p5 in around[not subject]:
                            if p4 * p5 >= LEAST_SHARE:
                                yield Parts(subject, person, *inner, time, word, order), p4 * p5

    def _endings(
        self, meaning: Meaning, name: str, noun: str, verb: str, subject: str, person: str, head: float
    ) -> Iterator[tuple[tuple[str, str, str, str, str, str], float]]:
        """(particle, verb, suffix, number, noun, case) and the share of all so far."""
        for particle, p1 in self.particles(subject):
            for suffix, p2 in self.suffixes(meaning, person, verb):
                for case, p3 in self.cases(meaning, noun):
                    for number, p4 in self.numbers(meaning, name):
                        share = head * p1 * p2 * p3 * p4
                        if share >= LEAST_SHARE:
                            yield (particle, verb, suffix, number, noun, case), share


def _without(orders: Options[Order], absent: set[str]) -> list[Option[Order]]:
    """The orders without some places; those that become equal are one."""
    found: dict[Order, float] = {}
    for order, share in orders:
        kept = tuple(place for place in order if place not in absent)
        found[kept] = found.get(kept, 0.0) + share
    return [Option(order, share) for order, share in found.items()]


def options(**shares: float) -> Sequence[Option[Order]]:
    """Orders by their initials: `options(SVO=.8, SOV=.2)`."""
    places = {"S": S, "V": V, "O": O, "T": T, "P": P, "N": N}
    return [Option(tuple(places[letter] for letter in name), share) for name, share in shares.items()]
