"""`mrs staple report`: systems side by side, with the analyses of the paper (Mayhew et al. 2020, sections 3 and 4)."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

import mrs_suggest.common
from mrs_metrics.significance import STUDENTISED
from mrs_metrics.translations_f1 import oracle_curve
from mrs_suggest.common.io.files import atomic_folder, atomic_write
from mrs_suggest.common.report.drawing import drawing
from mrs_suggest.common.report.pages import Block, Grid, Heading, Paragraph, Picture, as_html, as_markdown
from mrs_suggest.common.text.text import finite_json, interval_text, visible
from mrs_suggest.evaluation.scores.systems import ALPHA, SAMPLES
from mrs_suggest.staple.analysis.errors import PICTURE, ErrorAnalysis, Errors, draw_errors, error_blocks, lists_of
from mrs_suggest.staple.analysis.scored_systems import MEANS, REFERENCE, System, as_json
from mrs_suggest.staple.gold import Gold

KS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 100, 200, 500)  # 1, 5 and 10 as in Table 7
MARKER = "report.json"
FIGURE_3, ORACLE = "precision_recall.png", "oracle.png"


@dataclass(frozen=True)
class Report:
    """The content of a report.

    Attributes:
        systems: best first.
        oracle: k -> weighted F1 of the k heaviest accepted translations of each prompt (Table 7).
        errors: system -> its errors by kind.
        words_note: given if the language lacks lists of words.
    """

    gold: Gold
    systems: Sequence[System]
    oracle: dict[int, float]
    errors: dict[str, Errors]
    words_note: str = ""


def make_report(gold: Gold, systems: Sequence[System]) -> Report:
    """Add the oracle and the errors to the scores of the systems."""
    most = max(map(len, gold.accepted.values()))
    ks = [k for k in KS if k < most] or [1]
    curve = oracle_curve(gold.rows, ks, gold.rules)  # type: ignore[arg-type]  # rows of the data set
    lists, note = lists_of(gold)
    analysis = ErrorAnalysis(gold, lists)
    errors = {system.name: analysis.of(system) for system in systems}
    return Report(gold, systems, {k: value for k, value in curve.items() if k is not None}, errors, note)


def write_report(report: Report, out: Path, overwrite: bool = False) -> None:
    """Write the folder, whole or not at all; InputError if it exists or cannot be written."""
    with atomic_folder(out, overwrite, MARKER) as folder:
        draw_precision_recall(report.systems, folder / FIGURE_3)
        draw_oracle(report.oracle, report.systems, folder / ORACLE)
        draw_errors(report.errors, folder / PICTURE)
        blocks = list(_blocks(report))
        atomic_write(folder / "report.md", as_markdown(blocks))
        atomic_write(folder / "report.html", as_html(blocks, folder, report.gold.language))
        content = finite_json(report_json(report))
        atomic_write(folder / MARKER, json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False) + "\n")


def report_json(report: Report) -> dict[str, Any]:
    """The report for programs; `scores` holds every prompt's, as `mrs staple effects` reads them."""
    gold = report.gold
    return {
        "version": mrs_suggest.common.__version__,
        "data": {**gold.source, "name": gold.name, "language": gold.language},
        "prompts": len(gold.rows),
        "accepted": gold.translations,
        "systems": [as_json(system) for system in report.systems],
        "oracle": {str(k): value for k, value in report.oracle.items()},
        "errors": {name: errors.as_json() for name, errors in report.errors.items()},
        "scores": {
            "track": gold.language,
            "prompts": list(report.systems[0].scores.ids),
            "systems": {
                system.name: {
                    kind: [round(value, 6) for value in getattr(system.scores, kind).tolist()] for kind in MEANS
                }
                for system in report.systems
            },
        },
    }


def system_rows(systems: Sequence[System]) -> tuple[list[str], list[list[str]]]:
    header = ["system", "rank", "precision", "weighted recall", "weighted F1", "top found", "translations", "missing"]
    rows = []
    for system in systems:
        means = (f"{system.mean(kind):.3f} {interval_text(system.intervals[kind], '{:.3f}'.format)}" for kind in MEANS)
        counts = (f"{system.top_found:.1%}", f"{system.translations:,}", f"{system.missing:,}")
        rows.append([system.name, str(system.scored.rank or ""), *means, *counts])
    return header, rows


def table_notes(report: Report) -> list[str]:
    notes = [
        f"Means over {len(report.gold.rows):,} prompts, in brackets their 95 % intervals ({STUDENTISED}).",
        f"Rank: a new one starts where neighbours differ (permutation test, {SAMPLES:,} samples, p < {ALPHA:g}).",
        "Top found: share of prompts whose heaviest accepted translation is predicted. Missing: prompts without any "
        "translation.",
    ]
    if any(system.name == REFERENCE for system in report.systems):
        notes.append(f"`{REFERENCE}` is the given automatic translation, one a prompt (baseline_aws in the paper).")
    return [*notes, f"`{report.systems[0].scores.signature}`"]


def _blocks(report: Report) -> list[Block]:
    gold = report.gold
    blocks: list[Block] = [
        Heading(f"STAPLE systems: {gold.name}", 1),
        Paragraph(f"{len(gold.rows):,} prompts with {gold.translations:,} accepted translations."),
        Heading("Systems"),
        Grid(*system_rows(report.systems)),
        Paragraph(" ".join(table_notes(report)), note=True),
        Heading("Precision and weighted recall"),
        Picture(FIGURE_3, "Mean precision and weighted recall of each system, with curves of equal F1"),
        Paragraph(
            "Crosses: 95 % intervals. Curves: F1 of the two means, which is not the mean of the prompts' F1 that the "
            "legend gives. Dashed: where both are equal (Figure 3 of the paper).",
            note=True,
        ),
    ]
    errors = error_blocks(gold, report.errors, report.words_note)
    return [*blocks, *_oracle_blocks(report), *errors]


