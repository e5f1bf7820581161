"""`mrs models compare`: runs of one task side by side."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.evaluation.runs.figures import Run

FORMATS = ("table", "markdown", "latex", "json")


def add_compare(verbs: Any) -> None:
    """Add the verb to those of `mrs models`."""
    parser = verbs.add_parser(
        "compare",
        help="print runs of one task side by side, by language: means over seeds, leads; reply models beside the "
        "baselines, multiple-choice runs with their averages and paired tests",
    )
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="folders that training runs wrote, baselines, or ORG/NAME[@REVISION]; of models on the hub the figures "
        "alone are compared",
    )
    parser.add_argument("--over", metavar="RUN", help="one of them: leads are taken over its row (default: the first)")
    parser.add_argument("--metrics", nargs="+", default=[], metavar="KEY", help="figures to show, such as weighted mrr")
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument(
        "--join-languages",
        action="store_true",
        help="one row for runs that differ in their languages and seeds alone, such as the monolingual ones of a table",
    )
    rows.add_argument("--by-run", action="store_true", help="leave runs that differ in their seed alone apart")
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="of what is printed (default table)")
    parser.add_argument(
        "--out",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="also write a file: .md, .tex, .json, or a picture (.png, .pdf, .svg); may be repeated",
    )
    parser.set_defaults(run=_compare)


def _compare(options: argparse.Namespace) -> None:
    from mrs_suggest.evaluation.runs.files import require_kind

    for path in options.out:
        require_kind(path)
    places = {Path(name).resolve() if Path(name).exists() else name: name for name in reversed(options.runs)}
    names = list(reversed(places.values()))  # a folder that is named in two ways is one run
    over = _same_folder(options.over, names)
    runs = _read(names)
    try:
        _show(options, dict(zip(names, runs, strict=True)), over)
    except KeyError as error:
        raise InputError(f"RUN: one run.json has no key {error}; train that model again.") from None


def _show(options: argparse.Namespace, runs: dict[str, Run], over: str | None) -> None:
    from mrs_suggest.evaluation.runs.comparing import compare_runs
    from mrs_suggest.evaluation.runs.figures import CHOICES, REPLY, require_one_task
    from mrs_suggest.evaluation.runs.files import as_json, write_runs
    from mrs_suggest.evaluation.runs.grouping import BY_LANGUAGES, BY_RUN, BY_SEED
    from mrs_suggest.evaluation.runs.shown import as_latex, as_markdown, print_runs

    plain = not (options.metrics or options.by_run or options.join_languages or over)
    task = require_one_task(list(runs.values()))
    if task.name == CHOICES and plain and options.format == FORMATS[0] and not options.out:
        _print_choices(runs)
        return
    grouping = BY_RUN if options.by_run else BY_LANGUAGES if options.join_languages else BY_SEED
    table = compare_runs(list(runs.values()), options.metrics, runs[over].name if over else None, grouping)
    if options.format == FORMATS[0]:
        if task.name == REPLY and plain:
            _print_with_baselines(runs)
        print_runs(table)
    else:
        make = {"markdown": as_markdown, "latex": as_latex, "json": as_json}[options.format]
        print(make(table), end="")
    for path in options.out:
        write_runs(table, path)
        if options.format == FORMATS[0]:
            print(f"wrote {visible(path)}")


def _same_folder(over: str | None, names: list[str]) -> str | None:
    """The run that `--over` names, which may be written in another way, such as with a slash at its end."""
    if over is None:
        return None
    found = [name for name in names if name == over or Path(name).resolve() == Path(over).resolve()]
    if not found:
        raise InputError(f"--over {over}: is none of the runs; pass one of {', '.join(names)}.")
    return found[0]


def _read(names: list[str]) -> list[Run]:
    from mrs_suggest.evaluation.runs.figures import Run
    from mrs_suggest.evaluation.runs.grouping import short_names

    short = short_names(names)
    return [Run(short[name], *_folder_and_record(name)) for name in names]


def _folder_and_record(name: str) -> tuple[Path | None, dict[str, Any]]:
    """The folder of a run's predictions, and its record; a model on the hub has the record alone."""
    from mrs_suggest.common.hub.baselines import read_baselines
    from mrs_suggest.common.hub.hub import download, is_repo_id, split_revision
    from mrs_suggest.training.record import read_record

    if Path(name).is_dir():
        return Path(name), read_record(Path(name))
    repo_id, revision = split_revision(name) if is_repo_id(name) else (name, None)
    baseline = read_baselines().get(name)
    if baseline is not None and baseline.embedded:
        return None, read_record(baseline.folder)
    if baseline is not None:
        repo_id, revision = baseline.repo_id, baseline.revision
    elif not is_repo_id(name):
        return Path(name), read_record(Path(name))  # the sentence for a folder that is none
    return None, read_record(download(repo_id, revision, ["run.json"]))


def _print_choices(runs: dict[str, Run]) -> None:
    from mrs_suggest.evaluation.choice.tables import print_choice_comparison

    print_choice_comparison({name: run.record for name, run in runs.items()})


def _print_with_baselines(runs: dict[str, Run]) -> None:
    """The pooled figures beside the baselines', where all runs were tested on the same examples."""
    from mrs_suggest.evaluation.tables import print_comparison, same_tests

    records = {run.name: dict(run.record) for run in runs.values()}
    if same_tests(records):
        print_comparison(records)
