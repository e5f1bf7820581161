"""`mrs score`: figures of one or several systems, with interval and signature; `--compare` tests their difference."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_cli.score_input import standard_input
from mrs_core.errors import InputError
from mrs_core.languages import KNOWN, LANGUAGES
from mrs_core.metric_errors import metric_errors
from mrs_core.predictions import SUGGESTIONS
from mrs_core.text import visible, visible_json
from mrs_evaluation.score_systems import (
    SAMPLES,
    compare_neighbours,
    name_systems,
    rank_systems,
    read_values,
    save_values,
)
from mrs_evaluation.score_tables import Column, ScoredSystem, as_latex, as_markdown, print_terminal
from mrs_evaluation.scoring import METRICS, Metric, score_rouge, score_system
from mrs_metrics.resampling import STUDENTISED

# Options of single metrics; those that a metric does not take are refused. --lang may always be said.
OWN = tuple(dict.fromkeys(name for metric in METRICS.values() for name in metric.takes))


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mrs score", description=__doc__)
    parser.add_argument(
        "files",
        type=Path,
        nargs="*",
        metavar="FILE",
        help="one a system: message, reference, suggestions, by tabs; - is standard input",
    )
    parser.add_argument("--metric", choices=METRICS, default="mrs_rouge", help="default mrs_rouge, with Dist-1 and -2")
    parser.add_argument("--lang", help="the language; it picks the tokenizer")
    parser.add_argument("--nbest", type=int, help=f"suggestions a line at most (default {SUGGESTIONS}, section 3.3)")
    parser.add_argument("--rules", choices=("official", "paper"), help="mrs_rouge: official; weighted_f1, xglue: paper")
    parser.add_argument(
        "--sentences",
        choices=("no", "punkt"),
        help="mrs_rouge, dist_n, self_rouge: split texts into sentences first, as the official script (default no)",
    )
    parser.add_argument(
        "--punkt",
        metavar="FOLDER",
        help="parameters of --sentences punkt, in the layout of NLTK's punkt_tab (default: NLTK's, where installed)",
    )
    parser.add_argument(
        "--gold", type=Path, help="weighted_f1: gold file of the task; xglue_score: folder of references"
    )
    parser.add_argument("--pred", type=Path, nargs="+", default=[], help="another way to name the files")
    parser.add_argument("--task", nargs="+", metavar="TASK", help="xglue_score: these tasks (default: what FILE has)")
    parser.add_argument("--split", choices=("dev", "test"), help="xglue_score: of the references (default test)")
    parser.add_argument("--chosen", help="reply_bleu: best (default), best_rouge or first suggestion")
    parser.add_argument("--level", choices=("corpus", "response"), help="dist_n: all together (default), or the mean")
    parser.add_argument("--vocabulary", type=int, metavar="N", help="dist_n: size of a vocabulary, asks for EAD")
    parser.add_argument("--sample-size", type=int, metavar="N", help="dist_n: also of 100 samples of N suggestions")
    parser.add_argument("--pool", type=int, metavar="N", help="response_ranking: among N candidates (default all)")
    parser.add_argument(
        "--absent", choices=("skip", "zero"), help="response_ranking: examples without their reply (default skip)"
    )
    parser.add_argument("--seed", type=int, help="response_ranking: of the pools; dist_n: of the samples")
    parser.add_argument("--language-model", metavar="FILE", help="wrong_language: lid.176.ftz or .bin of fastText")
    parser.add_argument(
        "--compare",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="test these systems against each other: prediction files, or what --save-scores wrote",
    )
    parser.add_argument("--holm", action="store_true", help="correct the p-values for several comparisons (Holm 1979)")
    parser.add_argument(
        "--save-scores", type=Path, metavar="OUT.json", help="write the per-example scores of the system"
    )
    form = parser.add_mutually_exclusive_group()
    for name, what in (("json", "JSON"), ("markdown", "a Markdown table"), ("latex", "a LaTeX table (booktabs)")):
        form.add_argument(f"--{name}", action="store_true", help=f"print {what}")
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    metric = METRICS[options.metric]
    _require_known_options(options, metric)
    files = options.compare or [*options.files, *options.pred]
    if options.compare and (options.files or options.pred or options.save_scores):
        raise InputError("--compare: takes all the files itself, and saves none; leave the others out.")
    if not files:
        raise InputError("FILE: name the prediction file of a system, or of several.")
    if len(options.compare) == 1:
        raise InputError("--compare: expected two files or more.")
    _require_sentences(options)
    with standard_input(files, folder=options.metric == "xglue_score") as paths:
        systems = [_system(path, options) for path in paths]
    name_systems(systems, files)
    if options.compare:
        return _compare(systems, options)
    if options.save_scores:
        if len(systems) != 1 or not len(systems[0].values):
            raise InputError("--save-scores: takes one system, and a metric that is a mean over examples.")
        save_values(options.save_scores, options.metric, systems[0])
    notes = rank_systems(systems, metric, options.holm) if len(systems) > 1 else []
    _print(systems, options, notes)
    return 0


def score_file(path: Path, language: str, nbest: int = SUGGESTIONS) -> dict[str, Any]:
    """The figures of one prediction file, flat, by the names that the official script's golden outputs use."""
    options = argparse.Namespace(lang=language, nbest=nbest, rules="official", sentences=None, punkt=None)
    with metric_errors(str(path)):
        return score_rouge(path, options)[0]


