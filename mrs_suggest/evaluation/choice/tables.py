"""The tables that `mrs compare` prints for multiple-choice runs."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mrs_metrics.accuracy import MacroAverage
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.report.tables import Grid, print_grid
from mrs_suggest.common.text.text import interval_text, percent
from mrs_suggest.evaluation.choice.analysis import (
    AVERAGES,
    Accuracy,
    Difference,
    accuracy,
    average,
    average_difference,
    by_changed,
    differences,
)
from mrs_suggest.evaluation.choice.answers import FULL, Answers, Views, read_run_answers

LEVEL = 0.05
INTERVALS = (
    "Brackets: 95 % intervals, of averages by a studentised bootstrap over questions. changed: all languages, where "
    "the translator chose the other answer (paper, note 5; Wilson's intervals)."
)
TITLES = {"all": "11 languages", "mbert": "9 (no ht, qu)", "use": "4 (it th tr zh)"}
Rows = dict[str, Mapping[str, Answers]]  # name of a run and view -> answers


def print_choice_comparison(records: Mapping[str, Mapping[str, Any]]) -> None:
    """Print the accuracies of multiple-choice runs, and their differences from the first one, view by view.

    Raises:
        InputError: answers are missing or damaged, or the runs were tested on different questions.
    """
    runs = {folder: read_run_answers(Path(folder), record) for folder, record in records.items()}
    names = {folder: Path(folder).name for folder in runs}
    if len(set(names.values())) < len(names):
        names = {folder: folder for folder in runs}
    rows = {_title(names[folder], view): answers for folder, views in runs.items() for view, answers in views.items()}
    note = "%, test split. ~: not distinguishable from chance (exact binomial test, p >= .05)."
    print_grid(_accuracies(rows), [note])
    print_grid(_averages(rows), [INTERVALS])
    compared = _differences(runs, names)
    if compared.rows:
        note = "Points. *: p < .05 in a paired permutation test over the same questions (by language: Holm's p)."
        print_grid(compared, [note])


def _title(name: str, view: str) -> str:
    return name if view == FULL else f"{name}, {view}"


def _accuracies(rows: Rows) -> Grid:
    codes = list(dict.fromkeys(code for answers in rows.values() for code in answers))
    cells = [
        [name, *(_percent(answers[code]) if code in answers else "" for code in codes)]
        for name, answers in rows.items()
    ]
    return Grid(["Accuracy", *codes], cells)


def _percent(answers: Answers) -> str:
    found = accuracy(answers)
    return f"{'~' if found.chance >= LEVEL else ''}{100 * found.value:.1f}"


def _averages(rows: Rows) -> Grid:
    """The averages of Table 5 that a run has the languages for, or the one over its own; and the split by `changed`."""
    lists = {TITLES[name]: codes for name, codes in AVERAGES.items() if any(average(a, codes) for a in rows.values())}
    lines = []
    for name, answers in rows.items():
        means = [average(answers, codes) for codes in lists.values()] or [average(answers, tuple(answers))]
        found = by_changed(answers)
        cells = [_with_interval(mean) for mean in means]
        for key in ("changed", "unchanged"):
            part = found.get(key) if "changed" in found else None
            cells.append(f"{_with_interval(part)} of {part.n:,}" if part else "")
        lines.append([name, *cells])
    return Grid(["Averages", *(lists or ["its languages"]), "changed", "unchanged"], lines)


def _with_interval(found: Accuracy | MacroAverage | None) -> str:
    return f"{percent(found.value)} {interval_text((found.low, found.high), percent)}" if found else ""


def _differences(runs: Mapping[str, Views], names: Mapping[str, str]) -> Grid:
    """Each other run over the first one, in the views that both have; and each run's other views over its `full`."""
    found = list(_compared(runs, names))
    codes = list(dict.fromkeys(code for _, own, _ in found for code in own))
    lines = []
    for name, own, mean in found:
        cells = [_points(own[code]) if code in own else "" for code in codes]
        ends = interval_text((mean.low, mean.high), lambda end: f"{100 * end:+.1f}") if mean else ""
        average = f"{_points(mean)} {ends}" if mean else ""
        lines.append([name, *cells, average])
    return Grid(["Difference", *codes, "mean over languages"], lines)


def _compared(
    runs: Mapping[str, Views], names: Mapping[str, str]
) -> Iterator[tuple[str, dict[str, Difference], Difference | None]]:
    first = next(iter(runs))
    for folder, views in runs.items():
        pairs = [] if folder == first else [(view, view, first) for view in views if view in runs[first]]
        if folder != first and not pairs:  # one trained and tested masked, for example
            pairs = [(next(iter(views)), next(iter(runs[first])), first)]
        pairs += [(view, FULL, folder) for view in views if FULL in views and view != FULL]
        for view, other_view, other in pairs:
            mine, theirs = views[view], runs[other][other_view]
            title = f"{_title(names[folder], view)} over {_title(names[other], other_view)}"
            try:
                yield title, differences(mine, theirs), average_difference(mine, theirs)
            except ValueError as error:
                raise InputError(f"{title}: {error}") from None


def _points(difference: Difference) -> str:
    return f"{100 * difference.value:+.1f}{'*' if difference.p < LEVEL else ''}"
