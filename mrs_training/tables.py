"""What a run prints: the four-row table, and one row per language."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from mrs_training.retrieval_evaluation import POOLED, grouped_signatures

WIDTH = 118  # of the wide table, and where the output is not a terminal


def print_results(figures: dict[str, Any]) -> None:
    """Print the figures of `compare_on_test`: one wide table, or two where the terminal is narrow."""
    console = Console(width=None if sys.stdout.isatty() else WIDTH, highlight=False)
    languages = list(figures["signatures"])
    where = f"{len(languages)} languages pooled" if len(languages) > 1 else languages[0]
    n = figures["systems"]["Model"][POOLED]["n"]
    title = f"Test split, {where}, {n:,} examples"
    if console.width >= WIDTH:
        console.print(_table(figures, title, ("ROUGE", "ROUGE lead", "MRR", "MRR lead", "P@1", "Dist-1", "Dist-2")))
    else:
        console.print(_table(figures, title, ("ROUGE", "ROUGE lead", "Dist-1", "Dist-2")))
        console.print(_table(figures, "", ("MRR", "MRR lead", "P@1")))
    pools = f"1-of-{figures['pool_size']} pools"
    console.print(f"ROUGE: weighted ROUGE of the best of three. MRR, P@1: in {pools}. Brackets: 95 % intervals;")
    console.print("a lead of the model over a system is a paired difference.\n")
    if len(languages) > 1:
        console.print(_languages_table(figures, languages))
    for signature in grouped_signatures(figures):
        console.print(signature, style="dim", soft_wrap=True)


def _table(figures: dict[str, Any], title: str, columns: tuple[str, ...]) -> Table:
    table = Table(title=title or None, title_justify="left")
    table.add_column("System", no_wrap=True)
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)
    for name, scopes in figures["systems"].items():
        row = scopes[POOLED]
        lead = figures["differences"].get(name, {}).get(POOLED)
        cells = {
            "ROUGE": f"{_short(row['weighted'], 4)} {_interval(row['weighted_interval'])}",
            "ROUGE lead": _interval(lead["weighted"], sign=True) if lead else "",
            "MRR": f"{_short(row['mrr'])} {_interval(row['mrr_interval'])}",
            "MRR lead": _interval(lead["mrr"], sign=True) if lead else "",
            **{key: _short(row[field]) for key, field in (("P@1", "p@1"), ("Dist-1", "dist1"), ("Dist-2", "dist2"))},
        }
        table.add_row(name, *(cells[column] for column in columns), style="bold" if name == "Model" else None)
    return table


def _languages_table(figures: dict[str, Any], languages: list[str]) -> Table:
    table = Table(title="By language: ROUGE (MRR)", title_justify="left")
    table.add_column("")
    table.add_column("examples", justify="right")
    for name in figures["systems"]:
        table.add_column(name, justify="right", no_wrap=True)
    for code in languages:
        rows = [scopes[code] for scopes in figures["systems"].values()]
        cells = [f"{_short(row['weighted'], 4)} ({_short(row['mrr'])})" for row in rows]
        table.add_row(code, f"{rows[0]['n']:,}", *cells)
    return table


def _interval(bounds: list[float], sign: bool = False) -> str:
    return "[" + ", ".join(_short(bound, sign=sign) for bound in bounds) + "]"


def _short(value: float, digits: int = 3, sign: bool = False) -> str:
    """A share without its leading zero, as the papers print it: .3007, +.024, 1.000."""
    return f"{value:{'+' if sign else ''}.{digits}f}".replace("0.", ".", 1) if abs(value) < 1 else f"{value:.{digits}f}"
