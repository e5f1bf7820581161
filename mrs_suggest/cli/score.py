"""`mrs score`: figures of one or several systems, with interval and signature; `--compare` tests their difference."""

import argparse
import inspect
import math
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mrs_metrics.power import METHOD, units_needed
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.report.tables import (
    Entry,
    Grid,
    grid_latex,
    grid_markdown,
    latex_comment,
    print_grid,
    transposed,
)
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.common.text.text import finite_json, interval_text, visible, visible_json
from mrs_suggest.evaluation.scores.input import KNOWN_LANGUAGES, PREDICTION_FILE
from mrs_suggest.evaluation.scores.metrics import DIGITS, METRICS, Figure, Metric, Scored, score_system
from mrs_suggest.suggest.answering import USAGE

DEFAULT = "mrs_rouge"
ANSWERED = {"milliseconds": "ms", **{key: key.replace("_", " ") for key in USAGE}}  # of a model that answers here
STANDARD_INPUT = Path("-")
# name, figures, their intervals, whether in the best group
Row = tuple[str, Mapping[str, Figure], Mapping[str, Sequence[float]], bool]
Table = tuple[Sequence[Row], Mapping[str, str], str]  # rows, headings by figure, the main figure


@dataclass(frozen=True)
class Option:
    """An option of metrics.

    Attributes:
        choices: its values; empty: any of its type.
        unset: how the help describes a default of None.
        several: whether it takes one value or more.
    """

    help: str
    type: Callable[[str], Any] = str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    unset: str = ""
    several: bool = False


OPTIONS: Mapping[str, Option] = {
    "language": Option("language of the texts", metavar="CODE"),
    "nbest": Option("maximum suggestions per line (section 3.3 of MRS)", int, metavar="N"),
    "sentences": Option("split texts into sentences; auto: if Punkt is found", choices=("auto", "no", "punkt")),
    "punkt": Option(
        "parameters of --sentences punkt, in the layout of NLTK's punkt_tab", metavar="FOLDER", unset="NLTK's own"
    ),
    "rules": Option(
        "count by the rules of the official script, or by those of the paper", choices=("official", "paper")
    ),
    "level": Option("count all suggestions together, or average over them", choices=("corpus", "response")),
    "vocabulary": Option(
        "also print expectation-adjusted distinct, for a vocabulary of N tokens", int, metavar="N", unset="do not"
    ),
    "sample_size": Option(
        "also print the mean over 100 samples of N suggestions", int, metavar="N", unset="no samples"
    ),
    "seed": Option("seed of the samples or pools", int, metavar="N"),
    "chosen": Option(
        "score the best suggestion by sentence BLEU, the best by ROUGE, or the first",
        choices=("best", "best_rouge", "first"),
    ),
    "judge": Option("language model that judges, openai:URL#MODEL or openai:FILE.yaml", metavar="MODEL"),
    "encoder": Option("multilingual sentence encoder, a folder or hub id", metavar="MODEL"),
    "responses": Option("response set to cover, a reply per line", Path, metavar="FILE", unset="none"),
    "near": Option("least cosine of a near reply", float, metavar="COSINE"),
    "edits": Option("share of a reply's characters that a person is ready to edit", float, metavar="SHARE"),
    "pool": Option("rank in random pools of N candidates", int, metavar="N", unset="all candidates"),
    "missing_reference": Option(
        "skip examples whose reply is not a candidate, or score them 0", choices=("skip", "zero")
    ),
    "gold": Option("file of the accepted translations, or folder of the references", Path, metavar="PATH"),
    "language_model": Option(
        "fastText model, lid.176.ftz or lid.176.bin", metavar="FILE", unset="the one in the cache"
    ),
    "task": Option("tasks to score", metavar="TASK", unset="those in the folder", several=True),
    "split": Option("split of the references", choices=("dev", "test")),
    "unit": Option("what intervals resample and tests swap; a column that the header line names", metavar="COLUMN"),
}


