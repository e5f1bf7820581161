"""`mrs data build`: MRS from monthly dumps of Reddit comments."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.cli.data.passes import add_toxicity_options, add_translation_options, toxicity_pass, translation_pass
from mrs_suggest.cli.options import add_out_options, out_location, say
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError, require_least
from mrs_suggest.common.report.tables import make_console, make_table
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_datasets.builders.pipeline.spark import SparkEngine
    from mrs_datasets.builders.reddit.plan import Settings
    from mrs_suggest.common.text.language_id import LanguageIdentifier

MONTHS_ALONE = "months"


def add_build(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    parser = verbs.add_parser("build", help="build MRS from monthly dumps of Reddit comments (RC_*.zst)")
    parser.add_argument(
        "--dumps", required=True, nargs="+", metavar="GLOB", help="the monthly dumps, such as 'RC_*.zst'; or URLs"
    )
    add_out_options(parser)
    parser.add_argument(
        "--profile",
        default="paper",
        help="paper (default), or clean: no bots, no Markdown, no duplicates, split by thread",
    )
    parser.add_argument(
        "--language-model", metavar="FILE", help="fastText's lid.176.ftz or lid.176.bin (default: the installed one)"
    )
    parser.add_argument(
        "--engine", choices=("local", "spark"), default="local", help="processes of this machine (default), or Spark"
    )
    parser.add_argument("--master", metavar="URL", help="URL of Spark (default: as Spark is configured, or local[*,4])")
    parser.add_argument(
        "--spark-conf", nargs="+", default=[], metavar="KEY=VALUE", help="Spark's settings, if no session runs yet"
    )
    parser.add_argument("--workers", type=int, help="processes (default: as many as cores and --memory allow)")
    parser.add_argument("--memory", default="8GB", help="memory limit of all processes together (default 8GB)")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted build")
    parser.add_argument("--overwrite", action="store_true", help="replace --out, or an interrupted build")
    parser.add_argument(
        "--strict",
        action=argparse.BooleanOptionalAction,
        help="stop if a dump cannot be read completely (default with --profile paper), or build from what can be read",
    )
    parser.add_argument("--plan", action="store_true", help="print the plan and stop")
    parser.add_argument(
        "--only",
        choices=[MONTHS_ALONE],
        help="only read and partition these dumps, together with other such processes; then build from all dumps with "
        "--resume",
    )
    changes = parser.add_argument_group("changes to the profile")
    for flag, kind, text in (
        ("--min-score", int, "drop comments with a lower score (paper: 1)"),
        ("--min-language-score", float, "drop comments unless fastText's probability is above this (paper: .7)"),
        ("--min-examples", int, "leave out languages with fewer pairs (paper: 100,000)"),
        ("--min-reply-count", int, "leave rarer replies out of response sets (paper: 20)"),
        ("--max-responses", int, "largest response set (paper: 50,000)"),
        ("--min-characters", int, "shortest message and reply (paper: none)"),
        ("--max-characters", int, "longest message and reply (paper: none)"),
        ("--keep-rejects", int, "keep this many rejected texts per reason in report.json"),
        ("--context", int, "turns before each message to keep in the column `context` (paper: none)"),
        ("--buckets", int, "partitions of the join (default 64, more if memory is short)"),
    ):
        changes.add_argument(flag, type=kind, help=text)
    changes.add_argument(
        "--english-months", metavar="FIRST:LAST", help="months of English replies, or `all` (paper: 2018-01:2018-12)"
    )
    changes.add_argument("--split-by", help="example (paper) or thread")
    changes.add_argument("--responses-from", help="count replies in all splits (paper: all) or in training")
    for flag, text in (
        ("--drop-bots", "drop comments by bots"),
        ("--clean", "strip Markdown, drop quotes and duplicates"),
    ):
        changes.add_argument(flag, action=argparse.BooleanOptionalAction, help=text)
    add_toxicity_options(parser)
    add_translation_options(parser)
    parser.add_argument(
        "--cache", metavar="FILE", type=Path, help="keep scores and translations here for later builds (SQLite)"
    )
    parser.set_defaults(run=run_build)


def run_build(options: argparse.Namespace) -> None:
    from mrs_datasets.builders.reddit.build import build, build_months
    from mrs_datasets.builders.reddit.plan import PAGE, begun_buckets, find_dumps, make_build_plan, read_size

    settings = _settings(options)
    strict = settings.profile == "paper" if options.strict is None else options.strict
    require_least(options, 1, "workers")
    spark = _spark(options)
    out = out_location(options.out, options.scratch)
    identifier = _identifier(options.language_model)  # refused now, not after hours of reading
    if options.only and spark is not None:
        raise InputError(f"--only {options.only}: Spark already reads each month in a separate task; leave it out.")
    if options.only and (options.buckets is None or options.overwrite):
        problem = "do not pass --overwrite" if options.overwrite else "pass the same --buckets to all of them"
        raise InputError(f"--only {options.only}: several processes work in one folder; {problem}.")
    files = find_dumps(options.dumps)
    passes = [] if options.only else list(filter(None, (toxicity_pass(options), translation_pass(options))))
    buckets = settings.buckets if options.buckets is None else options.buckets
    if options.resume and options.buckets is None:
        buckets = begun_buckets(out) or buckets
    plan = make_build_plan(files, out, options.workers, read_size(options.memory), buckets, settings)
    for line in plan.lines():
        say(line)
    if options.plan:
        return
    if options.only:
        where = build_months(plan, out, settings, Path(identifier.path), strict=strict, say=say)
        print(f"wrote {len(files)} {'month' if len(files) == 1 else 'months'} to {visible(where)}")
        return
    with spark or nullcontext():
        kept = {"resume": options.resume, "overwrite": options.overwrite, "cache": options.cache}
        report = build(
            plan, out, settings, Path(identifier.path), strict=strict, say=say, engine=spark, passes=passes, **kept
        )
    _print_funnel(report)
    print(f"wrote {visible(out)}: data/, README.md, report.json, {PAGE}")


def _settings(options: argparse.Namespace) -> Settings:
    from mrs_datasets.builders.reddit.plan import ALL_MONTHS, Settings, make_settings, read_months

    changes = {field.name: getattr(options, field.name) for field in fields(Settings)}
    del changes["profile"], changes["english_months"]
    settings = make_settings(options.profile, **changes)
    if options.english_months is not None:
        months = () if options.english_months == ALL_MONTHS else read_months(options.english_months)
        return make_settings(options.profile, **changes, english_months=months)
    return settings


def _identifier(text: str | None) -> LanguageIdentifier:
    from mrs_suggest.common.io.remote_errors import masked
    from mrs_suggest.common.io.storage import is_url
    from mrs_suggest.common.text.language_id import LanguageIdentifier

    if text and is_url(text):
        raise InputError(
            f"--language-model {masked(text)}: fastText opens only local files; download it, and pass its path."
        )
    identifier = LanguageIdentifier.open(None if text is None else Path(text))
    if not identifier.languages & set(LANGUAGES):
        raise InputError(
            f"{identifier.path}: knows none of MRS's languages ({' '.join(LANGUAGES)}); expected lid.176, or a model "
            "with such labels."
        )
    return identifier


def _spark(options: argparse.Namespace) -> SparkEngine | None:
    """The requested engine; None for processes of this machine."""
    if options.engine != "spark":
        for flag, value in (("--master", options.master), ("--spark-conf", options.spark_conf)):
            if value:
                raise InputError(f"{flag}: applies only with --engine spark; add that, or leave it out.")
        return None
    if options.workers is not None:
        raise InputError("--workers: with --engine spark, Spark decides; pass --master 'local[N]' instead.")
    pairs = [entry.partition("=") for entry in options.spark_conf]
    for name, _, value in pairs:
        if not name.startswith("spark.") or not value:
            raise InputError(f"--spark-conf {name}: expected spark.NAME=VALUE, as spark-submit's --conf takes.")
    from mrs_datasets.builders.pipeline.spark import SparkEngine

    return SparkEngine(options.master, {name: value for name, _, value in pairs})


def _print_funnel(report: dict[str, dict[str, list[dict[str, object]]]]) -> None:
    table = make_table("stage", ">in", ">out", "dropped", title="Stages")
    for entry in report["pipeline"]["stages"]:
        dropped = entry["dropped"]
        assert isinstance(dropped, dict)
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in dropped.items())
        table.add_row(str(entry["stage"]), f"{entry['in']:,}", f"{entry['out']:,}", reasons)
    make_console(120).print(table)
