"""Simulated members: known accepted translations with weights, hypotheses whose scores go with acceptance.

A prompt has a difficulty, so that its scores lie as a whole higher or lower; a member finds an accepted translation the
more surely the more weight it has, and gives wrong ones that score lower on the whole, as real n-best lists do.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from mrs_suggest.staple.hypotheses import COLUMNS, Hypotheses

LANGUAGE, SPLIT = "qaa", "validation"
WORDS = [first + last for first in ("ba", "ce", "di", "fo", "gu", "la", "me") for last in ("n", "r", "lo", "ti", "sa")]
Accepted = Mapping[str, Mapping[str, float]]


def accepted_translations(prompts: int, seed: int) -> dict[str, dict[str, float]]:
    """id -> translation -> weight, a tall head and a long tail as in the task's data."""
    random = np.random.default_rng(seed)
    found: dict[str, dict[str, float]] = {}
    for number in range(prompts):
        texts = {_text(random) for _ in range(int(random.integers(2, 25)))}
        raw = random.pareto(1.0, len(texts)) + 0.05
        weights = raw / raw.sum()
        found[f"prompt_{number:04d}"] = dict(zip(sorted(texts), weights.tolist(), strict=True))
    return found


def members(accepted: Accepted, count: int, seed: int, wrong: int = 25, data: str = "simulated") -> Hypotheses:
    """Hypotheses of several members; wrong translations are partly shared among them."""
    random = np.random.default_rng(seed)
    columns: list[list[Any]] = [[] for _ in COLUMNS]
    for key, weights in accepted.items():
        level, pool = float(random.normal(0, 0.8)), [_text(random) for _ in range(wrong * 2)]
        for member in range(count):
            found: dict[str, float] = {}
            for text, weight in weights.items():
                if random.random() < 0.35 + 0.6 * weight**0.25:
                    found[text] = level + 1.2 * np.log(weight) + float(random.normal(0, 0.7))
            for text in random.choice(pool, wrong, replace=False).tolist():
                if text not in weights:
                    found.setdefault(text, level - 4.5 + float(random.normal(0, 1.5)))
            ranked = sorted(found.items(), key=lambda item: -item[1])
            for rank, (text, score) in enumerate(ranked, 1):
                row = (key, f"say {key}", f"member{member}", rank, text, score, len(text.split()) + 1)
                for column, value in zip(columns, row, strict=True):
                    column.append(value)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, COLUMNS, strict=True)]
    return Hypotheses(
        pa.Table.from_arrays(arrays, schema=COLUMNS), LANGUAGE, {key: f"say {key}" for key in accepted},
        {"id": data, "split": SPLIT}, {f"member{n}": {"seed": n} for n in range(count)}, {}, ("decode|simulated",),
    )  # fmt: skip


def write_data(accepted: Accepted, folder: Path, split: str = SPLIT, language: str = LANGUAGE) -> Path:
    """A prepared folder with these translations."""
    rows = [
        {
            "id": key,
            "prompt": f"say {key}",
            "reference": max(weights, key=lambda text: weights[text]),
            "translations": [{"text": text, "weight": weight} for text, weight in weights.items()],
        }
        for key, weights in accepted.items()
    ]
    place = folder / "data" / language
    place.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows), place / f"{split}-00000-of-00001.parquet")
    (folder / "report.json").write_text(
        json.dumps({"data_set": "staple" if language == "pt" else "synthetic-staple", "name": "simulated"})
    )
    return folder


def _text(random: np.random.Generator) -> str:
    return " ".join(random.choice(WORDS, int(random.integers(2, 5))).tolist())