def flag_of(option: str) -> str:
    """The name of an option on the command line."""
    return f"--{option.replace('_', '-')}"


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs score", description=__doc__)
    parser.add_argument(
        "files",
        type=Path,
        nargs="*",
        metavar="FILE",
        help=f"file of a system, - for standard input; for {DEFAULT}: {PREDICTION_FILE}",
    )
    parser.add_argument(
        "--pred", type=Path, nargs="+", default=[], metavar="FILE", help="another way to name the files"
    )
    parser.add_argument("--model", action="append", default=[], help="also score a model that answers the first file")
    parser.add_argument(
        "--metric", choices=METRICS, default=DEFAULT, help=f"default {DEFAULT}, which also prints Dist-1 and -2"
    )
    group = parser.add_argument_group("options of metrics")
    for name, option in OPTIONS.items():
        group.add_argument(
            *(flag_of(name), *(["--lang"] if name == "language" else [])),
            dest=name,
            type=option.type,
            nargs="+" if option.several else None,
            choices=option.choices or None,
            metavar=option.metavar,
            help=f"{option.help} ({_defaults(name)})",
        )
    parser.add_argument(
        "--compare",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="test these systems against each other: prediction files, or what --save-scores wrote",
    )
    parser.add_argument("--holm", action="store_true", help="correct the p-values for several comparisons (Holm 1979)")
    parser.add_argument("--power", type=float, metavar="D", help="print how many messages detect a difference of D")
    parser.add_argument(
        "--power-sd", type=float, metavar="SD", help="standard deviation of a paper's scores; leave FILE out"
    )
    parser.add_argument(
        "--save-scores", type=Path, metavar="OUT.json", help="write the per-example scores of the system"
    )
    form = parser.add_mutually_exclusive_group()
    for name, what in (("json", "JSON"), ("markdown", "a Markdown table"), ("latex", "a LaTeX table (booktabs)")):
        form.add_argument(f"--{name}", dest="form", action="store_const", const=name, help=f"print {what}")
    parser.set_defaults(run=_run)
    return parser


def _defaults(name: str) -> str:
    """The default of an option in each metric that takes it; metrics with the same one are grouped."""
    found: dict[str, list[str]] = {}
    for metric, about in METRICS.items():
        if name in about.options:
            default = about.options[name]
            unset = f"default: {OPTIONS[name].unset}" if OPTIONS[name].unset else ""
            text = "required" if default is inspect.Parameter.empty else f"default {default}" if default else unset
            found.setdefault(text, []).append(metric)
    return "; ".join(f"{', '.join(metrics)}{text and f': {text}'}" for text, metrics in found.items())


def _run(options: argparse.Namespace) -> None:
    metric = METRICS[options.metric]
    files = options.compare or [*options.files, *options.pred]
    if options.power_sd is not None:
        _power_of_paper(options, files)
        return
    _refuse_contradictions(options, metric, files)
    given = {name: value for name in OPTIONS if (value := getattr(options, name)) is not None}
    if not all(options.compare and path.suffix == ".json" for path in files):  # saved scores need no options
        given = checked_options(options.metric, given)
    names = [path.name for path in files]
    systems = []
    for path, name in zip(files, names, strict=True):
        system = _scored(options, path, given)
        system.system = name if len(set(names)) == len(names) else str(path)
        systems.append(system)
    systems += [_answered(options, name, files[0], given) for name in dict.fromkeys(options.model)]
    if options.compare:
        _compare(options, metric, systems)
        return
    notes: list[str] = []
    if len(systems) > 1:
        from mrs_suggest.evaluation.scores.systems import rank_systems

        notes = rank_systems(systems, options.metric, options.holm)
    if options.save_scores:
        from mrs_suggest.evaluation.scores.systems import save_scores

        save_scores(options.save_scores, options.metric, systems[0])
    rows: list[Row] = [(one.system, one.numbers(), one.all_intervals(metric.main), one.rank == 1) for one in systems]
    content = systems[0].as_json() if len(systems) == 1 else [system.among_others() for system in systems]
    if options.power:
        from mrs_suggest.evaluation.scores.systems import ALONE, messages_needed

        needed = messages_needed(systems[0], options.power)
        content = {**systems[0].as_json(), "units_needed": needed, "power_method": ALONE}
        notes.append(f"n = {needed:,} detects a difference of {options.power:g} ({ALONE})")
    _print(
        options.form, content, [(rows, {**metric.columns, **ANSWERED}, metric.main)], [*_notes(systems, metric), *notes]
    )


def _power_of_paper(options: argparse.Namespace, files: Sequence[Path]) -> None:
    """Print how many messages detect a difference between two systems with scores of that deviation."""
    if files or options.model or not all(1e-9 < (number or 0) < 1e9 for number in (options.power_sd, options.power)):
        raise InputError("--power-sd: expected a deviation above 0 with --power D, and no file.")
    needed, method = units_needed(math.sqrt(2) * options.power_sd, options.power), f"{METHOD}, independent systems"
    told = f"n = {needed:,} detects a difference of {options.power:g} ({method})"
    print(visible_json({"units_needed": needed, "power_method": method}, indent=2) if options.form == "json" else told)


