"""Clauses, messages and the replies that answer them, in no language; and how English says a clause.

A reply repeats the topic of the message, or states a fact that the message asks for (`World`), so that a model has to
understand the message. Every language has the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from mrs_datasets.synthetic.grammar.english import BARE, NOUNS, PLACE, TIMES, UNCOUNTED, VERBS, pairs

SAY, ASK, PLEASE, WHERE, WHEN, WHO, HOW_MANY = ("say", "ask", "please", "where", "when", "who", "how many")
WANT, CAN, MUST = MODALS = ("want", "can", "must")
ME, YOU, WE = PRONOUNS = ("i", "you", "we")
NAMES = ("anna", "omar", "lena", "hugo", "mira", "ivan", "nora", "paul", "rosa", "emil")  # the same in every language
QUALITIES = ("good", "bad", "new", "old", "cheap", "expensive", "nice", "ugly", "small", "big")
OPENINGS = ("yes", "no", "sorry", "great")
BE = {ME: "am", YOU: "are", WE: "are"}
NUMBERS = (2, 3, 5, 6, 8)
TIMED = 0.6  # share of the messages with a time, among those that can have one (our choice)


@dataclass(frozen=True)
class Clause:
    """One sentence.

    Attributes:
        mood: `SAY`, `ASK`, `PLEASE` (a request), or the question word.
        subject: one of `PRONOUNS` or `NAMES`, or a noun; empty in a request and after who.
        verb: a key of `VERBS`; empty for to be.
        thing: the object, a key of `NOUNS`, or empty.
        number: how many things; 1 for the article.
        quality, place: predicates of the subject; with a verb, the place where it happens.
        time: one of `TIMES`, or empty.
        modal: one of `MODALS`, or empty.
        opening: one of `OPENINGS`, or empty.
    """

    mood: str
    subject: str = ""
    verb: str = ""
    thing: str = ""
    number: int = 1
    quality: str = ""
    place: str = ""
    time: str = ""
    modal: str = ""
    negated: bool = False
    opening: str = ""

    @property
    def mark(self) -> str:
        """The punctuation at the end."""
        return "." if self.mood in (SAY, PLEASE) else "?"


def english(clause: Clause) -> str:
    """The sentence, in lower case.

    >>> english(Clause(ASK, YOU, "read", "letter", time="today", modal=WANT))
    'do you want to read the letter today?'
    >>> english(Clause(SAY, "anna", "eat", "apple", number=3, negated=True, opening="no"))
    'no, anna does not eat 3 apples.'
    >>> english(Clause(WHERE, ME, "buy", "tea", modal=CAN))
    'where can i buy the tea?'
    """
    words = _verb(clause) if clause.verb else _be(clause)
    place = ["in", "the", clause.place] if clause.place else []
    text = " ".join(word for word in [*words, clause.quality, *place, clause.time] if word)
    return f"{clause.opening}{', ' if clause.opening else ''}{text}{clause.mark}"


def _be(clause: Clause) -> list[str]:
    subject = clause.subject if clause.subject in (*PRONOUNS, *NAMES) else f"the {clause.subject}"
    form, negation = BE.get(clause.subject, "is"), "not" if clause.negated else ""
    if clause.mood == SAY:
        return [subject, form, negation]
    return ["where" if clause.mood == WHERE else "", form, subject, negation]


def _verb(clause: Clause) -> list[str]:
    thing, negation = _thing(clause), "not" if clause.negated else ""
    if clause.mood == PLEASE:
        return ["please", clause.verb, thing]
    third = clause.mood == WHO or clause.subject not in PRONOUNS
    do = "does" if third else "do"
    subject = "who" if clause.mood == WHO else clause.subject
    bare = f"{WANT} to {clause.verb}" if clause.modal == WANT else clause.verb
    helper = clause.modal if clause.modal in (CAN, MUST) else ""
    if clause.mood in (SAY, WHO):
        if helper or clause.negated:
            return [subject, helper or do, negation, bare, thing]
        if clause.modal == WANT:
            return [subject, f"wants to {clause.verb}" if third else bare, thing]
        return [subject, VERBS[clause.verb].third if third else clause.verb, thing]
    asked = {WHERE: "where", WHEN: "when", HOW_MANY: f"how many {NOUNS[clause.thing].plural}"}.get(clause.mood, "")
    return [asked, helper or do, subject, negation, bare, "" if clause.mood == HOW_MANY else thing]


def _thing(clause: Clause) -> str:
    if not clause.thing:
        return ""
    if clause.number > 1:
        return f"{clause.number} {NOUNS[clause.thing].plural}"
    classes = set(NOUNS[clause.thing].classes) & set(VERBS[clause.verb].classes)
    return clause.thing if classes == {BARE} else f"the {clause.thing}"


class Topic(NamedTuple):
    """The topic of a message; `time`, `person` and `quality` may be empty."""

    verb: str
    noun: str
    time: str
    person: str
    quality: str


class Message(NamedTuple):
    """A kind of message (a key of `ACTS`) and its topic."""

    act: str
    topic: Topic

    def clause(self) -> Clause:
        return ACTS[self.act].says(self.topic)


class World:
    """The facts of a seed: the owner, place, number and quality of each noun, and the time of each verb."""

    def __init__(self, seed: int) -> None:
        random = Random(f"{seed}/world")
        places = [noun for noun, facts in NOUNS.items() if PLACE in facts.classes]
        self.owner = {noun: random.choice(NAMES) for noun in NOUNS}
        self.home = {noun: random.choice(places) for noun in NOUNS}
        self.count = {noun: random.choice(NUMBERS) for noun in NOUNS}
        self.quality = {noun: random.choice(QUALITIES) for noun in NOUNS}
        self.time = {verb: random.choice(TIMES) for verb in VERBS}

    def replies(self, message: Message) -> list[tuple[Clause, float]]:
        """The replies and how often each is given; the shares sum to 1."""
        return ACTS[message.act].replies(message.topic, self)


class Act(NamedTuple):
    """A kind of message.

    Attributes:
        share: of the messages.
        says: topic -> message.
        replies: topic, world -> replies with their shares.
        uses: the fields of the topic that the message mentions, in addition to verb and noun.
    """

    share: float
    says: Callable[[Topic], Clause]
    replies: Callable[[Topic, World], list[tuple[Clause, float]]]
    uses: tuple[str, ...] = ("time",)


def _said(topic: Topic, subject: str, **more: Any) -> Clause:
    return Clause(SAY, subject, topic.verb, topic.noun, **more)


ACTS: dict[str, Act] = {
    "invite": Act(
        0.2,
        lambda t: Clause(ASK, YOU, t.verb, t.noun, time=t.time, modal=WANT),
        lambda t, w: [
            (_said(t, ME, time=t.time, modal=WANT, opening="yes"), 0.35),
            (_said(t, ME, time=t.time, modal=CAN, negated=True, opening="sorry"), 0.25),
            (_said(t, WE, place=w.home[t.noun], modal=CAN, opening="great"), 0.15),
            (_said(t, w.owner[t.noun], time=t.time, modal=WANT), 0.15),
            (Clause(WHEN, YOU, t.verb, t.noun), 0.1),
        ],
    ),
    "when": Act(
        0.1,
        lambda t: Clause(WHEN, YOU, t.verb, t.noun),
        lambda t, w: [
            (_said(t, ME, time=w.time[t.verb]), 0.4),
            (_said(t, WE, time=w.time[t.verb], modal=CAN), 0.25),
            (_said(t, w.owner[t.noun], time=w.time[t.verb], modal=MUST), 0.2),
            (_said(t, ME, modal=CAN, negated=True, opening="sorry"), 0.15),
        ],
        (),
    ),
    "where": Act(
        0.12,
        lambda t: Clause(WHERE, ME, t.verb, t.noun, time=t.time, modal=CAN),
        lambda t, w: [
            (_said(t, YOU, place=w.home[t.noun], modal=CAN), 0.35),
            (Clause(SAY, t.noun, place=w.home[t.noun]), 0.3),
            (_said(t, w.owner[t.noun], time=t.time, modal=CAN), 0.2),
            (_said(t, YOU, time=t.time, modal=CAN, negated=True, opening="sorry"), 0.15),
        ],
    ),
    "who": Act(
        0.1,
        lambda t: Clause(WHO, "", t.verb, t.noun, time=t.time),
        lambda t, w: [
            (_said(t, w.owner[t.noun], time=t.time), 0.4),
            (_said(t, ME, time=t.time), 0.25),
            (_said(t, WE, time=t.time, modal=MUST), 0.2),
            (Clause(WHERE, t.noun, opening="sorry"), 0.15),
        ],
    ),
    "how many": Act(
        0.1,
        lambda t: Clause(HOW_MANY, YOU, t.verb, t.noun, modal=MUST, time=t.time),
        lambda t, w: [
            (_said(t, ME, number=w.count[t.noun], modal=MUST), 0.4),
            (_said(t, w.owner[t.noun], number=w.count[t.noun]), 0.25),
            (_said(t, WE, number=w.count[t.noun], time=t.time, modal=WANT), 0.2),
            (_said(t, ME, time=t.time, modal=CAN, negated=True, opening="sorry"), 0.15),
        ],
    ),
    "opinion": Act(
        0.08,
        lambda t: Clause(ASK, t.noun, quality=t.quality),
        lambda t, w: [
            (Clause(SAY, t.noun, quality=t.quality, opening="yes"), 0.4)
            if w.quality[t.noun] == t.quality
            else (Clause(SAY, t.noun, quality=w.quality[t.noun], opening="no"), 0.4),
            (Clause(SAY, t.noun, quality=w.quality[t.noun]), 0.25),
            (Clause(SAY, w.owner[t.noun], "like", t.noun), 0.2),
            (Clause(WHERE, t.noun), 0.15),
        ],
        ("quality",),
    ),
    "news": Act(
        0.12,
        lambda t: _said(t, t.person, time=t.time),
        lambda t, w: [
            (Clause(ASK, ME, t.verb, t.noun, modal=CAN), 0.3),
            (Clause(WHERE, t.person, t.verb, t.noun), 0.25),
            (_said(t, ME, time=t.time, modal=WANT), 0.2),
            (Clause(SAY, t.noun, quality=w.quality[t.noun], opening="great"), 0.15),
            (Clause(WHEN, t.person, t.verb, t.noun, modal=CAN), 0.1),
        ],
        ("time", "person"),
    ),
    "request": Act(
        0.1,
        lambda t: Clause(PLEASE, "", t.verb, t.noun, time=t.time),
        lambda t, w: [
            (_said(t, ME, time=t.time, modal=CAN, opening="yes"), 0.35),
            (_said(t, w.owner[t.noun], modal=MUST, opening="sorry"), 0.3),
            (Clause(WHERE, t.noun), 0.2),
            (Clause(WHEN, ME, t.verb, t.noun, modal=MUST), 0.15),
        ],
    ),
    "plan": Act(
        0.08,
        lambda t: _said(t, WE, time=t.time, modal=WANT),
        lambda t, w: [
            (_said(t, ME, modal=WANT, opening="great"), 0.35),
            (Clause(ASK, w.owner[t.noun], t.verb, t.noun, modal=CAN), 0.25),
            (_said(t, YOU, place=w.home[t.noun], modal=CAN), 0.2),
            (_said(t, ME, time=w.time[t.verb], modal=MUST, opening="no"), 0.2),
        ],
    ),
}


def known_pairs() -> list[tuple[str, str]]:
    """Verbs with the nouns that are their objects."""
    return [(verb, noun) for verb, noun in pairs(wider=False) if PLACE not in VERBS[verb].classes]


def draw_message(random: Random, known: list[tuple[str, str]]) -> Message:
    """A message; fields of the topic that its act does not use are empty."""
    act = random.choices(list(ACTS), [one.share for one in ACTS.values()])[0]
    uses = ACTS[act].uses
    verb, noun = random.choice(known)
    while act == "how many" and set(NOUNS[noun].classes) & set(UNCOUNTED):
        verb, noun = random.choice(known)
    time, person, quality = random.choice(TIMES), random.choice(NAMES), random.choice(QUALITIES)
    timed = "time" in uses and random.random() < TIMED
    topic = Topic(verb, noun, time if timed else "", person if "person" in uses else "", "")
    if "quality" in uses:
        topic = Topic("", noun, "", "", quality)
    return Message(act, topic)


def draw_reply(world: World, message: Message, random: Random) -> Clause:
    """One of the replies, by their shares."""
    replies = world.replies(message)
    return random.choices([clause for clause, _ in replies], [share for _, share in replies])[0]
