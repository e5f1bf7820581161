"""The split by hash: stable, 80/10/10; the parts of a language; and the counts of replies."""

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.pipeline.stages import write_batches
from mrs_datasets.builders.reddit import write as module
from mrs_datasets.builders.reddit.partition import mix
from mrs_datasets.builders.reddit.write import (
    COUNTED,
    best_replies,
    counted_runs,
    frequent_replies,
    split_numbers,
)
from mrs_datasets.prepared.responses import count_responses, response_table


def test_the_split_of_a_key_never_changes() -> None:
    keys = np.array([0, 1, 2, 42, 2**63, 2**64 - 1, 3012418862406195498], dtype=np.uint64)
    assert split_numbers(keys).tolist() == [0, 0, 0, 0, 0, 0, 2]
    assert mix(np.array([0], dtype=np.uint64)).tolist() == [0xE220A8397B1DCDAF]  # the first number of SplitMix64


@given(st.integers(0, 2**63), st.sampled_from([1, 10, 64, 1 << 40]))
def test_the_shares_are_80_10_10_in_every_bucket_of_a_partition(start: int, step: int) -> None:
    with np.errstate(over="ignore"):
        keys = np.uint64(start) + np.arange(20_000, dtype=np.uint64) * np.uint64(step)
    counts = Counter(split_numbers(keys).tolist())
    assert [counts[place] / 20_000 for place in range(3)] == pytest.approx([0.8, 0.1, 0.1], abs=0.015)


# --- Counts of replies ----------------------------------------------------------------------------------------------

# The same few replies again and again, others once; characters beyond 16 bits sort differently in UTF-16.
REPLIES = st.text("ab 日\U0001f600\ufffd", max_size=3) | st.sampled_from(["yes", "no"]) | st.text(max_size=40)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("counts")


def counted(folder: Path, of_part: list[list[pa.Array]], least: int, most: int) -> tuple[list[tuple[str, int]], int]:
    """The most frequent replies of all parts, and the number of different ones, as the stage counts them."""
    parts = len(of_part)
    files = [folder / f"{number}.arrow" for number in range(parts)]
    for file, replies in zip(files, of_part, strict=True):
        write_batches(file, COUNTED, counted_runs(replies, parts))
    found = [frequent_replies(files, part, parts, least, most) for part in range(parts)]
    return best_replies([table for table, _ in found], most), sum(distinct for _, distinct in found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(st.lists(REPLIES, max_size=12), max_size=5), min_size=1, max_size=4), st.integers(1, 4000),
    st.integers(0, 8), st.integers(1, 3),
)  # fmt: skip
def test_the_counts_are_those_of_a_counter(
    folder: Path, parts: list[list[list[str]]], budget: int, most: int, least: int
) -> None:
    naive = Counter(reply for part in parts for batch in part for reply in batch)
    arrays = [[pa.array(batch, pa.string()) for batch in part] for part in parts]
    ordered = sorted(naive.items(), key=lambda item: (-item[1], item[0]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "RUN_BYTES", budget)
        patch.setattr(module, "_TABLE_BYTES", 0)
        found, distinct = counted(folder, arrays, least, most)
    assert found == [item for item in ordered if item[1] >= least][:most]
    assert distinct == len(naive)


def test_more_replies_than_the_memory_has_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    draw = random.Random(0)
    replies = [f"reply {int(draw.paretovariate(0.4)) % 100_000}" for _ in range(60_000)]
    monkeypatch.setattr(module, "RUN_BYTES", 1 << 16)
    runs = list(counted_runs([pa.array(replies[:30_000]), pa.array(replies[30_000:])], 3))
    assert len(runs) >= 3 * 3  # several runs of three parts
    assert max(batch.nbytes for batch in runs) < 1 << 16
    batches = [pa.array(replies[start : start + 1000]) for start in range(0, len(replies), 1000)]
    frequent, distinct = counted(tmp_path, [batches[::2], batches[1::2]], 2, 100)
    naive = Counter(replies)
    assert response_table(frequent, len(replies), distinct).equals(count_responses(naive, 2, 100))


def test_small_batches_are_measured_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A language with few pairs has a small batch in every bucket: measuring all that are held again is quadratic."""
    measured = []

    class Overhead(int):
        def __radd__(self, other: int) -> int:
            measured.append(other)
            return other + int(self)

    monkeypatch.setattr(module, "_TABLE_BYTES", Overhead(1024))
    assert sum(batch.num_rows for batch in counted_runs([pa.array([f"{n}"]) for n in range(100)], 2)) == 100
    assert len(measured) == 100
