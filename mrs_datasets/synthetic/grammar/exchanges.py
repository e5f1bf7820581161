"""Messages and the replies that answer them, in no language.

A reply repeats what the message is about, or tells a fact of the world that the message asks for (`World`): so the
message has to be understood, and every language has the same answers.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

from mrs_datasets.synthetic.grammar.clauses import (
    ASK,
    CAN,
    HOW_MANY,
    ME,
    MUST,
    NAMES,
    PLEASE,
    QUALITIES,
    SAY,
    WANT,
    WE,
    WHEN,
    WHERE,
    WHO,
    YOU,
    Clause,
)
from mrs_datasets.synthetic.grammar.english import NOUNS, PLACE, TIMES, UNCOUNTED, VERBS, pairs

NUMBERS = (2, 3, 5, 6, 8)
TIMED = 0.6  # share of the messages that name a time, where they can; ours


class Topic(NamedTuple):
    """What a message is about.

    Attributes:
        time: one of `TIMES`, or empty.
        person: one of `NAMES`.
        quality: one of `QUALITIES`.
    """

    verb: str
    noun: str
    time: str
    person: str
    quality: str


class Message(NamedTuple):
    """A message: what kind it is, and what it is about."""

    act: str
    topic: Topic

    def clause(self) -> Clause:
        """What it says."""
        return ACTS[self.act].says(self.topic)


class World:
    """The facts of a seed: of each noun its owner, its place, how many are needed and what it is like; of each verb its
    time."""

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
        uses: what of the topic is said beside verb and noun.
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
    """A message; what its act does not use is empty."""
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
