"""The errors of systems by kind: predictions that are not accepted, and heavy translations that were not found.

Each is compared with the nearest translation on the other side, see `Neighbours`;
`mrs_suggest.staple.analysis.error_kinds` names the difference.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.common.report.pages import Block, Grid, Heading, Paragraph, Picture
from mrs_suggest.common.text.text import visible
from mrs_suggest.staple.analysis.error_kinds import (
    NOT_FOUND,
    OVER_GENERATED,
    PRECISION_KINDS,
    RECALL_KINDS,
    TITLES,
    kind_of,
)
from mrs_suggest.staple.analysis.error_words import ErrorWords, error_words, made_up_words
from mrs_suggest.staple.analysis.scored_systems import System
from mrs_suggest.staple.gold import Gold

EXAMPLES = 5  # of each kind
HEAVY = 10  # missed translations of a prompt that are looked at, the heaviest; ours: the rest has little weight
DRAW = 1e-9  # similarities that differ by less are equal


class Example(NamedTuple):
    """An error.

    Attributes:
        weight: of the accepted translation: the one that is missing or, of a wrong prediction, the nearest one.
        predicted, accepted: as they are written; predicted is empty where nothing is near.
    """

    weight: float
    prompt: str
    predicted: str
    accepted: str


@dataclass(frozen=True)
class Kind:
    """The errors of a kind.

    Attributes:
        lost: weight of the missing translations, as a share of all accepted weight; 0 for wrong predictions.
        examples: the heaviest ones, of different prompts.
    """

    count: int
    lost: float
    examples: Sequence[Example]


@dataclass(frozen=True)
class Errors:
    """The errors of a system by kind.

    Attributes:
        precision: of predictions that are not accepted.
        recall: of missing translations, the `HEAVY` heaviest of each prompt.
        missed: share of all accepted weight that is missing.
        unseen: the part of it that the lighter translations, which were not looked at, have.
    """

    precision: dict[str, Kind]
    recall: dict[str, Kind]
    missed: float
    unseen: float

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"weight_missed": self.missed, "weight_not_looked_at": self.unseen}
        for side, kinds in (("precision", self.precision), ("recall", self.recall)):
            for name, kind in kinds.items():
                lost = {"weight_lost": kind.lost} if side == "recall" else {}
                examples = [example._asdict() for example in kind.examples]
                found.setdefault(side, {})[name] = {"count": kind.count, **lost, "examples": examples}
        return found


class Neighbours:
    """Finds the nearest of some translations.

    Nearest is the one with the highest Dice coefficient of words and of the letter pairs inside words, so that order
    does not count; of equals the one with the fewest words in another place, then the first.
    """

    def __init__(self, texts: Sequence[str], lists: ErrorWords) -> None:
        self.texts = texts
        self.words = words = [lists.cut(text) for text in texts]
        self.known: dict[tuple[str, int], int] = {}
        rows = [[self.known.setdefault(key, len(self.known)) for key in _features(one)] for one in words]
        self.has = np.zeros((len(words), len(self.known)), dtype=np.float32)
        for place, row in enumerate(rows):
            self.has[place, row] = 1
        self.sizes = np.array([len(row) for row in rows], dtype=np.float32)

    def nearest(self, other: Sequence[str]) -> tuple[str, list[str]]:
        """The nearest translation and its words; there must be one."""
        features = _features(other)
        columns = [self.known[key] for key in features if key in self.known]
        shared: NDArray[np.float32] = self.has[:, columns].sum(axis=1)
        dice = 2 * shared / (self.sizes + len(features))
        best = np.flatnonzero(dice >= dice.max() - DRAW).tolist()
        place = min(best, key=lambda place: (_moved(self.words[place], other), place))
        return self.texts[place], self.words[place]


def _features(words: Sequence[str]) -> list[tuple[str, int]]:
    """Words and letter pairs inside words, each with a number where it comes several times."""
    seen: Counter[str] = Counter()
    found = []
    for word in words:
        padded = f" {word} "
        for part in (f"={word}", *(a + b for a, b in pairwise(padded))):
            found.append((part, seen[part]))
            seen[part] += 1
    return found


def _moved(words: Sequence[str], others: Sequence[str]) -> int:
    same = sum(a == b for a, b in zip(words, others, strict=False))
    same_behind = sum(a == b for a, b in zip(reversed(words), reversed(others), strict=False))
    return max(len(words), len(others)) - max(same, same_behind)


class ErrorAnalysis:
    """The errors of systems on the same data; what is cut once serves all of them."""

    def __init__(self, gold: Gold, lists: ErrorWords) -> None:
        self.gold, self.lists = gold, lists
        self._accepted: dict[str, Neighbours] = {}

    @cached_property
    def total(self) -> float:
        """The weight of all accepted translations."""
        return sum(sum(accepted.values()) for accepted in self.gold.accepted.values())

    def of(self, system: System) -> Errors:
        precision: dict[str, list[Example]] = {kind: [] for kind in PRECISION_KINDS}
        recall: dict[str, list[Example]] = {kind: [] for kind in RECALL_KINDS}
        missed = unseen = 0.0
        for key, accepted in self.gold.accepted.items():
            predicted = system.predicted[key]
            for kind, example in self._wrong(key, [text for text in predicted if text not in accepted], predicted):
                precision[kind].append(example)
            missing = sorted((text for text in accepted if text not in predicted), key=lambda one: -accepted[one])
            missed += sum(accepted[text] for text in missing)
            unseen += sum(accepted[text] for text in missing[HEAVY:])
            for kind, example in self._missing(key, missing[:HEAVY], predicted):
                recall[kind].append(example)
        return Errors(
            {name: self._kind(found, False) for name, found in precision.items()},
            {name: self._kind(found, True) for name, found in recall.items()},
            missed / self.total,
            unseen / self.total,
        )

    def _wrong(self, key: str, texts: Sequence[str], predicted: Mapping[str, str]) -> Iterator[tuple[str, Example]]:
        """Predictions that are not accepted, each with the nearest accepted translation."""
        accepted, written = self.gold.accepted[key], self.gold.written[key]
        if texts and key not in self._accepted:
            self._accepted[key] = Neighbours(sorted(accepted, key=lambda text: -accepted[text]), self.lists)
        for text in texts:
            words = self.lists.cut(text)
            near, near_words = self._accepted[key].nearest(words)
            kind = kind_of(words, near_words, self.lists)
            yield kind, Example(accepted[near], key, predicted[text], written[near])

    def _missing(self, key: str, texts: Sequence[str], predicted: Mapping[str, str]) -> Iterator[tuple[str, Example]]:
        """Missing translations, each with the nearest prediction."""
        neighbours = Neighbours(list(predicted), self.lists)
        for text in texts:
            kind, shown, words = NOT_FOUND, "", self.lists.cut(text)
            if predicted:
                near, near_words = neighbours.nearest(words)
                kind = kind_of(near_words, words, self.lists)
                kind, shown = (NOT_FOUND, "") if kind == OVER_GENERATED else (kind, predicted[near])
            yield kind, Example(self.gold.accepted[key][text], key, shown, self.gold.written[key][text])

    def _kind(self, found: Sequence[Example], weighed: bool) -> Kind:
        heaviest: dict[str, Example] = {}
        for example in sorted(found, key=lambda one: -one.weight):
            heaviest.setdefault(example.prompt, example)
        lost = sum(example.weight for example in found) / self.total if weighed else 0.0
        return Kind(len(found), lost, list(heaviest.values())[:EXAMPLES])


PICTURE = "errors.png"
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++", "---")  # tell systems apart without colour
GREYS = ("#444444", "#bbbbbb", "#eeeeee", "#999999", "#dddddd", "#777777", "#cccccc", "#aaaaaa")
MOST_DRAWN = 8  # systems; more bars cannot be told apart


def lists_of(gold: Gold) -> tuple[ErrorWords, str]:
    """The lists of words for the data's language, and a note if they are missing."""
    found = made_up_words(gold.language, gold.seed) if gold.seed is not None else None
    found = found or error_words(gold.language)
    if found:
        return found, ""
    note = f"Word lists for {gold.language or 'an unknown language'} are missing, so only word order and "
    return ErrorWords(gold.language), f"{note}over-generated translations are distinguished."


