"""The figures of an audit as tables: for a terminal, as Markdown, as TSV."""

from __future__ import annotations

from typing import Any

from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.common.report.console import make_console

SHARES = ("question", "language", "pairs", "judged", "yes", "undecided", "share", "95 % interval", "undecided as yes")
AGREEMENT = ("question", "judged by two", "same answer", "kappa")
SHOWN = 20  # differences in the terminal; --json has all
WIDTH = 110


def print_tables(figures: dict[str, Any]) -> None:
    """Print shares, agreement, differences and remarks."""
    from rich.markup import escape

    console = make_console(WIDTH)
    console.print(escape(_title(figures)), soft_wrap=True)
    console.print(_table(SHARES, _share_rows(figures)))
    if figures["agreement"]:
        console.print(_table(AGREEMENT, _agreement_rows(figures)))
    if differences := figures["differences"]:
        console.print(f"Pairs on which annotators differ ({min(SHOWN, len(differences))} of {len(differences):,}):")
        for row in differences[:SHOWN]:
            console.print(escape(_difference(row)), soft_wrap=True)
    for line in _remarks(figures):
        console.print(escape(line), soft_wrap=True)
    console.print(escape(figures["signature"]), style="dim", soft_wrap=True)


def as_markdown(figures: dict[str, Any]) -> str:
    """The same tables for a page or a card."""
    parts = [_title(figures), markdown_table(list(SHARES), _share_rows(figures))]
    if figures["agreement"]:
        parts.append(markdown_table(list(AGREEMENT), _agreement_rows(figures)))
    return "\n\n".join([*parts, *_remarks(figures), f"`{figures['signature']}`"])


def as_tsv(figures: dict[str, Any]) -> str:
    """The shares with all digits: question, language, pairs, judged, yes, no, undecided, share, low, high, at_most."""
    names = ("question", "language", "pairs", "judged", "yes", "no", "undecided", "share")
    lines = ["\t".join([*names, "low", "high", "at_most"])]
    for row in figures["shares"]:
        ends = row["interval"] or (None, None)
        cells = [*(row[name] for name in names), *ends, row["at_most"]]
        lines.append("\t".join("" if cell is None else str(cell) for cell in cells))
    return "\n".join(lines)


def _title(figures: dict[str, Any]) -> str:
    who = "1 annotator" if figures["annotators"] == 1 else f"{figures['annotators']} annotators"
    version = figures["data"].get("revision") or figures["data"].get("content_hash")
    return f"{figures['data']['title']} ({figures['data']['id']}, {version}): {figures['items']:,} pairs, {who}"


def _share_rows(figures: dict[str, Any]) -> list[list[str]]:
    rows = []
    for row in figures["shares"]:
        counts = [f"{row[name]:,}" for name in ("pairs", "judged", "yes", "undecided")]
        low, high = row["interval"] or (None, None)
        between = "" if low is None else f"{_percent(low)} to {_percent(high)}"
        rows.append(
            [row["question"], row["language"], *counts, _percent(row["share"]), between, _percent(row["at_most"])]
        )
    return rows


def _agreement_rows(figures: dict[str, Any]) -> list[list[str]]:
    return [
        [
            row["question"],
            f"{row['judged_by_two']:,}",
            _percent(row["same"]),
            "undefined" if row["kappa"] is None else f"{row['kappa']:.3f}",
        ]
        for row in figures["agreement"]
    ]


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f} %"


def _difference(row: dict[str, Any]) -> str:
    answers = ", ".join(f"annotator {number} {answer}" for number, answer in row["answers"].items())
    return f"  item {row['item']} ({row['language']}/{row['split']}, row {row['row']}), {row['question']}: {answers}"


def _remarks(figures: dict[str, Any]) -> list[str]:
    paper = figures["paper"]
    top = _percent(paper["interval"][1])
    lines = [
        f"The paper (section {paper['section']}) found {paper['found']} toxic pairs among {paper['examples']} after "
        f"filtering; the 95 % interval of that ends at {top}."
    ]
    if figures["kind"] == "wide" and any(row["language"] == "all" for row in figures["shares"]):
        lines.append("all: shares weighted by the pairs of each language in the data.")
    if figures["annotators_missing"]:
        lines.append(f"Annotators left out, with missing or untouched sheets: {figures['annotators_missing']}.")
    if missing := sum(row["language"] != "all" and not row["judged"] for row in figures["shares"]):
        lines.append(f"Languages and questions without an answer: {missing}; `all` is without them.")
    for row in figures["by_annotator"] if figures["annotators"] > 1 else []:
        yes = ", ".join(f"{question} {counts['yes']:,}" for question, counts in row["answers"].items())
        unsure = sum(counts["unsure"] for counts in row["answers"].values())
        lines.append(f"Annotator {row['annotator']}: {row['judged']:,} pairs; yes: {yes}; unsure: {unsure:,}.")
    if figures["comments"]:
        lines.append(f"Comments: {len(figures['comments'])} (--json has them).")
    return lines


def _table(columns: tuple[str, ...], rows: list[list[str]]) -> Any:
    from rich.markup import escape
    from rich.table import Table

    table = Table()
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place > 1 else "left")
    for place, row in enumerate(rows):
        last = place + 1 == len(rows) or rows[place + 1][0] != row[0]
        table.add_row(*map(escape, row), end_section=last and columns == SHARES)
    return table
