"""What a run prints: the four-row table, and one row per language."""

from __future__ import annotations

import sys
from typing import Any

from rich.console import Console
from rich.table import Table

from mrs_training.retrieval_evaluation import POOLED


def print_results(figures: dict[str, Any]) -> None:
    """Print the figures of `compare_on_test`."""
    console = Console(width=None if sys.stdout.isatty() else 110)
    languages = list(figures["signatures"])
    console.print(_systems_table(figures, languages))
    if len(languages) > 1:
        console.print(_languages_table(figures, languages))
    for metric, signature in figures["signatures"][languages[0]].items():
        console.print(f"{metric}: {signature}", style="dim", highlight=False, soft_wrap=True)


def _systems_table(figures: dict[str, Any], languages: list[str]) -> Table:
    where = f"{len(languages)} languages pooled" if len(languages) > 1 else languages[0]
    n = figures["systems"]["Model"][POOLED]["n"]
    table = Table(title=f"Test split, {where}, {n:,} examples", title_justify="left")
    headers = (
        "System",
        "ROUGE (95 %)",
        "lead of the model",
        "MRR (95 %)",
        "lead of the model",
        "P@1",
        "Dist-1",
        "Dist-2",
    )
    for column in headers:
        table.add_column(column, justify="left" if column == "System" else "right")
    for name, scopes in figures["systems"].items():
        row = scopes[POOLED]
        lead = figures["differences"].get(name, {}).get(POOLED)
        table.add_row(
            name,
            f"{row['weighted']:.4f} {_interval(row['weighted_interval'])}",
            _interval(lead["weighted"], sign=True) if lead else "",
            f"{row['mrr']:.3f} {_interval(row['mrr_interval'], 3)}",
            _interval(lead["mrr"], 3, sign=True) if lead else "",
            f"{row['p@1']:.3f}",
            f"{row['dist1']:.3f}",
            f"{row['dist2']:.3f}",
            style="bold" if name == "Model" else None,
        )
    table.caption = "ROUGE is weighted ROUGE of the best of three; MRR and P@1 in 1-of-100 pools; leads are paired."
    return table


def _languages_table(figures: dict[str, Any], languages: list[str]) -> Table:
    table = Table(title="Weighted ROUGE (MRR) by language", title_justify="left")
    table.add_column("System")
    for code in languages:
        table.add_column(code, justify="right")
    for name, scopes in figures["systems"].items():
        cells = [f"{scopes[code]['weighted']:.3f} ({scopes[code]['mrr']:.2f})".replace("0.", ".") for code in languages]
        table.add_row(name, *cells, style="bold" if name == "Model" else None)
    return table


def _interval(bounds: list[float], digits: int = 4, sign: bool = False) -> str:
    form = f"{{:{'+' if sign else ''}.{digits}f}}"
    return "[" + ", ".join(form.format(bound).replace("0.", ".", 1) for bound in bounds) + "]"