def error_blocks(gold: Gold, found: Mapping[str, Errors], note: str) -> Iterator[Block]:
    """Tables of counts and of lost weight, and the heaviest examples of every system."""
    yield Heading("Errors by kind")
    yield Paragraph(
        "Each wrong prediction stands next to the nearest accepted translation, and each missing translation next to "
        "the nearest prediction; rules and lists of words (ours) name what distinguishes the two, after section 4.5 "
        f"of the paper. {note}".strip()
    )
    yield Picture(PICTURE, "Shares of the kinds among wrong predictions, and accepted weight lost by kind")
    header = ["kind", *found]
    yield Paragraph("Predictions that are not accepted: how many, and their share of the system's wrong predictions.")
    yield Grid(
        header, [[TITLES[kind], *(_count(errors, kind) for errors in found.values())] for kind in PRECISION_KINDS]
    )
    yield Paragraph(
        f"Accepted translations that are missing, the {HEAVY} heaviest of each prompt: the share of all accepted "
        "weight that is lost with them."
    )
    lost = [[TITLES[kind], *(f"{errors.recall[kind].lost:.1%}" for errors in found.values())] for kind in RECALL_KINDS]
    lost.append(["lighter ones, not examined", *(f"{errors.unseen:.1%}" for errors in found.values())])
    lost.append(["all missing translations", *(f"{errors.missed:.1%}" for errors in found.values())])
    yield Grid(header, lost)
    for name, errors in found.items():
        yield from _examples(gold, name, errors)


