"""`mrs staple`: systems that write all translations of a prompt (STAPLE, Mayhew et al. 2020)."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError, require_least
from mrs_suggest.common.io.files import require_new_file, require_replaceable
from mrs_suggest.common.report.tables import Grid, print_grid
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from mrs_suggest.staple.decode import Prompts
    from mrs_suggest.staple.members import Run
    from mrs_suggest.staple.rules.base import Rule

RULE_NAMES = ("top", "threshold", "votes", "classifier", "soft-f1", "expected-f1")  # the keys of staple.rules.RULES
SEARCH: tuple[tuple[str, type, str], ...] = (
    ("nbest", int, "maximum number of translations per prompt (default 50); with dropout, per pass"),
    ("beams", int, "number of beams (default: --nbest)"),
    ("groups", int, "groups of a diverse beam search (default 1: plain; Vijayakumar et al. 2018)"),
    ("diversity_penalty", float, "penalty between groups (default 0)"),
    ("samples", int, "samples per prompt, with --search sample (default: --nbest)"),
    ("temperature", float, "sampling temperature (default 1: the model's own distribution)"),
    ("top_p", float, "sample from the most probable tokens that together reach this probability (default 1: all)"),
    ("dropout_passes", int, "pooled beam searches with Monte Carlo dropout (default 0: none; Li et al. 2020)"),
    ("dropout_rate", float, "dropout rate of these passes (default: the rate used in training)"),
    ("length_penalty", float, "exponent of the length in the ranking score (default: the run's own)"),
    ("max_tokens", int, "maximum tokens per translation (default: the run's own)"),
    ("seed", int, "seed of samples and dropout (default 42)"),
    ("batch_size", int, "prompts decoded together (default: as many as fit into memory, at most 32)"),
)


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs staple", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    _add_decode(verbs)
    combine = _verb(
        verbs, "combine", _combine, "pool the hypotheses of several members and add features",
        "Pool files about the same prompts. Each translation is kept once per prompt, as the metric compares it, with "
        "votes, ranks and scores of the members.",
    )  # fmt: skip
    combine.add_argument("hypotheses", type=Path, nargs="+", metavar="HYPOTHESES", help="hypothesis files")
    combine.add_argument(
        "--encoder",
        metavar="MODEL",
        help="add the cosine of prompt and translation by this sentence encoder: a folder or ORG/NAME[@REVISION]",
    )
    _add_out(combine, "hypothesis file to write")
    _add_tune(verbs)
    _add_filter(verbs)
    export = _verb(verbs, "export", _export, "write hypotheses as a prediction file of the task")
    export.add_argument("hypotheses", type=Path, metavar="HYPOTHESES", help="hypothesis file")
    _add_out(export, "prediction file to write")
    _add_effects(verbs)
    _add_report(verbs)
    rescore = _verb(verbs, "rescore", _rescore, "add the log-probability of each hypothesis under another run")
    rescore.add_argument("hypotheses", type=Path, metavar="HYPOTHESES", help="hypothesis file")
    rescore.add_argument(
        "--with", required=True, dest="by", metavar="RUN",
        help="generator folder or ORG/NAME@REVISION; NAME=RUN names the feature log_prob_NAME",
    )  # fmt: skip
    rescore.add_argument(
        "--reverse",
        action="store_true",
        help="score the prompt given the translation, by a run that translates back (default: as the run says)",
    )
    rescore.add_argument("--batch_size", type=int, metavar="N", help="texts scored together (default: as many as fit)")
    _add_out(rescore, "hypothesis file to write")
    pairs = _verb(verbs, "pairs", _pairs, "write prompts with their translations as training pairs")
    pairs.add_argument("hypotheses", type=Path, metavar="HYPOTHESES", help="hypothesis file")
    pairs.add_argument("--top", type=int, default=1, metavar="N", help="translations per prompt (default 1)")
    pairs.add_argument("--swap", action="store_true", help="write the translation first, for back-translation")
    _add_out(pairs, "text file to write: prompt, tab, translation")
    return parser


def _verb(
    verbs: Any, name: str, run: Callable[[argparse.Namespace], None], about: str, description: str | None = None
) -> argparse.ArgumentParser:
    verb: argparse.ArgumentParser = verbs.add_parser(name, help=about, description=description)
    verb.set_defaults(run=run)
    return verb


def _add_out(verb: argparse.ArgumentParser, what: str, metavar: str = "FILE") -> None:
    verb.add_argument("--out", required=True, type=Path, metavar=metavar, help=what)
    verb.add_argument("--overwrite", action="store_true", help="replace --out if it exists")


def _add_decode(verbs: Any) -> None:
    decode = _verb(verbs, "decode", _decode, "write many translations of each prompt, by one or several runs")
    decode.add_argument(
        "runs", nargs="+", metavar="RUN",
        help="generator folder or ORG/NAME@REVISION; NAME=RUN names its member (default: the folder's name)",
    )  # fmt: skip
    source = decode.add_mutually_exclusive_group(required=True)
    source.add_argument("--data", metavar="DIR", help="prepared STAPLE data: a folder or a hub id")
    source.add_argument("--text", type=Path, metavar="FILE", help="translate the lines of a text file instead")
    decode.add_argument("--split", help="split of --data (default validation)")
    decode.add_argument("--language", metavar="CODE", help="target language (default: the only possible one)")
    _add_out(decode, "hypothesis file to write")
    search = decode.add_argument_group("search")
    search.add_argument("--search", choices=("beam", "sample"), help="beam search (default) or sampling")
    for name, kind, about in SEARCH:
        search.add_argument(f"--{name}", type=kind, metavar="N" if kind is int else "X", help=about)
    search.add_argument(
        "--ctranslate2", action="store_true", default=None,
        help="search faster with CTranslate2, using the export in the run's folder or a temporary one "
        "(extra ctranslate2)",
    )  # fmt: skip


def _add_tune(verbs: Any) -> None:
    tune = _verb(
        verbs, "tune", _tune, "fit a filter for weighted F1 on a split with accepted translations",
        "Fit a rule for macro weighted F1 and print its out-of-fold score: each prompt is scored by a rule fitted on "
        "other prompts.",
    )  # fmt: skip
    tune.add_argument("hypotheses", type=Path, metavar="POOLED", help="hypotheses written by `mrs staple combine`")
    tune.add_argument("--data", required=True, help="prepared folder or hub id that the hypotheses were decoded from")
    tune.add_argument("--rule", required=True, choices=RULE_NAMES, help="how to choose")
    _add_out(tune, "folder to write", "FILTER")
    tune.add_argument(
        "--by", metavar="FEATURE", help="feature that top and threshold order by (default: rank; log_prob_per_token)"
    )
    tune.add_argument(
        "--features", nargs="+", metavar="FEATURE", help="features of learned rules (default: all but filter scores)"
    )
    tune.add_argument("--folds", type=int, default=5, help="folds of prompts for the out-of-fold score (default 5)")
    tune.add_argument("--seed", type=int, default=0, help="seed of folds, initial weights and draws (default 0)")


def _add_filter(verbs: Any) -> None:
    verb = _verb(
        verbs, "filter", _filter, "keep the hypotheses that a filter chooses",
        "Keep what a tuned filter, or a rule given as an option, chooses. The output is a hypothesis file again, so "
        "steps can be chained.",
    )  # fmt: skip
    verb.add_argument("hypotheses", type=Path, metavar="POOLED", help="hypotheses written by `mrs staple combine`")
    rules = verb.add_mutually_exclusive_group(required=True)
    rules.add_argument("--with", dest="filter", type=Path, metavar="FILTER", help="folder of `mrs staple tune`")
    rules.add_argument("--top", type=int, metavar="K", help="the best K of each prompt")
    rules.add_argument("--least-votes", type=int, metavar="N", help="translations found by at least N members")
    rules.add_argument(
        "--threshold", type=float, metavar="T", help="translations that score at least T, and the best of each prompt"
    )
    verb.add_argument(
        "--by", metavar="FEATURE", help="feature for --top and --threshold (default: rank; log_prob_per_token)"
    )
    verb.add_argument(
        "--relative", action="store_true", help="apply --threshold to the difference from the prompt's best"
    )
    verb.add_argument("--any-language", action="store_true", help="allow a filter that was tuned on another language")
    _add_out(verb, "hypothesis file to write")


def _add_effects(verbs: Any) -> None:
    effects = _verb(verbs, "effects", _effects, "mixed-effects analysis of systems' features (Tables 4 and 6)")
    effects.add_argument(
        "scores", type=Path, nargs="+", metavar="SCORES",
        help="report.json of `mrs staple report`, one per track; a CSV with system, track, prompt, precision, "
        "weighted_recall, weighted_f1; or the output of `mrs score --metric weighted_f1 --save-scores`",
    )  # fmt: skip
    effects.add_argument(
        "--features", required=True, metavar="FILE",
        help="CSV with system or team, optionally track, and a number for each feature; staple-teams: Table 5 of the "
        "paper",
    )  # fmt: skip
    effects.add_argument("--use", nargs="+", metavar="FEATURE", help="use only these features (default: all)")
    _add_out(effects, "folder to write", "FOLDER")


def _add_report(verbs: Any) -> None:
    report = _verb(verbs, "report", _report, "compare systems: scores, ranks, oracle, plots, errors by kind")
    gold = report.add_mutually_exclusive_group(required=True)
    gold.add_argument("--data", metavar="DIR", help="prepared data: a folder or a hub id")
    gold.add_argument("--gold", type=Path, metavar="FILE", help="a gold file of the task instead")
    report.add_argument("--split", default="test", help="split of --data (default: test, as in the paper)")
    report.add_argument(
        "--language", help="target language (default: the only one of --data, or the one in --gold's name)"
    )
    report.add_argument(
        "--systems", nargs="+", default=[], metavar="NAME=FILE",
        help="prediction files of the task or hypothesis files; the automatic translation of the data is always a row",
    )  # fmt: skip
    report.add_argument(
        "--rules", choices=("paper", "official"), default="paper",
        help="compare texts as the paper describes (default, as in `mrs score`) or as the official scorer does",
    )  # fmt: skip
    _add_out(report, "folder to write", "FOLDER")


def _decode(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.decode import Search, decode
    from mrs_suggest.staple.members import open_runs

    require_new_file(options.out, options.overwrite)
    names = ("search", *(name for name, _, _ in SEARCH), "ctranslate2")
    search = Search(**{name: value for name in names if (value := getattr(options, name)) is not None})
    runs = open_runs(options.runs)
    prompts, language = _prompts(options, runs)
    found = decode(runs, prompts, language, search, options.out, options.overwrite)
    print(f"wrote {visible(options.out)}: {len(found.table):,} translations of {len(found.prompts):,} prompts")


def _prompts(options: argparse.Namespace, runs: list[Run]) -> tuple[Prompts, str]:
    from mrs_datasets.prepared.prepared import open_prepared
    from mrs_suggest.staple.decode import choose_language, prompts_of_split, prompts_of_text
    from mrs_suggest.staple.members import written_language

    known = [run.settings.languages for run in runs]
    if options.text is not None:
        if options.split is not None:
            raise InputError("--split: applies to --data; leave it out with --text.")
        return prompts_of_text(options.text), choose_language(options.language, known, None)
    data = open_prepared(options.data)
    language = choose_language(options.language, known, data.configs())
    written = written_language(runs, language)
    if written != language:
        raise InputError(f"--data: holds prompts, and {runs[0].given} translates to {written}; pass --text.")
    return prompts_of_split(data, language, options.split or "validation"), language


def _combine(options: argparse.Namespace) -> None:
    from mrs_suggest.models.retrieval.distillation import load_encoder
    from mrs_suggest.staple.filters.features import add_features
    from mrs_suggest.staple.hypotheses import read_hypotheses, write_hypotheses
    from mrs_suggest.staple.pooling import POOL, pool

    require_new_file(options.out, options.overwrite)
    pooled = pool([(path, read_hypotheses(path)) for path in options.hypotheses])
    encode = None if options.encoder is None else load_encoder(options.encoder)[0]
    pooled = add_features(pooled, encode, options.encoder or "")
    write_hypotheses(pooled, options.out, options.overwrite)
    members = len(pooled.members[POOL]["members"])
    print(
        f"wrote {visible(options.out)}: {len(pooled.table):,} translations of {len(pooled.prompts):,} prompts, pooled "
        f"from {members:,} member{'s' * (members != 1)}; {len(pooled.features)} features"
    )


def _tune(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.filters.filter import SETTINGS, save_filter, tune
    from mrs_suggest.staple.hypotheses import read_hypotheses
    from mrs_suggest.staple.rules.base import Fitting

    require_replaceable(options.out, options.overwrite, SETTINGS)
    require_least(options, 0, "seed")
    features = tuple(dict.fromkeys(options.features)) if options.features else None
    fitting = Fitting(options.by, features, options.seed)
    found = read_hypotheses(options.hypotheses)
    made, notes = tune(found, options.hypotheses, options.data, options.rule, fitting, options.folds)
    save_filter(made, options.out, options.overwrite)
    for note in notes:
        print(f"note: {note}", file=sys.stderr)
    prompts, split = len(found.prompts), found.data["split"]
    print(f"weighted F1 on {split} ({prompts:,} prompts), out of fold: each prompt by a rule fitted on others")
    for name, figures in made.figures.items():
        print(
            f"  {name:<14} {figures['weighted_f1']:.4f} [{figures['low']:.4f}, {figures['high']:.4f}]  "
            f"precision {figures['precision']:.4f}  weighted recall {figures['weighted_recall']:.4f}  "
            f"{figures['translations']:.1f} translations a prompt"
        )
    described = f"{options.rule} {made.rule.described()}".rstrip()
    print(f"wrote {visible(options.out)}: {described}, fitted on all prompts")


def _filter(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.filters.filter import apply_filter, apply_rule, doubts, load_filter
    from mrs_suggest.staple.hypotheses import read_hypotheses, write_hypotheses

    require_new_file(options.out, options.overwrite)
    if options.filter is not None:
        made = load_filter(options.filter)
        found = read_hypotheses(options.hypotheses)
        kept = apply_filter(found, options.hypotheses, made, options.filter, options.any_language)
        for note in doubts(found, made):
            print(f"note: {note}", file=sys.stderr)
    else:
        rule, asked = _rule(options)
        found = read_hypotheses(options.hypotheses)
        kept = apply_rule(found, options.hypotheses, rule, asked)
    write_hypotheses(kept, options.out, options.overwrite)
    print(
        f"wrote {visible(options.out)}: {len(kept.table):,} of {len(found.table):,} translations of "
        f"{len(kept.prompts):,} prompts"
    )


def _rule(options: argparse.Namespace) -> tuple[Rule, str]:
    """The rule that is given by options, and the option."""
    from mrs_suggest.staple.lists import PER_TOKEN
    from mrs_suggest.staple.rules.base import Fitting
    from mrs_suggest.staple.rules.simple import Threshold, Top, Votes

    require_least(options, 1, "top", "least-votes")
    for option, value in (("--top", options.top), ("--least-votes", options.least_votes)):
        if value is not None:
            return (Top(value, options.by or "rank") if option == "--top" else Votes(value)), option
    if not math.isfinite(options.threshold):
        raise InputError(f"--threshold {options.threshold}: expected a finite number.")
    Threshold.needs(Fitting(by=options.by), ())
    return Threshold(options.threshold, options.by or PER_TOKEN, options.relative), "--threshold"


def _export(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.hypotheses import read_hypotheses, write_predictions

    found = read_hypotheses(options.hypotheses)
    count = write_predictions(found, options.out, options.overwrite)
    print(f"wrote {visible(options.out)}: {count:,} translations of {len(found.prompts):,} prompts")


def _effects(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.analysis import effects

    require_replaceable(options.out, options.overwrite, effects.MARKER)
    table = effects.read_features(options.features)
    found = effects.analyse_effects(effects.read_scores(options.scores), table, options.use)
    effects.write_effects(found, options.out, options.overwrite)
    print_grid(Grid(*effects.effects_rows(found)), effects.effects_notes(found))
    print(f"wrote {visible(options.out)}")


def _report(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.analysis.report import MARKER, make_report, system_rows, table_notes, write_report
    from mrs_suggest.staple.analysis.scored_systems import score_all
    from mrs_suggest.staple.gold import read_gold_file, read_gold_split

    files = _named_files(options.systems)
    require_replaceable(options.out, options.overwrite, MARKER)
    if options.gold:
        gold = read_gold_file(options.gold, options.language, options.rules)
    else:
        gold = read_gold_split(options.data, options.split, options.language, options.rules)
    report = make_report(gold, score_all(gold, files))
    write_report(report, options.out, options.overwrite)
    print_grid(Grid(*system_rows(report.systems)), table_notes(report))
    print(f"wrote {visible(options.out)}")


def _named_files(given: Sequence[str]) -> dict[str, Path]:
    files: dict[str, Path] = {}
    for entry in given:
        name, equals, file = entry.partition("=")
        if not (equals and name.strip() and file):
            raise InputError(f"--systems {entry!r}: expected NAME=FILE, such as mine=test.pred.txt.")
        if name in files:
            raise InputError(f"--systems: two systems are called {name!r}; give each its own name.")
        files[name] = Path(file)
    return files


def _rescore(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.hypotheses import read_hypotheses
    from mrs_suggest.staple.members import open_run
    from mrs_suggest.staple.rescore import rescore

    require_least(options, 1, "batch_size")
    require_new_file(options.out, options.overwrite)
    found, run = read_hypotheses(options.hypotheses), open_run(options.by)
    made = rescore(found, run, options.out, options.reverse, options.batch_size, options.overwrite)
    print(f"wrote {visible(options.out)}: {len(made.table):,} translations with log_prob_{visible(run.name)}")


def _pairs(options: argparse.Namespace) -> None:
    from mrs_suggest.staple.hypotheses import read_hypotheses, write_pairs

    count = write_pairs(read_hypotheses(options.hypotheses), options.out, options.top, options.swap, options.overwrite)
    print(f"wrote {visible(options.out)}: {count:,} pairs")