def _refuse_contradictions(options: argparse.Namespace, metric: Metric, files: Sequence[Path]) -> None:
    if options.compare and (options.files or options.pred or options.save_scores):
        raise InputError("--compare takes all files itself and cannot save scores; leave the other arguments out.")
    if not files:
        raise InputError("FILE: pass the prediction file of one system or more.")
    if len(options.compare) == 1 and not options.model:
        raise InputError("--compare needs two files or more.")
    if options.model and (STANDARD_INPUT in files or "nbest" not in metric.options or files[0].suffix == ".json"):
        raise InputError("--model answers the messages of a prediction file; name one, and a metric that reads it.")
    if options.compare and not (metric.mean_over_examples or metric.main in ("bleu", "dist1")):
        raise InputError(f"--compare does not apply to {options.metric}.")
    if options.save_scores and (len(files) > 1 or options.model or not metric.mean_over_examples):
        raise InputError("--save-scores takes one system, and a metric that is a mean over examples.")
    if options.power is not None and not 1e-9 < options.power < 1e9:
        raise InputError(f"--power {options.power:g}: expected a difference above 0, in the unit of the scores.")
    if options.power and not (metric.mean_over_examples and (options.compare or len(files) == 1)):
        raise InputError("--power takes one system or --compare, and a metric that is a mean over examples.")
    if STANDARD_INPUT in files and metric.reads_folder:
        raise InputError("-: this metric reads a folder of predictions, which cannot come from standard input.")
    if list(files).count(STANDARD_INPUT) > 1:
        raise InputError("-: standard input can be read only once; name it for one system.")


def checked_options(name: str, given: Mapping[str, object]) -> dict[str, object]:
    """The options that a metric takes; a language has no effect if it is not one of them.

    Raises:
        InputError: one belongs to other metrics, or one that the metric needs is missing.
    """
    options = METRICS[name].options
    for option in given:
        if option not in options and option != "language":
            owners = ", ".join(other for other, one in METRICS.items() if option in one.options)
            raise InputError(f"{flag_of(option)} does not apply to {name}; it belongs to {owners}.")
    for option, default in options.items():
        if default is inspect.Parameter.empty and option not in given:
            known = f"; {KNOWN_LANGUAGES}" if option == "language" else ""
            raise InputError(f"{flag_of(option)}: {name} needs the {OPTIONS[option].help}{known}.")
    return {option: value for option, value in given.items() if option in options}


def _scored(options: argparse.Namespace, path: Path, given: Mapping[str, object]) -> Scored:
    if options.compare and path.suffix == ".json":
        from mrs_suggest.evaluation.scores.systems import read_scores

        return read_scores(path, options.metric)
    if path != STANDARD_INPUT:
        return score_system(options.metric, path, **given)
    with tempfile.TemporaryDirectory() as scratch:
        copy = Path(scratch, "standard input")
        copy.write_bytes(sys.stdin.buffer.read())
        try:
            return score_system(options.metric, copy, **given)
        except InputError as error:
            raise InputError(str(error).replace(str(copy), copy.name)) from error


def _answered(options: argparse.Namespace, name: str, source: Path, given: Mapping[str, object]) -> Scored:
    from mrs_suggest.evaluation.model_answers import answer_predictions
    from mrs_suggest.suggest.suggester import Suggester

    suggester = Suggester.from_pretrained(name, guard=False)
    with tempfile.TemporaryDirectory() as scratch:
        out, nbest = Path(scratch, "predictions.tsv"), options.nbest or SUGGESTIONS
        _, facts = answer_predictions(suggester, {options.language: source}, {options.language: out}, nbest)
        found = score_system(options.metric, out, **given)
    return replace(found, system=name, others={**found.others, **facts})


