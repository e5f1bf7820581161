"""The English side of the grammars: words, the meanings of prompts, and how they are drawn."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from mrs_suggest.common.io.packaged import read_packaged

WORDS: dict[str, Any] = read_packaged("mrs_datasets.synthetic.grammar", "english.yaml")
NUMBERS: dict[int, str] = WORDS["numbers"]
PRONOUNS: list[str] = WORDS["pronouns"]
SUBJECTS: list[str] = WORDS["subjects"]
TIMES: list[str] = WORDS["times"]
PLACE = "place"
UNCOUNTED = ("drink", "game", PLACE)  # classes of nouns that take no number
BARE = "game"  # the class without article: to play chess
NUMBERED, TIMED, REQUESTS, POLITE, PRONOUN = 0.3, 0.55, 0.2, 0.8, 0.6  # shares of prompts (our choice)
COMMON = 0.92  # of two nouns of a class, how often the later one is drawn for each of the earlier one


class Verb(NamedTuple):
    """A verb.

    Attributes:
        third: its form after he or she.
        classes: of the nouns that can be its object.
        split: it has a different translation for each class (to play chess, to play the violin).
        wider: it occurs only in the parallel text.
    """

    third: str
    classes: tuple[str, ...]
    split: bool = False
    wider: bool = False


class Noun(NamedTuple):
    """A noun; with two classes it is two words of the same spelling (a mouse to feed, a mouse to repair)."""

    plural: str
    classes: tuple[str, ...]
    wider: bool = False


def _verb(base: str, text: str, wider: bool) -> Verb:
    third = f"{base}es" if base.endswith(("ch", "sh", "o")) else f"{base}s"
    third = f"{base[:-1]}ies" if base.endswith("rry") else third
    return Verb(third, tuple(text.replace("|", " ").split()), "|" in text, wider)


def _nouns() -> dict[str, Noun]:
    found: dict[str, Noun] = {}
    for name, text in WORDS["nouns"].items():
        common, _, rare = text.partition("/")
        for word in [*common.split(), *rare.split()]:
            plural = f"{word}es" if word.endswith(("o", "ss", "ch", "x")) else f"{word}s"
            classes = found[word].classes if word in found else ()
            found[word] = Noun(WORDS["plurals"].get(word, plural), (*classes, name), word in rare.split())
    return found


VERBS = {
    base: _verb(base, text, wider=kind == "rare_verbs")
    for kind in ("verbs", "rare_verbs")
    for base, text in WORDS[kind].items()
}
NOUNS = _nouns()


@dataclass(frozen=True)
class Meaning:
    """The meaning of a prompt, in no language.

    Attributes:
        verb, noun: keys of `VERBS` and `NOUNS`; the noun is the object, or the place of a verb of motion.
        subject: a pronoun or one of `SUBJECTS`; empty in a request.
        number: how many; 1 for the article.
        time: one of `TIMES`, or empty.
    """

    verb: str
    noun: str
    subject: str = ""
    number: int = 1
    time: str = ""
    polite: bool = False

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of the noun that the verb allows, the most likely sense first."""
        return tuple(name for name in NOUNS[self.noun].classes if name in VERBS[self.verb].classes)

    @property
    def motion(self) -> bool:
        return PLACE in VERBS[self.verb].classes

    def english(self) -> str:
        """The prompt, in lower case without full stop, as prompts of the task are.

        >>> Meaning("read", "letter", "she", 3, "every day").english()
        'she reads three letters every day'
        >>> Meaning("go", "park", polite=True).english()
        'please go to the park'
        """
        verb, noun = VERBS[self.verb], NOUNS[self.noun]
        form = verb.third if self.subject and self.subject not in WORDS["without_s"] else self.verb
        thing = f"{NUMBERS[self.number]} {noun.plural}" if self.number > 1 else f"the {self.noun}"
        if self.classes == (BARE,):
            thing = self.noun
        where = ["to"] if self.motion else []
        words = ["please"] * self.polite + [self.subject, form, *where, thing, self.time]
        return " ".join(word for word in words if word)


def pairs(wider: bool) -> list[tuple[str, str]]:
    """Every verb with every noun that it allows; `wider` includes those of the parallel text."""
    return [
        (verb, noun)
        for verb, facts in VERBS.items()
        for noun, about in NOUNS.items()
        if set(facts.classes) & set(about.classes) and (wider or not (facts.wider or about.wider))
    ]


def frequencies(known: Sequence[tuple[str, str]]) -> list[float]:
    """How often each pair is drawn, relative to the others: the first words of a class are the most common."""
    each = Counter(verb for verb, _ in known)
    found = []
    for verb, noun in known:
        name = next(name for name in VERBS[verb].classes if name in NOUNS[noun].classes)
        rank = [other for other, facts in NOUNS.items() if name in facts.classes].index(noun)
        found.append(COMMON**rank / each[verb] ** 0.5)
    return found


def draw_meaning(pair: tuple[str, str], random: Random) -> Meaning:
    """A prompt about a verb and a noun."""
    verb, noun = pair
    counted = not set(VERBS[verb].classes) & set(NOUNS[noun].classes) & set(UNCOUNTED)
    number = random.choice(list(NUMBERS)) if counted and random.random() < NUMBERED else 1
    time = random.choice(TIMES) if random.random() < TIMED else ""
    if random.random() < REQUESTS:
        return Meaning(verb, noun, "", number, time, random.random() < POLITE)
    subject = random.choice(PRONOUNS if random.random() < PRONOUN else SUBJECTS)
    return Meaning(verb, noun, subject, number, time)