def _oracle_blocks(report: Report) -> list[Block]:
    """The oracle's curve, and how many of its translations each system is worth."""
    all_k = {**{str(k): value for k, value in report.oracle.items()}, "all": 1.0}
    header = ["k", *all_k]
    rows = [["weighted F1", *(f"{value:.3f}" for value in all_k.values())]]
    worth = []
    for system in report.systems:
        above = [k for k, value in report.oracle.items() if value > system.mean("weighted_f1")]
        worth.append(f"{system.name} {f'k = {above[0]}' if above else 'none of these'}")
    return [
        Heading("Oracle"),
        Paragraph("Weighted F1 of the k heaviest accepted translations of each prompt, as in Table 7 of the paper."),
        Grid(header, rows),
        Paragraph(f"The smallest k here that is better than a system: {'; '.join(worth)}."),
        Picture(ORACLE, "Weighted F1 of the oracle over k, and of the systems"),
    ]


# Shape and filling tell systems apart without colour.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*", "h", "d")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))
COLOURS = ("#20639b", "#ed553b", "#3caea3", "#8a5fbf", "#b8860b", "#173f5f")
LEVELS = np.arange(0.1, 1.0, 0.1)  # F1 in increments of .1, as in Figure 3
SHOWN_NAME = 28  # characters of a system's name


def draw_precision_recall(systems: Sequence[System], path: Path) -> None:
    """Draw the mean precision and weighted recall of each system, with contours of F1.

    The crosses are the 95 % intervals of the two means; the dashed line is where both are equal.
    """
    with drawing(path, figsize=(8, 5.4)) as (figure, axis):
        _draw_contours(axis)
        for system, (marker, colour, filled) in zip(systems, _looks(), strict=False):
            x, y = system.mean("weighted_recall"), system.mean("precision")
            across = _arms(x, system.intervals["weighted_recall"])
            upwards = _arms(y, system.intervals["precision"])
            label = f"{_short(system.name)} ({system.mean('weighted_f1'):.3f})"
            axis.errorbar(
                x, y, xerr=across, yerr=upwards, fmt=marker, color=colour, label=label, markersize=8, elinewidth=0.8,
                markerfacecolor=colour if filled else "white",
            )  # fmt: skip
        axis.set(xlabel="weighted recall", ylabel="precision", xlim=(0, 1), ylim=(0, 1), aspect="equal")
        legend = {"title": "system (weighted F1)", "fontsize": 8, "title_fontsize": 8, "frameon": False}
        figure.legend(loc="outside right upper", **legend)


def draw_oracle(curve: Mapping[int, float], systems: Sequence[System], path: Path) -> None:
    """Draw weighted F1 of the oracle that gives the k heaviest translations, and that of each system as a line."""
    with drawing(path, figsize=(8.6, 4.6)) as (figure, axis):
        axis.plot(list(curve), list(curve.values()), color="black", marker="o", markersize=4, label="oracle")
        for number, (system, (_, colour, _)) in enumerate(zip(systems, _looks(), strict=False)):
            value, style = system.mean("weighted_f1"), DASHES[number % len(DASHES)]
            axis.axhline(value, color=colour, linestyle=style, linewidth=1.2, label=_short(system.name))
        axis.set_xscale("log")
        ticks = [k for k in curve if k in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)]
        axis.set_xticks(ticks, [str(k) for k in ticks])
        axis.minorticks_off()
        axis.set(xlabel="k heaviest accepted translations of each prompt", ylabel="weighted F1", ylim=(0, 1.02))
        axis.grid(alpha=0.3)
        figure.legend(loc="outside right upper", fontsize=8, frameon=False)


def _draw_contours(axis: Any) -> None:
    """Curves of equal F1, each named where it meets the right edge, and the diagonal."""
    for level in LEVELS:
        recall = np.linspace(level / (2 - level), 1, 200)
        axis.plot(recall, level * recall / (2 * recall - level), color="#999999", linewidth=0.7, zorder=0)
        place = (1.01, level / (2 - level))
        axis.annotate(f"{level:.1f}", place, fontsize=7, color="#666666", va="center", annotation_clip=False)
    axis.annotate("F1", (1.01, 0.92), fontsize=7, color="#666666", annotation_clip=False)
    axis.plot([0, 1], [0, 1], color="#999999", linestyle="--", linewidth=0.8, zorder=0)


def _looks() -> Any:
    """Marker, colour and whether it is filled; shapes repeat after twelve systems, then hollow."""
    shapes = [(marker, filled) for filled in (True, False) for marker in MARKERS]
    return ((marker, colour, filled) for (marker, filled), colour in zip(cycle(shapes), cycle(COLOURS), strict=False))


def _arms(mean: float, interval: tuple[float, float]) -> list[list[float]]:
    low, high = interval
    return [[max(0.0, mean - low)], [max(0.0, high - mean)]]


def _short(name: str) -> str:
    shown = visible(name).replace("$", r"\$")  # no formulas
    return shown if len(shown) <= SHOWN_NAME else f"{shown[: SHOWN_NAME - 1]}…"