def _compare(options: argparse.Namespace, metric: Metric, systems: list[Scored]) -> None:
    from mrs_suggest.evaluation.scores.systems import METHOD, compare_neighbours

    compared, tests = compare_neighbours(systems, options.metric, options.holm, options.power)
    signature, main = compared[0].signatures["signature"], metric.main
    content = {
        "systems": [
            {"system": one.system, main: one.figures[main], "n": one.n, "interval": one.interval and one.interval.ends}
            for one in compared
        ],
        "tests": [test.as_json() for test in tests],
        "signature": signature,
        "test": METHOD,
    }
    shown = {main: metric.columns[main], **ANSWERED}
    figures: list[Row] = [(one.system, one.numbers(), one.all_intervals(main), False) for one in compared]
    columns = {name: name.replace("_", " ") for name in ("difference", "p", "effect_size")}
    columns |= {"p_holm": "p (Holm)", "cohens_h": "Cohen's h", "detectable_difference": "detectable"}
    columns["units_needed"] = f"n for {options.power}"
    pairs: list[Row] = [
        (
            f"{one.a} - {one.b}" + f", {metric.columns[one.figure]}" * (one.figure != main),
            {key: getattr(one, key) for key in columns}, {"difference": one.interval}, False,
        )
        for one in tests
    ]  # fmt: skip
    tables: list[Table] = [(figures, shown, main), (pairs, columns, "difference")]
    _print(options.form, content, tables, [METHOD, signature])


# --- Output ---------------------------------------------------------------------------------------------------------


def _notes(systems: Sequence[Scored], metric: Metric) -> list[str]:
    """Skipped and unusual examples, the methods of the intervals, and the signatures."""
    notes = [f"{system.system}: {text}" for system in systems for text in _counted(system, metric)]
    methods: dict[str, dict[str, None]] = {}
    for one in systems:
        for name, interval in one.all_intervals(metric.main).items():
            if interval.ends:
                methods.setdefault(one.method_of(interval), {})[metric.columns.get(name, name)] = None
    notes += [f"in brackets: 95 % interval of {', '.join(names)}: {method}" for method, names in methods.items()]
    notes += [f"warning: {system.warning}" for system in systems if system.warning]
    notes += [signature for system in systems for signature in system.signatures.values()]
    return notes + [str(system.others["service"]) for system in systems if "service" in system.others]


def _counted(system: Scored, metric: Metric) -> Iterator[str]:
    for reason, n in (system.skipped or {}).items():
        if n:
            yield f"skipped {n:,} {reason.replace('_', ' ')}"
    for key, what in metric.counts.items():
        if count := system.figures.get(key):
            yield what if count is True else f"{count:,} {what}"
    for task, by_language in system.tasks.get("notes", {}).items():
        for code, counts in by_language.items():
            yield from (f"{task} {code}: {n:,} {what.replace('_', ' ')}" for what, n in counts.items() if n)
    if missing := system.tasks.get("missing"):
        lacking = ", ".join(f"{task} ({' '.join(codes)})" for task, codes in missing.items())
        yield f"averages lack {lacking}, and cannot be compared with published ones"


def _print(form: str | None, content: object, tables: Sequence[Table], notes: Sequence[str]) -> None:
    if form == "json":
        print(visible_json(finite_json(content), indent=2, allow_nan=False))
        for warning in dict.fromkeys(note for note in notes if note.startswith("warning: ")):
            print(warning, file=sys.stderr)
        return
    for place, (rows, columns, main) in enumerate(tables, start=1):
        below = list(dict.fromkeys(notes)) if place == len(tables) else []
        grid = _grid(rows, columns, main)
        if form == "latex":
            print("\n".join([*map(latex_comment, below), grid_latex(grid)]))
        elif form == "markdown":
            bullets = [f"- `{note}`" if "|" in note else f"- {note}" for note in below]
            print("\n".join([grid_markdown(grid), "", *map(visible, bullets)]))
        else:
            print_grid(transposed(grid) if len(rows) == 1 else grid, below)


def _grid(rows: Sequence[Row], columns: Mapping[str, str], main: str) -> Grid:
    """A row for each system; only figures that one of them has."""
    shown = [key for key in ("n", *columns) if any(row[1].get(key) is not None for row in rows)]
    return Grid(
        ["system", *(columns.get(key, key) for key in shown)],
        [[row[0], *(_cell(row, key, main) for key in shown)] for row in rows],
    )


def _cell(row: Row, key: str, main: str) -> Entry:
    _, figures, intervals, best = row
    value, digits = figures.get(key), DIGITS.get(key, 4)
    text = "" if value is None else f"{value:,}" if isinstance(value, int) else f"{value:.{digits}f}"
    if value is not None and (interval := intervals.get(key)) is not None:
        text += f" {interval_text(interval, f'{{:.{digits}f}}'.format)}"
    return Entry(text, marks="*" * (best and key == main))
