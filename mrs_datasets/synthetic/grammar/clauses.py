"""What one sentence of a conversation says, in no language, and how English says it."""

from __future__ import annotations

from dataclasses import dataclass

from mrs_datasets.synthetic.grammar.english import BARE, NOUNS, VERBS

SAY, ASK, PLEASE, WHERE, WHEN, WHO, HOW_MANY = MOODS = ("say", "ask", "please", "where", "when", "who", "how many")
WANT, CAN, MUST = MODALS = ("want", "can", "must")
ME, YOU, WE = PRONOUNS = ("i", "you", "we")
NAMES = ("anna", "omar", "lena", "hugo", "mira", "ivan", "nora", "paul", "rosa", "emil")  # the same in every language
QUALITIES = ("good", "bad", "new", "old", "cheap", "expensive", "nice", "ugly", "small", "big")
OPENINGS = ("yes", "no", "sorry", "great")
BE = {ME: "am", YOU: "are", WE: "are"}


@dataclass(frozen=True)
class Clause:
    """One sentence.

    Attributes:
        mood: one of `MOODS`.
        subject: one of `PRONOUNS` or `NAMES`, or a noun; empty in a request and behind who.
        verb: a key of `VERBS`; empty for to be.
        thing: the object, a key of `NOUNS`, or empty.
        number: how many things; 1 for the article.
        quality, place: what or where the subject is; with a verb, the place where it happens.
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
        """What ends the sentence."""
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
    words = _be(clause) if not clause.verb else _verb(clause)
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
