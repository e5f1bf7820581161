"""Splits, leakage and response sets from steps are those of one machine."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from mrs_datasets.builders.pipeline.checked_files import write_array
from mrs_datasets.builders.reddit.settings import make_settings
from mrs_datasets.builders.reddit.shards.pair_files import by_language, write_pairs
from mrs_datasets.builders.reddit.survey import COLUMNS
from mrs_datasets.builders.reddit.survey import survey as of_one_machine
from mrs_datasets.builders.spark import survey
from tests.spark_steps import without_spark

LANGUAGES = ("en", "ja")


def write_bucket(path: Path, rng: random.Random, pairs: int) -> Path:
    columns = {
        "message": pa.array(["m"] * pairs, pa.string()),
        "reply": pa.array([f"reply {rng.randrange(1 + rng.randrange(40))}" for _ in range(pairs)], pa.string()),
        **{
            name: pa.array([rng.randrange(99) for _ in range(pairs)], pa.uint64())
            for name in ("thread", "order", "parent")
        },
        "language": pa.array([rng.choice(LANGUAGES) for _ in range(pairs)], pa.string()),
    }
    write_pairs(path, by_language(pa.table(columns)))
    return path


@pytest.mark.parametrize("profile", ["paper", "clean"])
@pytest.mark.parametrize("part_pairs", [1 << 22, 50])
def test_all_facts_are_those_of_one_machine(tmp_path: Path, monkeypatch, profile: str, part_pairs: int) -> None:
    monkeypatch.setattr(survey, "PART_PAIRS", part_pairs)
    settings = make_settings(profile, min_reply_count=3, max_responses=15)
    rng = random.Random(part_pairs)
    sizes = [200, 0, 150]
    paths = tuple(write_bucket(tmp_path / f"{n}.arrow", rng, pairs) for n, pairs in enumerate(sizes))
    codes = tuple(tmp_path / f"{number}.npy" for number in range(3)) if profile == "clean" else ()
    for path, pairs in zip(codes, sizes, strict=False):
        write_array(path, np.array([rng.randrange(3) for _ in range(pairs)], np.uint8))
    buckets = survey.Buckets(paths, codes)
    pairs = dict.fromkeys(LANGUAGES, 200)
    found = survey.survey_languages(without_spark(monkeypatch, survey), pairs, buckets, settings)
    for language in LANGUAGES:
        expected = of_one_machine((buckets.kept(n, language, COLUMNS) for n in range(3)), settings, tmp_path / "runs")
        got = found.found[language]
        assert (got.rows, got.leakage) == (expected.rows, expected.leakage)
        assert 5 < expected.responses.num_rows <= 15
        assert got.responses.equals(expected.responses)
        assert {split: sum(found.rows[language, split]) for split in got.rows} == expected.rows
