"""What a run prints: the four-row table, and one row per language."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from mrs_metrics.significance import PERCENTILE
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.report.console import make_console
from mrs_suggest.evaluation.comparison import POOLED, grouped_signatures
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.suggest.baselines import BASELINES

RANKING = "response_ranking|"  # how its signatures start
GUARD_OFF = "All of it is measured with the guard off: every message is answered."
WIDTH = 130  # of the wide table, and where the output is not a terminal


def print_results(record: dict[str, Any]) -> None:
    """Print the figures of a run: one wide table, or two where the terminal is narrow; then by language."""
    figures, speed = record["metrics"], record["milliseconds"]
    console = make_console(WIDTH)
    languages = list(figures["signatures"])
    where = f"{len(languages)} languages pooled" if len(languages) > 1 else languages[0]
    own = figures["systems"][MODEL][POOLED]
    title = f"Test split, {where}, {own['n']:,} examples; ceiling {short_number(own['ceiling'], 4)}"
    ranks = "mrr" in own
    first = ("ROUGE", "ROUGE lead", *(() if ranks else ("perplexity",)), "Dist-1", "Dist-2", "ms")
    second = ("MRR", "MRR lead", "P@1") if ranks else ()
    if console.width >= WIDTH:
        console.print(_table(figures, speed, title, (*first[:2], *second, *first[2:])))
    else:
        console.print(_table(figures, speed, title, first))
        if second:
            console.print(_table(figures, speed, "", second))
    method = figures.get("interval_method", PERCENTILE)
    console.print(f"ROUGE: weighted ROUGE of the best of three. Brackets: 95 % intervals ({method}); a lead of the")
    pools = f" MRR, P@1: in 1-of-{figures['pool_size']} pools." if ranks else ""
    console.print(f"model over a system is a paired difference.{pools} ms: to answer a message, in batches.")
    console.print(f"{GUARD_OFF}\n")
    if len(languages) > 1:
        console.print(_languages_table(figures, languages, ranks))
    if figures["paper"]:
        console.print(_paper_table(figures["paper"]))
    for signature in grouped_signatures(figures):
        console.print(signature, style="dim", soft_wrap=True)


def print_comparison(records: dict[str, dict[str, Any]]) -> None:
    """Print the models of several runs and their baselines in one table (the columns of the paper's Figure 2).

    A baseline has one row if its figures are the same in all runs, else one for each group of runs. MRR is in the table
    if all runs that rank drew the same pools, else below it, run by run.

    Args:
        records: `run.json` of each run, by its folder.

    Raises:
        InputError: the runs were not tested on the same examples, so that their figures cannot be compared.
    """
    first, *others = records
    for other in others:
        _require_same_test(first, records[first], other, records[other])
    names = _run_names(records)
    figures = records[first]["metrics"]
    languages = list(figures["signatures"])
    own = figures["systems"][MODEL][POOLED]
    where = f"{len(languages)} languages pooled" if languages[1:] else languages[0]
    table = Table(
        title=f"Test split, {where}, {own['n']:,} examples; ceiling {short_number(own['ceiling'], 4)}",
        title_justify="left",
    )
    table.add_column("System", no_wrap=True)
    for column in ("ROUGE", "Dist-1", "Dist-2", "MRR", "perplexity", "seconds / 1,000"):
        table.add_column(column, justify="right", no_wrap=True)
    pools = _grouped([folder for folder in records if _ranks(records[folder])], partial(_same_pools, records))
    show_mrr = len(pools) <= 1
    for folder, record in records.items():
        name = f"{record['trainer']} ({names[folder]})"
        table.add_row(name, *_figure_2(record, MODEL, show_mrr), style="bold")
    for name in [name for name in figures["systems"] if name in BASELINES]:
        groups = _grouped(list(records), partial(_same_row, records, name, show_mrr))
        for group in groups:
            ranked = next((folder for folder in group if _ranks(records[folder])), group[0])
            label = f"{name} ({', '.join(names[folder] for folder in group)})" if groups[1:] else name
            table.add_row(label, *_figure_2(records[ranked], name, show_mrr))
    console = make_console(WIDTH, markup=False)
    console.print(table)
    console.print(
        "ROUGE: weighted ROUGE of the best of three, with its 95 % interval. MRR: in random pools, where a model"
    )
    console.print("ranks. seconds: to answer 1,000 messages in batches, as each run measured it on its own machine.")
    console.print(GUARD_OFF)
    for line in [*_unlike(records, names), *([] if show_mrr else _apart(records, names, pools))]:
        console.print(line, soft_wrap=True)
    perplexities = {_perplexity_signature(record) for record in records.values()} - {""}
    if len(perplexities) > 1:
        console.print("perplexity: not comparable here, since the texts were tokenized differently:")
    told = [text for record in records.values() for text in grouped_signatures(record["metrics"])]
    hidden = () if show_mrr else RANKING
    for signature in dict.fromkeys(text for text in told if not text.startswith(hidden)):
        console.print(signature, style="dim", soft_wrap=True)


def _run_names(records: dict[str, Any]) -> dict[str, str]:
    """The folders' last names, or the whole folders if two are equal."""
    short = {folder: Path(folder).name for folder in records}
    return short if len(set(short.values())) == len(short) else {folder: folder for folder in records}


def _grouped(folders: list[str], alike: Callable[[str, str], bool]) -> list[list[str]]:
    """Groups of runs that are all alike."""
    groups: list[list[str]] = []
    for folder in folders:
        for group in groups:
            if all(alike(member, folder) for member in group):
                group.append(folder)
                break
        else:
            groups.append([folder])
    return groups


def _ranks(record: dict[str, Any]) -> bool:
    return "mrr" in record["metrics"]["systems"][MODEL][POOLED]


def _same_pools(records: dict[str, dict[str, Any]], one: str, other: str) -> bool:
    """Whether two runs ranked in the same pools; where one kept no hash of them, whether the baselines' MRRs agree."""
    first, second = records[one]["metrics"], records[other]["metrics"]
    if _ranking_signatures(first) != _ranking_signatures(second):
        return False
    if "pools" in first and "pools" in second:
        return bool(first["pools"] == second["pools"])
    return all(
        scopes[scope].get("mrr") == second["systems"][name][scope].get("mrr")
        for name, scopes in first["systems"].items()
        if name in BASELINES
        for scope in scopes
    )


def _ranking_signatures(figures: dict[str, Any]) -> list[str]:
    return [text for text in grouped_signatures(figures) if text.startswith(RANKING)]


def _same_row(records: dict[str, dict[str, Any]], name: str, mrr: bool, one: str, other: str) -> bool:
    rows = [records[folder]["metrics"]["systems"][name][POOLED] for folder in (one, other)]
    keys = ["weighted", "dist1", "dist2", *(["mrr"] if mrr and all("mrr" in row for row in rows) else [])]
    return all(rows[0][key] == rows[1][key] for key in keys)


def _unlike(records: dict[str, dict[str, Any]], names: dict[str, str]) -> Iterator[str]:
    """What else the runs computed differently."""
    rouge = [{texts["mrs_rouge"] for texts in record["metrics"]["signatures"].values()} for record in records.values()]
    if any(signatures != rouge[0] for signatures in rouge):
        yield "ROUGE: the runs computed it differently, see the signatures."
    methods: dict[str, list[str]] = {}
    for folder, record in records.items():
        methods.setdefault(record["metrics"].get("interval_method", PERCENTILE), []).append(names[folder])
    if len(methods) > 1:
        told = "; ".join(f"{method} ({', '.join(runs)})" for method, runs in methods.items())
        yield f"95 % intervals: {told}; those of a baseline are of the first run in its row."


def _apart(records: dict[str, dict[str, Any]], names: dict[str, str], pools: list[list[str]]) -> Iterator[str]:
    """MRR, group by group of runs that drew the same pools."""
    yield "MRR: not in the table, since the runs ranked in different pools (seed, size, replies); compare in a line:"
    for group in pools:
        figures = records[group[0]]["metrics"]
        shown = [(names[folder], records[folder]["metrics"]["systems"][MODEL]) for folder in group]
        shown += [(name, scopes) for name, scopes in figures["systems"].items() if name in BASELINES]
        told = ", ".join(f"{name} {short_number(scopes[POOLED]['mrr'])}" for name, scopes in shown)
        pools_of = " ".join(sorted(set(figures.get("pools", {}).values()))[:3])
        yield f"  {told}; {' '.join(_ranking_signatures(figures))}{f'; pools {pools_of}' if pools_of else ''}"


def _perplexity_signature(record: dict[str, Any]) -> str:
    """Of the pooled figure; "" where there is none."""
    found = [texts.get("reply_perplexity", "") for texts in record["metrics"]["signatures"].values()]
    return found[0] if found else ""


def _figure_2(record: dict[str, Any], name: str, mrr: bool = True) -> list[str]:
    row = record["metrics"]["systems"][name][POOLED]
    return [
        f"{short_number(row['weighted'], 4)} {_interval(row['weighted_interval'])}",
        short_number(row["dist1"]),
        short_number(row["dist2"]),
        short_number(row.get("mrr") if mrr else None),
        short_number(row.get("perplexity"), 1),
        f"{record['milliseconds'][name]:.2f}",
    ]


def same_tests(records: dict[str, dict[str, Any]]) -> bool:
    """Whether all runs were tested on the same examples."""
    first, *others = records
    return not any(list(_unlike_tests(records[first], records[other])) for other in others)


def _require_same_test(one: str, record: dict[str, Any], other: str, second: dict[str, Any]) -> None:
    for what, value, found in _unlike_tests(record, second):
        raise InputError(
            f"{other}: its figures cannot be compared with those of {one}: {what} differ ({found} against {value})."
        )


def _unlike_tests(record: dict[str, Any], second: dict[str, Any]) -> Iterator[tuple[str, Any, Any]]:
    """What differs in two runs' tests, and how it is in each."""
    one, other = record["metrics"], second["metrics"]
    tests: list[tuple[str, Any, Any]] = [
        ("the languages", list(one["signatures"]), list(other["signatures"])),
        ("the numbers of examples", [_count(one)], [_count(other)]),
        ("the test examples", _test_data(record), _test_data(second)),
    ]
    yield from ((what, value, found) for what, value, found in tests if value != found)


def _count(figures: dict[str, Any]) -> int:
    return int(figures["systems"][MODEL][POOLED]["n"])


def _test_data(record: dict[str, Any]) -> list[Any]:
    data = record["data"]
    return [data.get("test_hash") or data.get("revision") or data.get("content_hash")]


def _table(figures: dict[str, Any], speed: dict[str, float], title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title or None, title_justify="left")
    table.add_column("System", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, scopes in figures["systems"].items():
        row = scopes[POOLED]
        lead = figures["differences"].get(name, {}).get(POOLED, {})
        cells = {
            "ROUGE": f"{short_number(row['weighted'], 4)} {_interval(row['weighted_interval'])}",
            "ROUGE lead": _interval(lead.get("weighted"), sign=True),
            "MRR": f"{short_number(row.get('mrr'))} {_interval(row.get('mrr_interval'))}",
            "MRR lead": _interval(lead.get("mrr"), sign=True),
            "perplexity": short_number(row.get("perplexity"), 1),
            "ms": f"{speed[name]:.2f}",
            "P@1": short_number(row.get("p@1")),
            "Dist-1": short_number(row["dist1"]),
            "Dist-2": short_number(row["dist2"]),
        }
        table.add_row(name, *(cells[column] for column in columns), style="bold" if name == MODEL else None)
    return table


def _paper_table(rows: list[dict[str, Any]]) -> Table:
    """The paper's own figures: other data and, mostly, other models."""
    table = Table(title="The paper's figures for this setting (whole MRS test sets)", title_justify="left")
    for column in ("table", "model", "language"):
        table.add_column(column)
    for column in ("ROUGE", "Dist-1", "Dist-2"):
        table.add_column(column, justify="right")
    for row in rows:
        figures = (short_number(row[key], 4) for key in ("rouge", "dist1", "dist2"))
        table.add_row(str(row["table"]), row["model"], row["language"], *figures)
    return table


def _languages_table(figures: dict[str, Any], languages: list[str], ranks: bool) -> Table:
    table = Table(title=f"By language: ROUGE{' (MRR)' if ranks else ''}", title_justify="left")
    table.add_column("")
    table.add_column("examples", justify="right")
    for name in figures["systems"]:
        table.add_column(name, justify="right", no_wrap=True)
    for code in languages:
        rows = [scopes[code] for scopes in figures["systems"].values()]
        cells = [short_number(row["weighted"], 4) + (f" ({short_number(row['mrr'])})" if ranks else "") for row in rows]
        table.add_row(code, f"{rows[0]['n']:,}", *cells)
    return table


def _interval(bounds: list[float] | None, sign: bool = False) -> str:
    return "" if bounds is None else "[" + ", ".join(short_number(bound, sign=sign) for bound in bounds) + "]"


def short_number(value: float | None, digits: int = 3, sign: bool = False) -> str:
    """A share without its leading zero, as the papers print it: .3007, +.024, 1.000; empty for None."""
    if value is None:
        return ""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"
