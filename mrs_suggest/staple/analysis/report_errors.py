"""The part of a report about errors by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.common.report.pages import Block, Grid, Heading, Paragraph, Picture
from mrs_suggest.common.text.text import visible
from mrs_suggest.staple.analysis.error_kinds import (
    DECLENSION,
    LOANWORD,
    NOT_FOUND,
    NUMBER,
    OTHER,
    OVER_GENERATED,
    PRECISION_KINDS,
    PRONOUN,
    RECALL_KINDS,
    SEVERAL,
    VERB_SUFFIX,
    WORD_ORDER,
)
from mrs_suggest.staple.analysis.error_words import ErrorWords, error_words, made_up_words
from mrs_suggest.staple.analysis.errors import HEAVY, ErrorAnalysis, Errors, Kind
from mrs_suggest.staple.analysis.scored_systems import System
from mrs_suggest.staple.gold import Gold

PICTURE = "errors.png"
NAMES = {
    WORD_ORDER: "word order",
    PRONOUN: "pronouns",
    NUMBER: "number words",
    VERB_SUFFIX: "verb suffixes",
    DECLENSION: "declension, particles",
    LOANWORD: "loanwords",
    SEVERAL: "several of these",
    OTHER: "other, undecided",
    OVER_GENERATED: "over-generated",
    NOT_FOUND: "nothing near",
}
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "ooo", "+++", "---")  # tell systems apart without colour
GREYS = ("#444444", "#bbbbbb", "#eeeeee", "#999999", "#dddddd", "#777777", "#cccccc", "#aaaaaa")
MOST_DRAWN = 8  # systems; more bars cannot be told apart


def lists_of(gold: Gold) -> tuple[ErrorWords, str]:
    """The lists of words for the data's language, and a note if they are missing."""
    found = made_up_words(gold.language, gold.seed) if gold.seed is not None else None
    found = found or error_words(gold.language)
    if found:
        return found, ""
    note = f"There are no lists of words for {gold.language or 'an unknown language'}, so that only word order and "
    return ErrorWords(gold.language), f"{note}over-generated translations are distinguished."


def analyse_errors(gold: Gold, systems: Sequence[System]) -> tuple[dict[str, Errors], str]:
    """System -> its errors, and a note about the lists of words."""
    lists, note = lists_of(gold)
    analysis = ErrorAnalysis(gold, lists)
    return {system.name: analysis.of(system) for system in systems}, note


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
        header, [[NAMES[kind], *(_count(errors, kind) for errors in found.values())] for kind in PRECISION_KINDS]
    )
    yield Paragraph(
        f"Accepted translations that are missing, the {HEAVY} heaviest of each prompt: the share of all accepted "
        "weight that is lost with them."
    )
    lost = [[NAMES[kind], *(f"{errors.recall[kind].lost:.1%}" for errors in found.values())] for kind in RECALL_KINDS]
    lost.append(["lighter ones, not looked at", *(f"{errors.unseen:.1%}" for errors in found.values())])
    lost.append(["all that is missing", *(f"{errors.missed:.1%}" for errors in found.values())])
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
            axis.set_yticks(range(len(kinds)), [NAMES[kind] for kind in kinds], fontsize=8)
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
        rows = [row for kind, found in kinds.items() for row in _rows(gold, kind, found)]
        if rows:
            yield Heading(f"{name}: {what}", 3)
            yield Grid(header, rows, texts=True)


def _rows(gold: Gold, kind: str, found: Kind) -> Iterator[list[str]]:
    for example in found.examples:
        texts = [gold.prompts[example.prompt], example.predicted, example.accepted]
        yield [NAMES[kind], *texts, f"{example.weight:.3f}"]
