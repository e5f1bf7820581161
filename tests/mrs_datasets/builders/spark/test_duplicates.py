"""The search for duplicates in steps finds what the search on one machine finds."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mrs_datasets.builders.pipeline.checked_files import write_array
from mrs_datasets.builders.reddit.cleaning.duplicates import EXACT, NEAR, duplicates_shard, keyed_pairs, signature_file
from mrs_datasets.builders.reddit.shards.pair_files import by_language, read_pairs, write_pairs
from mrs_datasets.builders.spark import duplicates
from tests.spark_steps import without_spark

WORDS = [f"word{number}" for number in range(40)]
LANGUAGES = ["en", "ja"]  # searched; a bucket has another one, too
BUCKETS = 5


def write_bucket(path: Path, rng: random.Random, pairs: int) -> Path:
    """Pairs of few long texts, some of them changed a little."""
    texts = [" ".join(random.Random(number).choices(WORDS, k=25)) for number in range(4)]

    def text() -> str:
        chosen = rng.choice(texts)
        return chosen if rng.random() < 0.4 else chosen.replace(rng.choice(WORDS), rng.choice(["", "other", "!"]))

    columns = {
        "message": pa.array([text() for _ in range(pairs)], pa.string()),
        "reply": pa.array([text() for _ in range(pairs)], pa.string()),
        "thread": pa.array([rng.randrange(3) for _ in range(pairs)], pa.uint64()),
        "order": pa.array([rng.randrange(200) for _ in range(pairs)], pa.uint64()),  # some are equal
        "language": pa.array([rng.choice(["en", "en", "ja", "xx"]) for _ in range(pairs)], pa.string()),
    }
    table = pa.table(columns).sort_by([("order", "ascending"), ("thread", "ascending")])
    table, signed = keyed_pairs(by_language(table))
    write_array(signature_file(path), signed)
    write_pairs(path, table)
    return path


@pytest.mark.parametrize("part_pairs", [1 << 22, 20])
def test_the_codes_are_those_of_one_machine(tmp_path: Path, monkeypatch, part_pairs: int) -> None:
    monkeypatch.setattr(duplicates, "PART_PAIRS", part_pairs)
    monkeypatch.setattr(duplicates, "COMPARED", 16)
    engine = without_spark(monkeypatch, duplicates)
    rng = random.Random(part_pairs)
    paths = [write_bucket(tmp_path / f"{n}.arrow", rng, pairs) for n, pairs in enumerate([60, 0, 90, 1, 70])]
    targets = [tmp_path / f"{number}.npy" for number in range(BUCKETS)]
    sizes = [sum(read_pairs(path, language, ["order"])[0].num_rows for path in paths) for language in LANGUAGES]
    rows = duplicates.marked_duplicates(engine, LANGUAGES, sizes, paths, targets)
    assert sorted(key for key, _, _ in rows) == list(range(BUCKETS))
    for language in LANGUAGES:
        counts = duplicates_shard(paths, language, tmp_path / f"{language}.npy", lambda _: None)
        assert min(counts[EXACT], counts[NEAR]) > 5
        found = []
        for path, target in zip(paths, targets, strict=True):
            table, start = read_pairs(path, language, ["order"])
            found.append(np.load(target)[start : start + table.num_rows])
        assert np.concatenate(found).tolist() == np.load(tmp_path / f"{language}.npy").tolist()
        told = [json.loads(data)[language] for _, _, data in rows]
        assert {reason: sum(each[reason] for each in told) for reason in (EXACT, NEAR)} == counts
