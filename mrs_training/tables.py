"""What a run prints: the four-row table, and one row per language."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

from mrs_core.console import make_console
from mrs_core.errors import InputError
from mrs_models.baselines import BASELINES
from mrs_training.comparison import MODEL, POOLED, grouped_signatures

WIDTH = 130  # of the wide table, and where the output is not a terminal


def print_results(record: dict[str, Any]) -> None:
    """Print the figures of a run: one wide table, or two where the terminal is narrow; then by language."""
    figures, speed = record["metrics"], record["milliseconds"]
    console = make_console(WIDTH)
    languages = list(figures["signatures"])
    where = f"{len(languages)} languages pooled" if len(languages) > 1 else languages[0]
    own = figures["systems"][MODEL][POOLED]
    title = f"Test split, {where}, {own['n']:,} examples; ceiling {_short(own['ceiling'], 4)}"
    ranks = "mrr" in own
    first = ("ROUGE", "ROUGE lead", *(() if ranks else ("perplexity",)), "Dist-1", "Dist-2", "ms")
    second = ("MRR", "MRR lead", "P@1") if ranks else ()
    if console.width >= WIDTH:
        console.print(_table(figures, speed, title, (*first[:2], *second, *first[2:])))
    else:
        console.print(_table(figures, speed, title, first))
        if second:
            console.print(_table(figures, speed, "", second))
    console.print("ROUGE: weighted ROUGE of the best of three. Brackets: 95 % intervals; a lead of the model over a")
    pools = f" MRR, P@1: in 1-of-{figures['pool_size']} pools." if ranks else ""
    console.print(f"system is a paired difference.{pools} ms: to answer a message, in batches.\n")
    if len(languages) > 1:
        console.print(_languages_table(figures, languages, ranks))
    if figures["paper"]:
        console.print(_paper_table(figures["paper"]))
    for signature in grouped_signatures(figures):
        console.print(signature, style="dim", soft_wrap=True)


def print_comparison(records: dict[str, dict[str, Any]]) -> None:
    """Print the models of several runs and their baselines in one table (the columns of the paper's Figure 2).

    Args:
        records: `run.json` of each run, by its folder.

    Raises:
        InputError: the runs were not tested on the same examples, so that their figures do not compare.
    """
    first, *others = records
    for other in others:
        _require_same_test(first, records[first], other, records[other])
    figures = records[first]["metrics"]
    languages = list(figures["signatures"])
    own = figures["systems"][MODEL][POOLED]
    where = f"{len(languages)} languages pooled" if languages[1:] else languages[0]
    table = Table(
        title=f"Test split, {where}, {own['n']:,} examples; ceiling {_short(own['ceiling'], 4)}", title_justify="left"
    )
    table.add_column("System", no_wrap=True)
    columns = ("ROUGE", "Dist-1", "Dist-2", "MRR", "perplexity", "seconds / 1,000")
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for folder, record in records.items():
        name = escape(f"{record['trainer']} ({Path(folder).name})")
        table.add_row(name, *_figure_2(record, MODEL), style="bold")
    for name in figures["systems"]:
        if name in BASELINES:
            table.add_row(name, *_figure_2(records[first], name))
    console = make_console(WIDTH)
    console.print(table)
    console.print(
        "ROUGE: weighted ROUGE of the best of three, with its 95 % interval. MRR: in random pools, where a model"
    )
    console.print("ranks. seconds: to answer 1,000 messages in batches, as each run measured it on its own machine.")
    perplexities = {_perplexity_signature(record) for record in records.values()} - {""}
    if len(perplexities) > 1:
        console.print("perplexity: does not compare here, since the texts were cut into tokens in different ways:")
    for signature in dict.fromkeys([*grouped_signatures(figures), *sorted(perplexities)]):
        console.print(signature, style="dim", soft_wrap=True)


def _perplexity_signature(record: dict[str, Any]) -> str:
    """Of the pooled figure; "" where there is none."""
    found = [texts.get("reply_perplexity", "") for texts in record["metrics"]["signatures"].values()]
    return found[0] if found else ""


def _figure_2(record: dict[str, Any], name: str) -> list[str]:
    row = record["metrics"]["systems"][name][POOLED]
    return [
        f"{_short(row['weighted'], 4)} {_interval(row['weighted_interval'])}",
        _short(row["dist1"]),
        _short(row["dist2"]),
        _short(row.get("mrr")),
        _short(row.get("perplexity"), 1),
        f"{record['milliseconds'][name]:.2f}",
    ]


def _require_same_test(one: str, record: dict[str, Any], other: str, second: dict[str, Any]) -> None:
    for what, value, found in (
        ("the languages", *(list(r["metrics"]["signatures"]) for r in (record, second))),
        ("the numbers of examples", *([r["metrics"]["systems"][MODEL][POOLED]["n"]] for r in (record, second))),
        ("the test examples", *(_test_data(r) for r in (record, second))),
    ):
        if value != found:
            raise InputError(
                f"{other}: its figures do not compare with those of {one}: {what} differ ({found} against {value})."
            )


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
            "ROUGE": f"{_short(row['weighted'], 4)} {_interval(row['weighted_interval'])}",
            "ROUGE lead": _interval(lead.get("weighted"), sign=True),
            "MRR": f"{_short(row.get('mrr'))} {_interval(row.get('mrr_interval'))}",
            "MRR lead": _interval(lead.get("mrr"), sign=True),
            "perplexity": _short(row.get("perplexity"), 1),
            "ms": f"{speed[name]:.2f}",
            "P@1": _short(row.get("p@1")),
            "Dist-1": _short(row["dist1"]),
            "Dist-2": _short(row["dist2"]),
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
        figures = (_short(row[key], 4) for key in ("rouge", "dist1", "dist2"))
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
        cells = [_short(row["weighted"], 4) + (f" ({_short(row['mrr'])})" if ranks else "") for row in rows]
        table.add_row(code, f"{rows[0]['n']:,}", *cells)
    return table


def _interval(bounds: list[float] | None, sign: bool = False) -> str:
    return "" if bounds is None else "[" + ", ".join(_short(bound, sign=sign) for bound in bounds) + "]"


def _short(value: float | None, digits: int = 3, sign: bool = False) -> str:
    """A share without its leading zero, as the papers print it: .3007, +.024, 1.000; nothing for nothing."""
    if value is None:
        return ""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"
