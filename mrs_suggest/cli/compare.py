"""`mrs compare`: runs of one task next to each other, by language, with means over seeds and leads.

Reply models are shown next to the baselines, multiple-choice runs with their averages and paired tests.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from mrs_suggest.cli.options import add_fallback
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import ENDPOINT
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.evaluation.runs.figures import Run

FORMATS = ("table", "markdown", "latex", "json")


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs compare", description=__doc__)
    parser.add_argument(
        "runs",
        nargs="+",
        metavar="RUN",
        help="folders that training runs wrote, baselines, or ORG/NAME[@REVISION] (figures only); openai:URL#MODEL or "
        "openai:FILE.yaml answers the test messages of the first folder",
    )
    parser.add_argument("--over", metavar="RUN", help="the run that leads are measured against (default: the first)")
    parser.add_argument(
        "--unit", default="message", metavar="COLUMN", help="column of the data whose examples are resampled together"
    )
    parser.add_argument("--gaps", metavar="LANG", help="also test how far each language of a run is from this one")
    parser.add_argument("--metrics", nargs="+", default=[], metavar="KEY", help="figures to show, such as weighted mrr")
    rows = parser.add_mutually_exclusive_group()
    rows.add_argument(
        "--join-languages",
        action="store_true",
        help="one row for runs that differ only in languages and seeds, such as the monolingual ones of a table",
    )
    rows.add_argument("--by-run", action="store_true", help="one row per run, even if runs differ only in their seed")
    add_fallback(parser)
    parser.add_argument("--guard", choices=("off", "both"), default="off", help="both: also rows with the guard on")
    parser.add_argument(
        "--judge", metavar="MODEL", help="language model (openai:...) that compares the systems' suggestions"
    )
    parser.add_argument("--format", choices=FORMATS, default=FORMATS[0], help="output format (default table)")
    parser.add_argument(
        "--out",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="also write a file: .md, .tex, .json, or a picture (.png, .pdf, .svg); may be repeated",
    )
    parser.set_defaults(run=_run)
    return parser


def _run(options: argparse.Namespace) -> None:
    from mrs_suggest.evaluation.runs.shown import require_kind

    for path in options.out:
        require_kind(path)
    places = {Path(name).resolve() if Path(name).exists() else name: name for name in reversed(options.runs)}
    names = list(reversed(places.values()))  # a folder that is named in two ways is one run
    over = _same_folder(options.over, names)
    with TemporaryDirectory() as scratch:
        runs = _read(options, names, Path(scratch))
        try:
            _show(options, runs, over)
        except KeyError as error:
            raise InputError(f"RUN: one run.json has no key {error}; train that model again.") from None


def _show(options: argparse.Namespace, runs: dict[str, Run], over: str | None) -> None:
    from mrs_suggest.evaluation.choice.tables import print_choice_comparison
    from mrs_suggest.evaluation.runs.comparing import compare_runs, with_gaps
    from mrs_suggest.evaluation.runs.figures import CHOICES, REPLY, shared_task
    from mrs_suggest.evaluation.runs.grouping import BY_LANGUAGES, BY_RUN, BY_SEED
    from mrs_suggest.evaluation.runs.shown import as_json, as_latex, as_markdown, print_runs, write_runs
    from mrs_suggest.evaluation.tables import print_comparison, same_tests

    plain = not (
        options.metrics or options.by_run or options.join_languages or over or options.unit != "message" or options.gaps
    )
    task = shared_task(list(runs.values()))
    if task.name == CHOICES and plain and options.format == FORMATS[0] and not options.out:
        print_choice_comparison({name: run.record for name, run in runs.items()})
        return
    grouping = BY_RUN if options.by_run else BY_LANGUAGES if options.join_languages else BY_SEED
    first = runs[over].name if over else None
    table = compare_runs(list(runs.values()), options.metrics, first, grouping, options.unit)
    table = with_gaps(table, options.gaps) if options.gaps else table
    if options.judge is not None:
        from mrs_suggest.evaluation.scores.judge import judged

        table = judged(table, options.judge)
    if options.format == FORMATS[0]:
        records = {run.name: dict(run.record) for run in runs.values()}
        if task.name == REPLY and plain and same_tests(records):
            print_comparison(records)  # next to the baselines' figures
        print_runs(table)
    else:
        make = {"markdown": as_markdown, "latex": as_latex, "json": as_json}[options.format]
        print(make(table), end="")
    for path in options.out:
        write_runs(table, path)
        if options.format == FORMATS[0]:
            print(f"wrote {visible(path)}")


def _same_folder(over: str | None, names: list[str]) -> str | None:
    """The run that `--over` names, even if it is spelled differently, such as with a trailing slash."""
    if over is None:
        return None
    found = [name for name in names if name == over or Path(name).resolve() == Path(over).resolve()]
    if not found:
        raise InputError(f"--over {over}: not one of the runs; pass one of {', '.join(names)}.")
    return found[0]


def _read(options: argparse.Namespace, names: list[str], scratch: Path) -> dict[str, Run]:
    """The runs by name: those of folders, and those of models that answer the first one's messages now."""
    from mrs_suggest.evaluation.runs.figures import Run
    from mrs_suggest.evaluation.runs.grouping import short_names

    trained = [name for name in names if not name.startswith(ENDPOINT)]
    short = short_names(trained) if trained else {}
    runs = {name: Run(short[name], *_folder_and_record(name)) for name in trained}
    answering: dict[str, tuple[str, dict[str, Any]]] = {name: (name, {}) for name in names if name not in runs}
    if options.fallback is not None:
        second = {"fallback": options.fallback, "fallback_share": options.fallback_share}
        answering[f"{short.get(names[0], names[0])}, fallback {options.fallback}"] = names[0], second
    if options.guard == "both":
        guarded = [(name, (name, dict[str, Any]())) for name in trained]
        for name, (model, more) in [*guarded, *answering.items()]:
            answering[f"{short.get(name, name)}, guard on"] = model, {**more, "guard": True}
    for number, (label, (name, more)) in enumerate(answering.items()):
        from mrs_suggest.evaluation.model_answers import answering_run

        runs[label] = answering_run(name, list(runs.values()), scratch / str(number), label, **more)
    return {name: runs[name] for name in (*names, *(label for label in answering if label not in names))}


def _folder_and_record(name: str) -> tuple[Path | None, dict[str, Any]]:
    """The folder of a run's predictions (None for a model from the hub), and its record."""
    from mrs_suggest.common.hub.baselines import read_baselines
    from mrs_suggest.common.hub.hub import download, is_repo_id, split_revision
    from mrs_suggest.models.saved.record import read_record

    if Path(name).is_dir():
        return Path(name), read_record(Path(name))
    repo_id, revision = split_revision(name) if is_repo_id(name) else (name, None)
    baseline = read_baselines().get(name)
    if baseline is not None and baseline.embedded:
        return None, read_record(baseline.folder)
    if baseline is not None:
        repo_id, revision = baseline.repo_id, baseline.revision
    elif not is_repo_id(name):
        return Path(name), read_record(Path(name))  # raises: the folder does not exist
    return None, read_record(download(repo_id, revision, ["run.json"]))
