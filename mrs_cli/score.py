"""`mrs score`: figures of one or several systems, with interval and signature; `--compare` tests their difference."""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_cli.metric_errors import metric_errors
from mrs_cli.score_metrics import METRICS, read_values, save_values, score_rouge, score_system
from mrs_cli.score_tables import Column, ScoredSystem, as_latex, as_markdown, print_terminal
from mrs_core.errors import InputError
from mrs_core.languages import require_language
from mrs_core.predictions import SUGGESTIONS

ALPHA = 0.05  # as in Table 3 of STAPLE (Mayhew et al. 2020)
SAMPLES = 100_000  # of the permutation test, as there


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="mrs score", description=__doc__)
    parser.add_argument(
        "files", type=Path, nargs="*", metavar="FILE", help="one a system: message, reference, suggestions, by tabs"
    )
    parser.add_argument("--metric", choices=METRICS, default="mrs_rouge", help="default mrs_rouge, with Dist-1 and -2")
    parser.add_argument("--lang", help="the language; it picks the tokenizer")
    parser.add_argument(
        "--nbest",
        type=int,
        default=SUGGESTIONS,
        help=f"suggestions a line at most (default {SUGGESTIONS}, section 3.3)",
    )
    parser.add_argument("--rules", choices=("official", "paper"), help="mrs_rouge: official; weighted_f1: paper")
    parser.add_argument(
        "--gold", type=Path, help="weighted_f1: gold file of the task; xglue_score: folder of references"
    )
    parser.add_argument("--pred", type=Path, nargs="+", default=[], help="another way to name the files")
    parser.add_argument("--task", nargs="+", metavar="TASK", help="xglue_score: these tasks (default: what FILE has)")
    parser.add_argument("--split", choices=("dev", "test"), default="test", help="xglue_score: of the references")
    parser.add_argument("--chosen", default="best", help="reply_bleu: best (default), best_rouge or first suggestion")
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
    if options.nbest < 1:
        raise InputError(f"--nbest {options.nbest}: expected 1 or more.")
    if metric.gold and options.gold is None:
        raise InputError(f"--metric {options.metric}: needs --gold, what the predictions are compared with.")
    if options.compare:
        if options.files or options.pred:
            raise InputError("--compare: takes all the files itself; leave the others out.")
        return _compare(options)
    files = [*options.files, *options.pred]
    if not files:
        raise InputError("FILE: name the prediction file of a system, or of several.")
    if metric.language:
        require_language(options.lang or "", "--lang")
    systems = [score_system(options.metric, path, options) for path in files]
    for system, name in zip(systems, _names(files), strict=True):
        system.system = name
    if options.save_scores:
        if len(systems) != 1 or not len(systems[0].values):
            raise InputError("--save-scores: takes one system, and a metric that is a mean over examples.")
        save_values(options.save_scores, options.metric, systems[0])
    if len(systems) > 1:
        _rank(systems, options)
    _print(systems, options)
    return 0


def score_file(path: Path, language: str, nbest: int = SUGGESTIONS) -> dict[str, Any]:
    """The figures of one prediction file, flat, by the names that the official script's golden outputs use."""
    options = argparse.Namespace(lang=language, nbest=nbest, rules="official")
    with metric_errors(str(path)):
        return score_rouge(path, options)[0]


def _names(paths: Sequence[Path]) -> list[str]:
    """What systems are called: their files' names, or the paths where two names are alike."""
    names = [path.name for path in paths]
    return names if len(set(names)) == len(names) else [str(path) for path in paths]


def _rank(systems: list[ScoredSystem], options: argparse.Namespace) -> None:
    """Order the systems, best first, and give each the rank of its group where the metric has per-example scores."""
    metric = METRICS[options.metric]
    sign = -1 if metric.higher_is_better else 1
    systems.sort(key=lambda system: sign * system.record[metric.main])
    if not all(len(system.values) for system in systems):
        return
    for system, rank in zip(systems, _groups(systems, options), strict=True):
        system.rank = rank


def _groups(systems: list[ScoredSystem], options: argparse.Namespace) -> list[int]:
    from mrs_metrics.significance import rank_groups

    columns = _paired([system.values for system in systems], [system.system for system in systems])
    named = {str(index): column for index, column in enumerate(columns)}
    with metric_errors("the systems"):
        groups = rank_groups(
            named, alpha=ALPHA, samples=SAMPLES, higher_is_better=METRICS[options.metric].higher_is_better
        )
    return [groups[str(index)] for index in range(len(systems))]


def _paired(columns: Sequence[Sequence[float]], names: Sequence[str]) -> list[list[float]]:
    """The scores of the examples that every system has; an example is skipped for all systems or for none."""
    if len({len(column) for column in columns}) > 1:
        sizes = ", ".join(f"{name} {len(column):,}" for name, column in zip(names, columns, strict=True))
        raise InputError(
            f"The systems have scores of different examples ({sizes}); compare files of the same examples."
        )
    kept = [all(not math.isnan(value) for value in row) for row in zip(*columns, strict=True)]
    return [[value for value, keep in zip(column, kept, strict=True) if keep] for column in columns]