def draw_errors(found: Mapping[str, Errors], path: Path) -> None:
    """Draw the shares of kinds among wrong predictions, and the weight lost by kind."""
    shown = dict(list(found.items())[:MOST_DRAWN])
    height = 1.6 + 0.13 * len(shown) * len(PRECISION_KINDS) + 0.12 * len(PRECISION_KINDS)
    with drawing(path, 1, 2, figsize=(10, height)) as (figure, (left, right)):
        width = 0.8 / len(shown)
        for number, (name, errors) in enumerate(shown.items()):
            look = {
                "height": width, "color": GREYS[number], "hatch": HATCHES[number], "edgecolor": "black",
                "linewidth": 0.6, "label": visible(name)[:40].replace("$", r"\$"),
            }  # fmt: skip
            offset = (number - (len(shown) - 1) / 2) * width
            total = sum(kind.count for kind in errors.precision.values()) or 1
            places = [place + offset for place in range(len(PRECISION_KINDS))]
            left.barh(places, [100 * errors.precision[kind].count / total for kind in PRECISION_KINDS], **look)
            right.barh(places, [100 * errors.recall[kind].lost for kind in RECALL_KINDS], **look)
        left.set(title="Wrong predictions", xlabel="% of the system's wrong predictions")
        right.set(title=f"Missing translations, {HEAVY} heaviest a prompt", xlabel="% of all accepted weight")
        for axis, kinds in ((left, PRECISION_KINDS), (right, RECALL_KINDS)):
            axis.set_yticks(range(len(kinds)), [TITLES[kind] for kind in kinds], fontsize=8)
            axis.invert_yaxis()
            axis.grid(axis="x", alpha=0.3)
            axis.set_axisbelow(True)
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def _count(errors: Errors, kind: str) -> str:
    total = sum(found.count for found in errors.precision.values())
    count = errors.precision[kind].count
    return f"{count:,} ({count / total:.0%})" if total else "0"


def _examples(gold: Gold, name: str, errors: Errors) -> Iterator[Block]:
    """The heaviest examples of a system, wrong predictions first."""
    sides = (
        ("wrong predictions", errors.precision, ["kind", "prompt", "predicted", "nearest accepted", "its weight"]),
        ("missing translations", errors.recall, ["kind", "prompt", "nearest prediction", "missing", "its weight"]),
    )
    for what, kinds, header in sides:
        rows = [
            [TITLES[kind], gold.prompts[one.prompt], one.predicted, one.accepted, f"{one.weight:.3f}"]
            for kind, found in kinds.items()
            for one in found.examples
        ]
        if rows:
            yield Heading(f"{name}: {what}", 3)
            yield Grid(header, rows, texts=True)
