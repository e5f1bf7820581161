"""The data set `synthetic-copa`: causal questions in two invented languages, with XCOPA's columns.

There are four events, in a circle: a causes b, b causes c, c causes d, and d causes a. The premise is b or d, the
choices are a and c, and `question` asks for the cause or the effect: a is the cause and c the effect of b, c is the
cause and a the effect of d. If the premise or the question is hidden, two rows of the same split have equal texts and
different answers: without premise (NoP), question (NoQ) or both, exactly half of the answers can be right, whatever a
model has learned. The answer is therefore a parity of premise, question and choice, on which gradient descent from
random weights stalls if much else varies: hence few events, each with its own verb and object, and short sentences.

The rows differ in who does it and when; no two rows are equal. Language qaa (subject, verb, object, time) is for
training; qab has the same questions in different words and in another order (time, object, subject, verb), so that
only translations transfer: `translation-qab` is qab word for word in qaa.
"""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple

from mrs_datasets.readers.xcopa import with_corrected
from mrs_datasets.synthetic import Tables

EVENTS = 4  # with more, two choices would reveal which of them is the cause, even without the premise
CHOICES, PREMISES = (0, 2), (1, 3)
SUBJECTS, TIMES = 25, 25
CHANGED = 0.04  # of qab's rows; in XCOPA 2.4 % of the labels differ from the majority (section 2)
SIZES = {"train": 4000, "validation": 400, "test": 500}
# Consonants and vowels of the syllables (the languages share no letter), and the order of subject, verb, object, time.
LANGUAGES = {"qaa": ("ptkmnlsr", "aeiou", (0, 1, 2, 3)), "qab": ("bdgvzfhj", "äëöüy", (3, 2, 0, 1))}
Event = tuple[int, int, int]  # subject, the number in the circle, time


class Question(NamedTuple):
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


class Lexicon:
    """The words of a language, of two or three syllables, all different."""

    def __init__(self, code: str, random: Random) -> None:
        consonants, vowels, self.order = LANGUAGES[code]
        sizes = (SUBJECTS, EVENTS, EVENTS, TIMES)
        found: dict[str, None] = {}
        while len(found) < sum(sizes):
            syllables = random.choice((2, 2, 3))
            found["".join(random.choice(consonants) + random.choice(vowels) for _ in range(syllables))] = None
        words = iter(found)
        self.kinds = [[next(words) for _ in range(size)] for size in sizes]

    def sentence(self, event: Event) -> str:
        subject, number, time = event
        words = [kind[place] for kind, place in zip(self.kinds, (subject, number, number, time), strict=True)]
        return f"{' '.join(words[place] for place in self.order).capitalize()}."


def tables(seed: int) -> Tables:
    random = Random(seed)
    lexicons = {code: Lexicon(code, random) for code in LANGUAGES}
    splits = draw_questions(random)
    for code, words in lexicons.items():
        for split, questions in splits.items():
            yield code, split, _rows(words, questions, changes=code == "qab")
    for split in ("validation", "test"):
        yield "translation-qab", split, _rows(lexicons["qaa"], splits[split], changes=True)


def draw_questions(random: Random) -> dict[str, list[Question]]:
    """The questions of each split, in random order, no two with equal events and choices.

    They are drawn in groups of four: both premises with the same two choices, and both questions to each.
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
    choices = (subject, places[0], time), (subject, places[1], time)
    for premise in PREMISES:
        for question, step in (("cause", -1), ("effect", 1)):
            label = places.index((premise + step) % EVENTS)
            yield Question((subject, premise, time), choices, question, label, random.random() < CHANGED)


def _rows(words: Lexicon, questions: list[Question], changes: bool) -> list[dict[str, object]]:
    rows = []
    for idx, one in enumerate(questions):
        texts = zip(("premise", "choice1", "choice2"), map(words.sentence, (one.premise, *one.choices)), strict=True)
        answer = {"question": one.question, "label": one.label, "idx": idx, "changed": changes and one.changed}
        rows.append({**dict(texts), **answer})
    return with_corrected(rows, {})