def _print(systems: list[ScoredSystem], options: argparse.Namespace) -> None:
    metric = METRICS[options.metric]
    notes = list(dict.fromkeys(_notes(systems)))
    if options.json:
        ranks = [{"rank": system.rank} if system.rank else {} for system in systems]
        records = [
            {"system": system.system, **system.record, **rank} for system, rank in zip(systems, ranks, strict=True)
        ]
        content = systems[0].record if len(systems) == 1 else records
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    columns = [column for column in metric.columns if any(column.key in system.record for system in systems)]
    if any(system.rank for system in systems):
        notes.append(
            f"* best group: adjacent systems share a group unless they differ (permutation test, p < {ALPHA:g})"
        )
    if options.markdown or options.latex:
        make = as_markdown if options.markdown else as_latex
        print(make(systems, columns, metric.main, notes))
    else:
        print_terminal(systems, columns, metric.main, notes)


def _notes(systems: list[ScoredSystem]) -> list[str]:
    """What was skipped, and how the figures were computed."""
    notes = []
    for system in systems:
        skipped = {reason: count for reason, count in system.record.get("skipped", {}).items() if count}
        if skipped:
            reasons = ", ".join(f"{count:,} {reason.replace('_', ' ')}" for reason, count in skipped.items())
            notes.append(f"{system.system}: skipped {reasons}")
    notes.append("in brackets: 95 % bootstrap interval")
    for system in systems:
        notes += [value for key, value in system.record.items() if key.endswith("signature")]
    return notes


def _compare(options: argparse.Namespace) -> int:
    """Test every two systems that stand next to each other when ordered by their mean."""
    from mrs_metrics.significance import bootstrap_interval, holm, paired_bootstrap_interval, permutation_test

    metric = METRICS[options.metric]
    if len(options.compare) < 2:
        raise InputError("--compare: expected two files or more.")
    loaded = [_values(path, options) for path in options.compare]
    if len({signature for signature, _ in loaded}) > 1:
        raise InputError(
            f"--compare: the scores were not computed alike: {' and '.join(sorted({s for s, _ in loaded}))}."
        )
    names = _names(options.compare)
    columns = _paired([values for _, values in loaded], names)
    means = [math.fsum(column) / len(column) if column else math.nan for column in columns]
    order = sorted(range(len(names)), key=lambda i: -means[i] if metric.higher_is_better else means[i])
    tests: list[dict[str, Any]] = []
    with metric_errors(" and ".join(names)):
        for first, second in itertools.pairwise(order):
            a, b = columns[first], columns[second]
            tests.append(
                {
                    "a": names[first],
                    "b": names[second],
                    "difference": means[first] - means[second],
                    "interval": list(paired_bootstrap_interval(a, b)),
                    "p": permutation_test(a, b, samples=SAMPLES),
                }
            )
        intervals = [list(bootstrap_interval(column)) for column in columns]
    if options.holm:
        for test, corrected in zip(tests, holm([test["p"] for test in tests]), strict=True):
            test["p_holm"] = corrected
    signature = loaded[0][0]
    how = (
        f"paired approximate permutation test, {SAMPLES:,} samples; interval of the difference: paired bootstrap, 95 %"
    )
    if options.json:
        systems = [
            {"system": names[i], metric.main: means[i], "n": len(columns[i]), "interval": intervals[i]} for i in order
        ]
        content = {"systems": systems, "tests": tests, "signature": signature, "test": how}
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return 0
    rows = [
        ScoredSystem(names[i], {metric.main: means[i], "n": len(columns[i]), "interval": intervals[i]}) for i in order
    ]
    shown = [column for column in metric.columns if column.key in ("n", metric.main)]
    print_terminal(rows, shown, metric.main, [])
    pairs = [ScoredSystem(f"{test['a']} - {test['b']}", test) for test in tests]
    columns_shown = [Column("difference", "difference"), Column("p", "p", 5)]
    columns_shown += [Column("p_holm", "p (Holm)", 5)] if options.holm else []
    print_terminal(pairs, columns_shown, "difference", [how, signature])
    return 0


def _values(path: Path, options: argparse.Namespace) -> tuple[str, Sequence[float]]:
    """Signature and per-example scores of a prediction file, or of a file of saved scores."""
    if path.suffix == ".json":
        return read_values(path, options.metric)
    if METRICS[options.metric].language:
        require_language(options.lang or "", "--lang")
    system = score_system(options.metric, path, options)
    if not len(system.values):
        raise InputError(f"--metric {options.metric}: is no mean over examples, so this test does not apply.")
    return str(system.record["signature"]), system.values
