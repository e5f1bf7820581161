"""Causal questions in two made-up languages, with COPA's columns; nothing is read: they are drawn from a seed.

    mrs data prepare synthetic-copa --source synthetic[:SEED] --out DIR

There are four events, in a circle: a causes b, b causes c, c causes d, and d causes a. The premise is b or d, the
choices are a and c, and `question` asks for the cause or the effect: a is the cause and c the effect of b, c is the
cause and a the effect of d. What hides the premise or the question leaves two rows with equal texts and different
answers, both in the same split: without premise (NoP), question (NoQ) or both, exactly half of the answers are right,
whatever was learned. So the answer is a parity of premise, question and choice, on which gradient descent from random
weights stalls where much else varies: hence few events, each with a verb and an object of its own, and short sentences.

What varies is who does it, and when; no two rows are equal. Language qaa (subject, verb, object, time) is for
training; qab has the same questions in words of its own, in another order (time, object, subject, verb), so that
nothing transfers but through translations: `translation-qab` is qab word for word in qaa.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa

from mrs_datasets.catalogue import read_record
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers import Chunks
from mrs_datasets.readers.xcopa_questions import with_corrected

RECORD = read_record("synthetic-copa")
EVENTS = 4  # with more, two choices would tell without the premise which of them is the cause
CHOICES, PREMISES = (0, 2), (1, 3)
SUBJECTS, TIMES = 25, 25  # see above
CHANGED = 0.04  # of qab's rows, as of XCOPA's labels 2.4 % differ from the majority (section 2)
SIZES = {"train": 4000, "validation": 400, "test": 500}
QUESTIONS = ("cause", "effect")
CONSONANTS = {"qaa": "ptkmnlsr", "qab": "bdgvzfhj"}  # no letter of one in the other's syllables, but vowels
VOWELS = {"qaa": "aeiou", "qab": "äëöüy"}


@dataclass(frozen=True)
class Event:
    """What is said in one sentence: who, the event's number in the circle, and when."""

    subject: int
    number: int
    time: int


@dataclass(frozen=True)
class Question:
    """One row, in no language.

    Attributes:
        label: of the right choice, 0 or 1.
        changed: in qab, as if its translator had chosen the other one.
    """

    premise: Event
    choices: tuple[Event, Event]
    question: str
    label: int
    changed: bool


@dataclass(frozen=True)
class Lexicon:
    """The words of a made-up language, all different, and their order."""

    subjects: Sequence[str]
    verbs: Sequence[str]
    objects: Sequence[str]
    times: Sequence[str]
    order: Callable[[str, str, str, str], tuple[str, ...]]

    def sentence(self, event: Event) -> str:
        """One sentence, with a capital and a full stop."""
        verb, thing = self.verbs[event.number], self.objects[event.number]
        words = self.order(self.subjects[event.subject], verb, thing, self.times[event.time])
        return f"{' '.join(words).capitalize()}."


ORDERS: dict[str, Callable[[str, str, str, str], tuple[str, ...]]] = {
    "qaa": lambda subject, verb, thing, time: (subject, verb, thing, time),
    "qab": lambda subject, verb, thing, time: (time, thing, subject, verb),
}


def read_synthetic_copa(seed: int, report: Report) -> Chunks:
    """The data set of a seed; equal seeds give equal rows."""
    report.settings["seed"] = seed
    random = Random(seed)
    lexicons = {code: lexicon(code, random) for code in CONSONANTS}
    splits = draw_questions(random)
    for code in lexicons:
        for split, questions in splits.items():
            yield code, split, _table(code, lexicons[code], questions, changes=code == "qab")
    for split in RECORD.kinds["translation"].splits:
        yield "translation-qab", split, _table("translation-qab", lexicons["qaa"], splits[split], changes=True)


def lexicon(code: str, random: Random) -> Lexicon:
    """The words of a language, of two or three syllables."""
    sizes = (SUBJECTS, EVENTS, EVENTS, TIMES)
    found: dict[str, None] = {}
    while len(found) < sum(sizes):
        syllables = random.choice((2, 2, 3))
        found["".join(random.choice(CONSONANTS[code]) + random.choice(VOWELS[code]) for _ in range(syllables))] = None
    words = iter(found)
    subjects, verbs, objects, times = ([next(words) for _ in range(size)] for size in sizes)
    return Lexicon(subjects, verbs, objects, times, ORDERS[code])


def draw_questions(random: Random) -> dict[str, list[Question]]:
    """The questions of each split, in random order, no two with equal events and choices.

    They are drawn by four: both premises with the same two choices, and both questions to each.
    """
    fours = [
        (turned, subject, time) for turned in (False, True) for subject in range(SUBJECTS) for time in range(TIMES)
    ]
    random.shuffle(fours)
    drawn = iter(fours)
    splits = {}
    for split, size in SIZES.items():
        splits[split] = [one for _ in range(size // 4) for one in _four(*next(drawn), random)]
        random.shuffle(splits[split])
    return splits


def _four(turned: bool, subject: int, time: int, random: Random) -> Iterator[Question]:
    places = CHOICES[::-1] if turned else CHOICES
    choices = Event(subject, places[0], time), Event(subject, places[1], time)
    for premise in PREMISES:
        for question, step in zip(QUESTIONS, (-1, 1), strict=True):
            label = places.index((premise + step) % EVENTS)
            yield Question(Event(subject, premise, time), choices, question, label, random.random() < CHANGED)


def _table(config: str, words: Lexicon, questions: Sequence[Question], changes: bool) -> pa.Table:
    rows = [
        {
            "premise": words.sentence(one.premise),
            "choice1": words.sentence(one.choices[0]),
            "choice2": words.sentence(one.choices[1]),
            "question": one.question,
            "label": one.label,
            "idx": idx,
            "changed": changes and one.changed,
        }
        for idx, one in enumerate(questions)
    ]
    return pa.Table.from_pylist(with_corrected(rows, {}), RECORD.schema(config))
