"""Clauses, messages and the replies that answer them, in no language; and how English says a clause.

A reply repeats the topic of the message, or states a fact that the message asks for (`World`), so that a model has to
understand the message. Every language has the same answers.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple

from mrs_datasets.synthetic.grammar.english import BARE, NOUNS, PLACE, TIMES, UNCOUNTED, VERBS, pairs
from mrs_suggest.common.io.packaged import read_packaged

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
        return _filled(ACTS[self.act]["says"], self.topic._asdict())


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
        topic = message.topic
        facts = {
            **topic._asdict(),
            "owner": self.owner[topic.noun],
            "home": self.home[topic.noun],
            "count": self.count[topic.noun],
            "true_quality": self.quality[topic.noun],
            "agrees": "yes" if self.quality[topic.noun] == topic.quality else "no",
            "true_time": self.time.get(topic.verb, ""),
        }
        return [(_filled(form, facts), form["share"]) for form in ACTS[message.act]["replies"]]


def _filled(form: Mapping[str, Any], facts: Mapping[str, Any]) -> Clause:
    """A clause of `acts.yaml` with the values of a topic, and of a world, in its angle brackets."""
    fields = {"mood": SAY, "verb": "<verb>", "thing": "<noun>", **form}
    filled = {name: facts[value[1:-1]] if str(value).startswith("<") else value for name, value in fields.items()}
    filled.pop("share", None)
    return Clause(**filled)


# Kind of message -> its share, its clause and its replies; the file says how they are written.
ACTS: dict[str, dict[str, Any]] = read_packaged("mrs_datasets.synthetic.grammar", "acts.yaml")


# Verbs with the nouns that are their objects.
OBJECTS = [(verb, noun) for verb, noun in pairs(wider=False) if PLACE not in VERBS[verb].classes]


def draw_message(random: Random) -> Message:
    """A message; fields of the topic that its act does not use are empty."""
    act = random.choices(list(ACTS), [one["share"] for one in ACTS.values()])[0]
    uses = ACTS[act]["uses"]
    verb, noun = random.choice(OBJECTS)
    while act == "how many" and set(NOUNS[noun].classes) & set(UNCOUNTED):
        verb, noun = random.choice(OBJECTS)
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
