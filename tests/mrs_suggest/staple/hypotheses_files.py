"""Hypotheses that the tests of this package share."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from mrs_suggest.staple.hypotheses import COLUMNS, Hypotheses, schema_of

PROMPTS = {"prompt_a": "yes, of course", "prompt_b": "no", "prompt_c": "maybe"}
Row = tuple[str, str, int, str, float | None]  # id, member, rank, text, log-probability


def hypotheses(
    rows: Sequence[Row], features: Mapping[str, Sequence[float | None]] | None = None, **facts: Any
) -> Hypotheses:
    """Hypotheses of `PROMPTS`; each has as many tokens as words, and an end token."""
    named = features or {}
    table = [(row[0], PROMPTS[row[0]], *row[1:], len(row[3].split()) + 1) for row in rows]
    columns: list[Sequence[Any]] = [[row[place] for row in table] for place in range(7)]
    arrays = [pa.array(column, kind.type) for column, kind in zip(columns, COLUMNS, strict=True)]
    arrays += [pa.array(column, pa.float64()) for column in named.values()]
    meaning = {name: f"test {name}" for name in named}
    defaults = {
        "language": "pt", "prompts": PROMPTS, "data": {"id": "toy", "content_hash": "0", "split": "validation"},
        "members": {row[1]: {"run": row[1]} for row in rows}, "features": meaning, "steps": ("decode|toy",),
    }  # fmt: skip
    return Hypotheses(pa.Table.from_arrays(arrays, schema=schema_of(named)), **{**defaults, **facts})


ROWS: list[Row] = [
    ("prompt_a", "one", 1, "sim, claro", -0.5),
    ("prompt_a", "one", 2, "claro que sim", -1.5),
    ("prompt_a", "two", 1, "Sim, claro!", -0.7),
    ("prompt_c", "one", 1, "talvez", -0.1),
]