def _require_known_options(options: argparse.Namespace, metric: Metric) -> None:
    for name in OWN:
        if getattr(options, name) is not None and name not in metric.takes:
            users = ", ".join(known for known, other in METRICS.items() if name in other.takes)
            raise InputError(f"--{name.replace('_', '-')}: is no option of {options.metric}, but of {users}.")
    if "nbest" in metric.takes and options.nbest is None:
        options.nbest = SUGGESTIONS
    if "nbest" in metric.takes and options.nbest < 1:
        raise InputError(f"--nbest {options.nbest}: expected 1 or more.")


def _require_sentences(options: argparse.Namespace) -> None:
    """Refuse Punkt's parameters that cannot be used before a file is read."""
    from mrs_metrics.tokenize import get_tokenizer

    if options.punkt is not None and options.sentences != "punkt":
        raise InputError("--punkt: holds the parameters of --sentences punkt; say that, too.")
    if options.sentences == "punkt":
        with metric_errors("--sentences punkt"):
            get_tokenizer("en", "punkt", options.punkt)


def _system(path: Path, options: argparse.Namespace) -> ScoredSystem:
    """A system from its file, or in a comparison from its saved scores."""
    metric = METRICS[options.metric]
    if options.compare and path.suffix == ".json":
        return read_values(path, options.metric)
    if metric.gold and options.gold is None:
        raise InputError(f"--metric {options.metric}: needs --gold, what the predictions are compared with.")
    if metric.language:
        _require_language(options.lang)
    system = score_system(options.metric, path, options)
    if options.compare and not len(system.values):
        raise InputError(f"--metric {options.metric}: is no mean over examples, so this test does not apply.")
    return system


def _require_language(code: str | None) -> None:
    if code not in KNOWN:
        of = f"unknown language {code!r}" if code else "name the language of the texts"
        raise InputError(f"--lang: {of}; MRS has {' '.join(LANGUAGES)}, known are {' '.join(sorted(KNOWN))}.")


def _print(systems: list[ScoredSystem], options: argparse.Namespace, notes: Sequence[str]) -> None:
    metric = METRICS[options.metric]
    if options.json:
        ranks = [{"rank": system.rank} if system.rank else {} for system in systems]
        records = [
            {"system": system.system, **system.record, **rank} for system, rank in zip(systems, ranks, strict=True)
        ]
        _print_json(systems[0].record if len(systems) == 1 else records)
        return
    columns = [
        column for column in metric.columns if any(system.record.get(column.key) is not None for system in systems)
    ]
    _print_tables([(systems, columns, metric.main)], [*_notes(systems, metric), *notes], options)


def _print_tables(
    tables: Sequence[tuple[Sequence[ScoredSystem], Sequence[Column], str]],
    notes: Sequence[str],
    options: argparse.Namespace,
) -> None:
    """Tables one after the other, and all the notes below the last."""
    notes = list(dict.fromkeys(notes))
    for place, (systems, columns, main) in enumerate(tables, start=1):
        below = notes if place == len(tables) else []
        if options.markdown or options.latex:
            make = as_markdown if options.markdown else as_latex
            print(visible(make(systems, columns, main, below), "\n"))
        else:
            print_terminal(systems, columns, main, below)


def _print_json(content: Any) -> None:
    print(visible_json(_finite(content), indent=2, allow_nan=False))


def _finite(content: Any) -> Any:
    """The same with null for what JSON has no number for."""
    if isinstance(content, dict):
        return {key: _finite(value) for key, value in content.items()}
    if isinstance(content, list | tuple):
        return [_finite(value) for value in content]
    return None if isinstance(content, float) and not math.isfinite(content) else content


def _notes(systems: Sequence[ScoredSystem], metric: Metric) -> list[str]:
    """What was skipped, what was odd, and how the figures were computed."""
    notes = []
    for system in systems:
        record = system.record
        told = [f"skipped {n:,} {reason.replace('_', ' ')}" for reason, n in record.get("skipped", {}).items() if n]
        told += [what if n is True else f"{n:,} {what}" for key, what in metric.counts if (n := record.get(key))]
        for task, of in record.get("notes", {}).items():
            for code, counts in of.items():
                told += [f"{task} {code}: {n:,} {what.replace('_', ' ')}" for what, n in counts.items() if n]
        if record.get("missing"):
            missing = ", ".join(f"{task} ({' '.join(codes)})" for task, codes in record["missing"].items())
            told.append(f"averages lack {missing}, and do not compare with published ones")
        notes += [f"{system.system}: {text}" for text in told]
    methods = {system.record["interval_method"] for system in systems if system.record.get("interval")}
    notes += [f"in brackets: 95 % interval, {method}" for method in sorted(methods)]
    for system in systems:
        notes += [value for key, value in system.record.items() if key.endswith("signature")]
    return notes


def _compare(systems: list[ScoredSystem], options: argparse.Namespace) -> int:
    metric = METRICS[options.metric]
    tests = compare_neighbours(systems, metric, options.holm)
    how = (
        f"paired approximate permutation test, {SAMPLES:,} samples; interval of the difference: paired {STUDENTISED}, "
        "95 %"
    )
    signature = systems[0].record["signature"]
    shown = [column for column in metric.columns if column.key in ("n", metric.main)]
    if options.json:
        keys = (metric.main, "n", "interval")
        figures = [{"system": system.system, **{key: system.record[key] for key in keys}} for system in systems]
        _print_json({"systems": figures, "tests": tests, "signature": signature, "test": how})
        return 0
    pairs = [ScoredSystem(f"{test['a']} - {test['b']}", test) for test in tests]
    columns = [Column("difference", "difference"), Column("p", "p", 5)]
    columns += [Column("p_holm", "p (Holm)", 5)] if options.holm else []
    _print_tables([(systems, shown, metric.main), (pairs, columns, "difference")], [how, signature], options)
    return 0
