"""The paragraph of a card that tells when the model says nothing."""

from __future__ import annotations

from typing import Any

from mrs_suggest.common.report.cards import markdown_table

# Of real chat; measured for the shipped model.
REAL = (
    "The sample's messages are tamer than what people write, and the shares below do not carry over to real chat: "
    "the shipped model keeps silent at 0.5% of coffee orders, but at 11% of everyday English, French and Italian small "
    "talk and 14% of Japanese (1,500 messages each), and, with earlier lists, at 15% of messages from Reddit, nearly "
    "all of which could be answered."
)
WITHOUT = "All other figures of this card are measured without the guard."
TOLD = (
    "`mrs suggest` and `Suggester` say nothing, with a reason, where a message seems to be about self-harm, the "
    "exploitation of minors, blackmail with intimate pictures, threats, abuse, illness, death, war, the law, or a loss "
    "of work, home or partner, and never suggest slurs, private data, links, "
    "or dates and places that the message does not name (docs/guard.md; `--guard off`)."
)

_HALVES = {
    "held_out": "the half that it was not made from",
    "earlier": "a half that it was not made from, whose figures had been read before",
    "build": "the half that it was built on",
}


def guard_paragraph(record: dict[str, Any]) -> str:
    """What the guard does, with its figures where `run.json` has them."""
    guard = record.get("guard")
    if guard is None:
        return f"{TOLD} {WITHOUT} It has not been measured with this model."
    rows = [_row(code, figures) for code, figures in guard["languages"].items()]
    total = {key: sum(figures[key] for figures in guard["languages"].values()) for key in _keys(guard)}
    table = markdown_table(
        ["language", "sensitive", "recall", "right reason", "false alarms, sheet", "false alarms, sample"],
        [*rows, _row("all", total)],
    )
    half = _HALVES[guard["half"]]
    return (
        f"{TOLD} {WITHOUT} {REAL} On a sheet of messages ({half}) it is silent for these shares of the sensitive "
        "messages, of everyday ones, many of which only sound grave, and of the embedded sample's test messages:\n\n"
        + table
    )


def _keys(guard: dict[str, Any]) -> list[str]:
    return list(next(iter(guard["languages"].values())))


def _row(name: str, figures: dict[str, int]) -> list[str]:
    return [
        name,
        f"{figures['sensitive']}",
        _share(figures["vetoed"], figures["sensitive"]),
        _share(figures["named"], figures["sensitive"]),
        _of(figures["lookalike_alarms"], figures["lookalikes"]),
        _of(figures["alarms"], figures["everyday"]),
    ]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else ""


def _of(part: int, whole: int) -> str:
    return f"{part} of {whole:,} ({part / whole:.1%})" if whole else ""
