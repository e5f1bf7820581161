"""`mrs data stats`: the columns of each paper's own table, then the lengths of the texts and the balance of the labels;
`mrs data view`: a page of a data set; `mrs data diversity`: the indices of a sample of languages."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import metric_errors, require_least
from mrs_suggest.common.report.tables import make_console, make_table
from mrs_suggest.common.text.languages import require_any_language
from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from rich.table import Table

    from mrs_datasets.describe.describe import SplitDescription
    from mrs_datasets.prepared.prepared import PreparedData

Printed = tuple[dict[str, Any], "list[Table | str]"]  # for --json, and for the terminal


def add_stats(verbs: argparse._SubParsersAction[CommandParser]) -> None:
    stats = verbs.add_parser("stats", help="print the columns of the paper's own table per language and split")
    stats.add_argument("data", help="a prepared folder, a hub id (also ORG/NAME@REVISION), or `sample`")
    stats.add_argument(
        "--language", nargs="+", default=None, help="only these languages (for data sets other than mrs: configs)"
    )
    stats.add_argument("--plot", type=Path, metavar="OUT.png", help="draw examples per split and lengths of texts")
    stats.add_argument("--json", action="store_true", help="print JSON")
    stats.set_defaults(run=run_stats)
    view = verbs.add_parser("view", help="write a page with counts, dropped texts and random rows of a data set")
    view.add_argument("data", help="a prepared folder, a hub id (also ORG/NAME@REVISION), or `sample`")
    view.add_argument("--out", required=True, type=Path, metavar="FILE", help="HTML file to write")
    view.add_argument("--rows", type=int, default=50, metavar="N", help="random rows of each language (default 50)")
    view.add_argument("--seed", type=int, default=42, help="random seed (default 42)")
    view.set_defaults(run=run_view)
    indices = verbs.add_parser("diversity", help="print the diversity indices of a language sample")
    indices.add_argument(
        "languages", nargs="*", help="codes, such as et ht id (default: the samples of XCOPA's Table 2)"
    )
    indices.add_argument(
        "--uriel",
        type=Path,
        metavar="FILE",
        help="CSV or TSV of typological features (code, then a 0/1 column per feature)",
    )
    indices.add_argument("--json", action="store_true", help="print JSON")
    indices.set_defaults(run=run_diversity)


def run_view(options: argparse.Namespace) -> None:
    from mrs_datasets.describe.view import write_view
    from mrs_datasets.prepared.prepared import open_prepared

    require_least(options, 1, "rows")
    write_view(open_prepared(options.data), options.out, options.rows, options.seed)
    print(f"wrote {visible(options.out)}")


def run_stats(options: argparse.Namespace) -> None:
    from tqdm import tqdm

    from mrs_datasets.describe.describe import describe
    from mrs_datasets.prepared.prepared import open_prepared

    data = open_prepared(options.data)
    name = data.data_set()
    if name == "mrs":
        for code in options.language or []:
            require_any_language(code, "--language")
    own: dict[str, Callable[[PreparedData, list[str] | None], Printed]]
    own = {"mrs": _mrs, "xcopa": _xcopa, "staple": _staple, "xglue": _xglue}
    kind = name.removeprefix("synthetic-")
    content, parts = own[kind](data, options.language) if kind in own else ({}, [])
    described = list(tqdm(describe(data, options.language), desc="lengths", unit=" splits", disable=None))
    if options.plot:
        from mrs_datasets.describe.view import draw_data

        draw_data(described, data.title(), options.plot, content.get("oracles"))
    if options.json:
        print(json.dumps({**content, "texts": [description.as_dict() for description in described]}, indent=2))
        return
    console = make_console(110)
    for part in [*parts, *_described(described)]:
        console.print(part)
    if options.plot:
        print(f"drew {visible(options.plot)}")


def _mrs(data: PreparedData, languages: list[str] | None) -> Printed:
    from tqdm import tqdm

    from mrs_datasets.describe.paper_tables import languages_by_tokenizer, split_statistics

    counted = split_statistics(data, languages=languages)
    with metric_errors(data.name):
        rows = list(tqdm(counted, desc="tokens", unit=" splits", disable=None))
    table = make_table("Language", "Code", "Family", "Split", ">Examples", ">Tokens", ">Response set")
    for row in rows:
        language = require_any_language(row.language, data.name)
        named = (language.name, row.language, language.branch or language.family)
        first = named if row.split == "train" else ("", "", "")
        responses = f"{row.responses:,}" if row.split == "train" else ""
        table.add_row(*first, row.split, f"{row.examples:,}", f"{row.tokens:,}", responses)
    table.caption = "Tokens of messages and replies, by the metric's tokenizer: " + "; ".join(
        f"{name} ({', '.join(codes)})" for name, codes in languages_by_tokenizer(rows).items()
    )
    return {"splits": [asdict(row) for row in rows]}, [table]


def _xcopa(data: PreparedData, configs: list[str] | None) -> Printed:
    from mrs_datasets.describe.paper_tables import agreement, xcopa_split_statistics

    rows, kappas = list(xcopa_split_statistics(data, configs)), agreement(data)
    table = make_table("Config", "Split", ">Examples", ">Agreement")
    for row in rows:
        agreed = f"{row.agreement:.1f}" if row.agreement is not None else ""
        table.add_row(row.config, row.split, f"{row.examples:,}", agreed)
    table.caption = "Agreement: % of translators' labels that match the majority (Table 3)."
    lines = [f"Fleiss' kappa of the translators, {split}: {kappa:.3f}" for split, kappa in kappas.items()]
    return {"splits": [asdict(row) for row in rows], "kappa": kappas}, [table, *lines]


def _staple(data: PreparedData, configs: list[str] | None) -> Printed:
    from mrs_datasets.describe.paper_tables import oracle_curves, staple_split_statistics
    from mrs_metrics.translations_f1 import TABLE_7_KS, weighted_f1_signature

    rows = list(staple_split_statistics(data, configs))
    oracles = oracle_curves(data, rows, "official")
    signature = weighted_f1_signature("official")
    names = ("Language", "Code", "Split", ">Prompts", ">Trans.", ">Ratio", ">Quartiles", ">Refs.")
    table = make_table(*names, *(f">k = {k}" for k in TABLE_7_KS))
    for row, oracle in zip(rows, oracles, strict=True):
        sizes = [f"{row.prompts:,}", f"{row.translations:,}", f"{row.ratio:.1f}"]
        spread = "/".join(str(n) for n in row.quartiles)
        scores = [f"{oracle[k]:.3f}" if k in oracle else "" for k in TABLE_7_KS]
        table.add_row(row.language, row.config, row.split, *sizes, spread, f"{row.references:,}", *scores)
    table.caption = (
        "Prompts, accepted translations, their ratio: Table 2. Quartiles: translations per prompt. k: weighted F1 of "
        f"an oracle that gives the k most likely ones (Table 7); {signature}"
    )
    splits = [{**asdict(row), "oracle": oracle} for row, oracle in zip(rows, oracles, strict=True)]
    curves = {f"{row.config}/{row.split}": oracle for row, oracle in zip(rows, oracles, strict=True) if oracle}
    return {"splits": splits, "oracles": curves, "signature": signature}, [table]


def _xglue(data: PreparedData, configs: list[str] | None) -> Printed:
    from mrs_datasets.describe.paper_tables import xglue_task_statistics
    from mrs_datasets.prepared.schema import SPLITS

    rows = list(xglue_task_statistics(data, configs))
    published = data.data_set() == "xglue"
    means = (">Train, en", ">Validation, mean", ">Test, mean")
    table = make_table("Task", ">Languages", *means, *[">(Table 2)"] * published)
    for row in rows:
        counts = [f"{row.rows[split]:,.0f}" if split in row.rows else "" for split in SPLITS]
        printed = " / ".join(f"{row.published[split]:g}K" for split in SPLITS)
        table.add_row(row.task, str(len(row.languages)), *counts, *[printed] * published)
    table.caption = "Rows per task: English training data, and the languages' mean of the other splits."
    if published:
        table.caption += " (Table 2): the paper's figures, in thousands."
    codes = [code for code in sorted(data.record().languages) if any(code in row.languages for row in rows)]
    covered = make_table("Task", *codes, title="Table 3")
    for row in rows:
        covered.add_row(row.task, *("✓" if code in row.languages else "" for code in codes))
    return {"tasks": [asdict(row) for row in rows]}, [table, covered]


def _described(rows: list[SplitDescription]) -> list[Table | str]:
    quantiles = (">5 %", ">25 %", ">50 %", ">75 %", ">95 %")
    lengths = make_table("Config", "Split", ">Rows", "Column", *quantiles, title="Lengths of texts, characters")
    labels = make_table("Config", "Split", "Column", "Shares", title="Balance of labels")
    for row in rows:
        start = (row.config, row.split, f"{row.rows:,}")
        for column in row.lengths:
            lengths.add_row(*start, column, *(str(n) for n in row.quantiles(column)))
            start = ("", "", "")
        for column in row.labels:
            shares = ", ".join(f"{name} {100 * share:.1f} %" for name, share in row.shares(column).items())
            labels.add_row(row.config, row.split, column, shares)
    return [lengths, *([labels] if labels.row_count else [])]


def run_diversity(options: argparse.Namespace) -> None:
    from mrs_datasets.describe.diversity import BENCHMARKS, read_uriel, sample_indices

    samples: dict[str, Sequence[str]] = {name: benchmark.codes for name, benchmark in BENCHMARKS.items()}
    if options.languages:
        samples = {"": options.languages}
    features = read_uriel(options.uriel) if options.uriel else None
    rows: list[dict[str, Any]] = []
    for name, codes in samples.items():
        indices = sample_indices(codes, features, options.uriel)
        published = {"typology_of_table_2": BENCHMARKS[name].typology} if name else {}
        rows.append({"sample": name or None, "languages": list(codes), **indices, **published})
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    columns = {"Typology": "typology", "(Table 2)": "typology_of_table_2", "Family": "family", "Geography": "geography"}
    if options.languages:
        del columns["(Table 2)"]
    table = make_table("Sample", "Languages", *(f">{title}" for title in columns))
    for row in rows:
        figures = ["" if row[name] is None else f"{row[name]:.2f}" for name in columns.values()]
        table.add_row(row["sample"] or "", " ".join(row["languages"]), *figures)
    table.caption = (
        "Indices of Ponti et al. 2020, section 2, Table 2: mean entropy of typological features (--uriel), families "
        "per language, entropy of macro-areas; in bits. Family and geography are those of Table 2. Its typology is "
        "not: it is close to natural logarithms over URIEL's 103 syntactic features, without a rule for missing values."
    )
    make_console(110).print(table)
