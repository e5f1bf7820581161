"""Two invented target languages: all translations of a prompt, with the share of learners who choose each."""

from collections.abc import Iterator, Sequence
from random import Random
from typing import NamedTuple

from mrs_datasets.synthetic.grammar.english import NUMBERS, PRONOUNS, Meaning
from mrs_datasets.synthetic.grammar.words import Lexicon, Options, Words

WORD_ORDER, PRONOUN, NUMBER, VERB_SUFFIX, DECLENSION, LOANWORD = PHENOMENA = (
    "word_order", "pronoun", "number", "verb_suffix", "declension", "loanword",
)  # fmt: skip
LEAST_SHARE = 0.0012  # of learners who give an accepted translation (our choice: tens to a few hundred per prompt)
SENSES = (0.7, 0.3)  # shares of learners who understand a noun as its first and as its second class (our choice)
USUAL = 10  # one of this many most usual translations is used to make a wrong one
Subjects = list[tuple[tuple[str, str], float]]  # ((word, person), share)


class Parts(NamedTuple):
    """The parts of a translation.

    Attributes:
        subject: a pronoun or a noun; empty if it is dropped.
        person: what the verb agrees with, such as `1s`.
        particle: after the subject.
        verb, suffix: stem and ending.
        number: a number word (qab: with its classifier), or empty.
        noun, case: stem and ending, or particle, of the object or place.
        time, please: words, or empty.
        order: initials of subject, verb, object or place, time and please; N for a number after its noun.
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
    order: str


class Translation(NamedTuple):
    """A translation and the share of all learners who give it."""

    text: str
    share: float
    parts: Parts


class InventedLanguage:
    """The algorithms that both languages share; a subclass has the rules, and a seed draws the words.

    Attributes:
        never: orders that no learner uses.
        wrong_cases: endings or particles that may replace that of the object.
        vocabulary: phenomenon -> its words and endings, accepted or not.
    """

    code: str
    never: tuple[str, ...]
    lexicon: Lexicon
    wrong_cases: Sequence[str]
    vocabulary: dict[str, Sequence[str]]

    def subjects(self, meaning: Meaning) -> Subjects:
        raise NotImplementedError

    def particles(self, subject: str) -> Options:
        return [("", 1.0)]

    def suffixes(self, meaning: Meaning, person: str, stem: str) -> Options:
        raise NotImplementedError

    def cases(self, meaning: Meaning, stem: str) -> Options:
        raise NotImplementedError

    def number(self, meaning: Meaning, name: str) -> str:
        return self.lexicon.number(meaning.number)

    def orders(self, meaning: Meaning) -> Options:
        raise NotImplementedError

    def places(self, parts: Parts) -> dict[str, str]:
        """The words for each letter of an order."""
        raise NotImplementedError

    def wrong_pronouns(self, parts: Parts) -> Sequence[str]:
        raise NotImplementedError

    def wrong_suffixes(self, stem: str) -> Sequence[str]:
        raise NotImplementedError

    def text(self, parts: Parts) -> str:
        words = self.places(parts)
        return " ".join(words[place] for place in parts.order if words[place])

    def accepted(self, meaning: Meaning) -> list[Translation]:
        """The translations that at least `LEAST_SHARE` of learners give, most usual first; all texts differ."""
        found = [Translation(self.text(parts), share, parts) for parts, share in self._all(meaning)]
        return sorted(found, key=lambda one: (-one.share, one.text))

    def count(self, meaning: Meaning) -> int:
        """How many translations are accepted."""
        return sum(1 for _ in self._all(meaning))

    def wrong_translations(self, meaning: Meaning, accepted: Sequence[Translation], random: Random) -> dict[str, str]:
        """Phenomenon -> a translation with one error of the kind that systems make (section 4.5).

        None is accepted; a phenomenon is missing if it cannot be wrong in this prompt.
        """
        right = {one.text for one in accepted}
        found = {}
        for phenomenon in PHENOMENA:
            for one in accepted[:USUAL]:
                texts = dict.fromkeys(self.text(parts) for parts in self._wrong(meaning, one.parts, phenomenon))
                if wrong := [text for text in texts if text not in right]:
                    found[phenomenon] = random.choice(wrong)
                    break
        return found

    def _wrong(self, meaning: Meaning, parts: Parts, phenomenon: str) -> Iterator[Parts]:
        if phenomenon == WORD_ORDER:
            for order in self.never:
                kept = "".join(place for place in order if place in parts.order)
                yield parts._replace(order=kept.replace("O", "ON") if "N" in parts.order else kept)
        elif phenomenon == PRONOUN and meaning.subject in PRONOUNS:
            order = parts.order if "S" in parts.order else f"S{parts.order}"
            for pronoun in self.wrong_pronouns(parts):
                yield parts._replace(subject=pronoun, particle=self.particles(pronoun)[0][0], order=order)
        elif phenomenon == NUMBER and parts.number:
            yield from (parts._replace(number=number) for number in self.vocabulary[NUMBER])
        elif phenomenon == VERB_SUFFIX:
            yield from (parts._replace(suffix=suffix) for suffix in self.wrong_suffixes(parts.verb))
        elif phenomenon == DECLENSION:
            yield from (parts._replace(case=case) for case in self.wrong_cases)
        elif phenomenon == LOANWORD:
            loan = self.lexicon.loans[meaning.noun]
            yield parts._replace(noun=loan, case=self.cases(meaning, loan)[0][0])

    def _nouns(self, meaning: Meaning) -> Iterator[tuple[str, str, float]]:
        """(stem, class, share) of the noun, in each sense that the verb allows."""
        senses = meaning.classes
        for name, share in zip(senses, SENSES if len(senses) > 1 else (1.0,), strict=True):
            for stem, one in self.lexicon.nouns[meaning.noun, name]:
                yield stem, name, share * one

    def _all(self, meaning: Meaning) -> Iterator[tuple[Parts, float]]:
        """All combinations with a share of at least `LEAST_SHARE`; with the rare ones, shares would sum to 1."""
        times = self.lexicon.times[meaning.time] if meaning.time else [("", 1.0)]
        please = self.lexicon.please if meaning.polite else [("", 1.0)]
        absent = ("" if meaning.time else "T") + ("" if meaning.polite else "P")
        orders = {gone: _without(self.orders(meaning), absent + ("S" if gone else "")) for gone in (True, False)}
        around = {
            gone: [
                (time, word, order, p1 * p2 * p3) for time, p1 in times for word, p2 in please for order, p3 in found
            ]
            for gone, found in orders.items()
        }
        for noun, name, p1 in self._nouns(meaning):
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
        number = self.number(meaning, name)
        for particle, p1 in self.particles(subject):
            for suffix, p2 in self.suffixes(meaning, person, verb):
                for case, p3 in self.cases(meaning, noun):
                    if (share := head * p1 * p2 * p3) >= LEAST_SHARE:
                        yield (particle, verb, suffix, number, noun, case), share


def _without(orders: Options, absent: str) -> Options:
    """The orders without some places; those that become equal are one."""
    found: dict[str, float] = {}
    for order, share in orders:
        kept = "".join(place for place in order if place not in absent)
        found[kept] = found.get(kept, 0.0) + share
    return list(found.items())


BACK, FRONT = "aou", "eiü"
# Shares are our choice. The polite form of `you` agrees like he and she, which are one word.
PERSON_OF = {
    "i": (("1s", 1.0),), "you": (("2s", 0.62), ("formal", 0.28), ("2p", 0.1)), "he": (("3s", 1.0),),
    "she": (("3s", 1.0),), "we": (("1p", 1.0),), "they": (("3p", 1.0),),
}  # fmt: skip
DROPPED = {"1s": 0.72, "2s": 0.72, "formal": 0.3, "2p": 0.6, "3s": 0.2, "1p": 0.72, "3p": 0.3}


class Qaa(InventedLanguage):
    """Verbs agree with the subject, pronouns are dropped, endings follow vowel harmony."""

    code = "qaa"
    never = ("OSTVP", "VTOSP")
    statement = (("SVOT", 0.5), ("TSVO", 0.3), ("STVO", 0.12), ("SOVT", 0.08))
    request = (("PVOT", 0.62), ("VOTP", 0.24), ("TPVO", 0.08), ("VPOT", 0.06))

    def __init__(self, random: Random) -> None:
        words = Words("ptkmnlsr", (BACK, FRONT), random)
        persons = ("1s", "2s", "3s", "1p", "2p", "3p", "request", "formal request")
        self.endings = dict(zip(persons, _endings(random), strict=True))
        self.case_endings = dict(zip(("object", "to", "into"), _endings(random, long=True), strict=False))
        self.pronouns = {name: words.word(1, closed=name != "3s") for name in DROPPED}
        self.rare_pronouns = {"1s": words.word(2), "1p": words.word(2)}  # with stress, seldom used
        self.lexicon = Lexicon(words, "o")
        self.into = {noun for noun, name in self.lexicon.nouns if name == "place" and random.random() < 0.5}
        self.wrong_cases = [ending for pair in self.case_endings.values() for ending in pair]
        self.vocabulary = {
            PRONOUN: [*self.pronouns.values(), *self.rare_pronouns.values()],
            NUMBER: [self.lexicon.number(number) for number in NUMBERS],
            VERB_SUFFIX: [ending for pair in self.endings.values() for ending in pair],
            DECLENSION: self.wrong_cases,
            LOANWORD: list(self.lexicon.loans.values()),
        }

    def subjects(self, meaning: Meaning) -> Subjects:
        if not meaning.subject:
            return [(("", "request"), 0.6), (("", "formal request"), 0.4)]
        if meaning.subject not in PRONOUNS:
            person = "3p" if meaning.subject in ("the children", "my parents") else "3s"
            return [((word, person), share) for word, share in self.lexicon.subjects[meaning.subject]]
        found: Subjects = []
        for person, share in PERSON_OF[meaning.subject]:
            agrees, rare = "3s" if person == "formal" else person, 0.0
            if person in self.rare_pronouns:
                rare = 0.04
                found.append(((self.rare_pronouns[person], agrees), share * rare))
            found.append((("", agrees), share * DROPPED[person]))
            found.append(((self.pronouns[person], agrees), share * (1 - DROPPED[person] - rare)))
        return found

    def suffixes(self, meaning: Meaning, person: str, stem: str) -> Options:
        return [(_harmonic(self.endings[person], stem), 1.0)]

    def cases(self, meaning: Meaning, stem: str) -> Options:
        case = {name: _harmonic(pair, stem) for name, pair in self.case_endings.items()}
        if not meaning.motion:
            return [(case["object"], 1.0)]
        return [(case["into"], 0.75), (case["to"], 0.25)] if meaning.noun in self.into else [(case["to"], 1.0)]

    def orders(self, meaning: Meaning) -> Options:
        return self.statement if meaning.subject else self.request

    def places(self, parts: Parts) -> dict[str, str]:
        thing = f"{parts.number} {parts.noun}{parts.case}" if parts.number else parts.noun + parts.case
        return {"S": parts.subject, "V": parts.verb + parts.suffix, "O": thing, "T": parts.time, "P": parts.please}

    def wrong_pronouns(self, parts: Parts) -> Sequence[str]:
        return [pronoun for person, pronoun in self.pronouns.items() if person != parts.person]

    def wrong_suffixes(self, stem: str) -> Sequence[str]:
        return [_harmonic(pair, stem) for pair in self.endings.values()]


def _harmonic(pair: tuple[str, str], stem: str) -> str:
    """The ending for a stem: back vowels after back vowels, front ones after front ones."""
    last = next(letter for letter in reversed(stem) if letter in BACK + FRONT)
    return pair[0] if last in BACK else pair[1]


def _endings(random: Random, long: bool = False) -> list[tuple[str, str]]:
    """Eight endings, each with a back and a front vowel, and a consonant that no other has."""
    consonants = random.sample("ptkmnlsr", 8)
    found = []
    for number, consonant in enumerate(consonants):
        place = random.randrange(3)
        start = consonants[number - 1] if long else ""
        found.append((f"{start}{BACK[place]}{consonant}", f"{start}{FRONT[place]}{consonant}"))
    return found


# Shares of the forms of a pronoun, and of learners who drop it (our choice). Formal pronouns need the polite verb.
FORMS = {
    "i": (("i", 0.7), ("i formal", 0.3)), "you": (("you", 0.45), ("you formal", 0.55)), "he": (("he", 1.0),),
    "she": (("she", 1.0),), "we": (("we", 0.85), ("we formal", 0.15)), "they": (("they", 1.0),),
}  # fmt: skip
NEVER_USED = "i rude"  # a word of the language that learners do not write (the paper's boku, section 4.5)
GONE = {"i": 0.42, "you": 0.5, "he": 0.08, "she": 0.08, "we": 0.3, "they": 0.08}


class Qab(InventedLanguage):
    """The verb comes last, particles mark subject and object, numbers have classifiers, verbs have politeness."""

    code = "qab"
    never = ("VOSTP", "OVTSP")
    statement = (("SOV", 0.86), ("OSV", 0.14))
    timed = (("TSOV", 0.52), ("STOV", 0.34), ("SOTV", 0.14))
    request = (("POTV", 0.55), ("TOPV", 0.3), ("OTVP", 0.15))

    def __init__(self, random: Random) -> None:
        words = Words("bdgvzfhj", ("äëöüy",), random)
        self.endings = {name: words.word(1, closed=False) for name in ("plain", "polite", "request", "nuance")}
        self.endings["plain"] = ""
        marks = ("topic", "subject", "object", "to", "towards", "of")
        self.marks = {name: words.word(1, closed=False) for name in marks}
        names = dict.fromkeys([*(form for forms in FORMS.values() for form, _ in forms), NEVER_USED])
        self.pronouns = {name: words.word(2, closed=False) for name in names}
        counted = ("food", "text", "clothes", "animal", "instrument", "tool")
        self.classifiers = {name: words.word(1, closed=False) for name in counted}
        self.lexicon = Lexicon(words, "ë")
        self.towards = {noun for noun, name in self.lexicon.nouns if name == "place" and random.random() < 0.6}
        self.wrong_cases = [self.marks[name] for name in ("object", "subject", "to", "towards")]
        numbers = [self.lexicon.number(number) for number in NUMBERS]
        self.vocabulary = {
            PRONOUN: list(self.pronouns.values()),
            NUMBER: [number + name for number in numbers for name in self.classifiers.values()],
            VERB_SUFFIX: [ending for ending in self.endings.values() if ending],
            DECLENSION: list(self.marks.values()),
            LOANWORD: list(self.lexicon.loans.values()),
        }

    def subjects(self, meaning: Meaning) -> Subjects:
        if not meaning.subject:
            return [(("", "request"), 1.0)]
        if meaning.subject not in PRONOUNS:
            return [((word, "any"), share) for word, share in self.lexicon.subjects[meaning.subject]]
        dropped = GONE[meaning.subject]
        forms = [
            ((self.pronouns[form], "formal" if form.endswith("formal") else "any"), share * (1 - dropped))
            for form, share in FORMS[meaning.subject]
        ]
        return [(("", "any"), dropped), *forms]

    def particles(self, subject: str) -> Options:
        return [(self.marks["topic"], 0.8), (self.marks["subject"], 0.2)] if subject else [("", 1.0)]

    def suffixes(self, meaning: Meaning, person: str, stem: str) -> Options:
        if person == "request":
            asked = self.endings["request"]
            return [(asked, 1.0)] if meaning.polite else [(asked, 0.7), (self.endings["plain"], 0.3)]
        polite = self.endings["polite"]
        return [(polite, 1.0)] if person == "formal" else [(polite, 0.66), (self.endings["plain"], 0.34)]

    def cases(self, meaning: Meaning, stem: str) -> Options:
        if not meaning.motion:
            return [(self.marks["object"], 1.0)]
        to, towards = self.marks["to"], self.marks["towards"]
        return [(to, 0.7), (towards, 0.3)] if meaning.noun in self.towards else [(to, 1.0)]

    def number(self, meaning: Meaning, name: str) -> str:
        word = self.lexicon.number(meaning.number)
        return word + self.classifiers[name] if word else ""

    def orders(self, meaning: Meaning) -> Options:
        plain = self.request if not meaning.subject else self.timed if meaning.time else self.statement
        if meaning.number == 1:
            return plain
        # Half of the learners say noun, particle, number; the others say number, of, noun.
        return [(one, share * 0.5) for order, share in plain for one in (order.replace("O", "ON"), order)]

    def places(self, parts: Parts) -> dict[str, str]:
        thing = f"{parts.noun} {parts.case}"
        if parts.number and "N" not in parts.order:
            thing = f"{parts.number} {self.marks['of']} {thing}"
        subject, verb = f"{parts.subject} {parts.particle}", parts.verb + parts.suffix
        return {"S": subject, "V": verb, "O": thing, "N": parts.number, "T": parts.time, "P": parts.please}

    def wrong_pronouns(self, parts: Parts) -> Sequence[str]:
        return list(self.pronouns.values())

    def wrong_suffixes(self, stem: str) -> Sequence[str]:
        return list(self.endings.values())


def made_up_languages(seed: int) -> dict[str, InventedLanguage]:
    """The two languages with the words of a seed."""
    return {kind.code: kind(Random(f"{seed}/words/{kind.code}")) for kind in (Qaa, Qab)}
