"""The split by thread or by example: stable, 80/10/10, no thread on two sides; and the counts of replies."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.reddit import write as module
from mrs_datasets.builders.reddit.partition import mix
from mrs_datasets.builders.reddit.write import ReplyCounts, assign_splits, split_numbers
from mrs_datasets.prepared.responses import count_responses, response_table
from mrs_suggest.common.errors import InputError

KEYS = st.integers(0, 2**64 - 1)


def table(threads: list[int], orders: list[int]) -> pa.Table:
    columns = {"thread": pa.array(threads, pa.uint64()), "order": pa.array(orders, pa.uint64())}
    return pa.table({"message": [f"m{row}" for row in range(len(threads))], **columns})


def test_the_split_of_a_key_never_changes() -> None:
    keys = np.array([0, 1, 2, 42, 2**63, 2**64 - 1, 3012418862406195498], dtype=np.uint64)
    assert split_numbers(keys).tolist() == [0, 0, 0, 0, 0, 0, 2]
    assert mix(np.array([0], dtype=np.uint64)).tolist() == [0xE220A8397B1DCDAF]  # the first number of SplitMix64


@given(st.lists(st.tuples(st.integers(0, 5) | KEYS, KEYS), max_size=30))
def test_no_thread_crosses_and_the_rows_stay(keys: list[tuple[int, int]]) -> None:
    threads, orders = [thread for thread, _ in keys], [order for _, order in keys]
    pairs = table(threads, orders)
    split = assign_splits(pairs, "thread")
    assert split.drop_columns(["split"]).equals(pairs)
    assert len({*zip(threads, split["split"].to_pylist(), strict=True)}) == len(set(threads))
    assert assign_splits(table(orders, threads), "example")["split"].to_pylist() == split["split"].to_pylist()
    alone = [assign_splits(pairs.slice(row, 1), "thread")["split"][0].as_py() for row in range(len(keys))]
    assert alone == split["split"].to_pylist()


@given(st.integers(0, 2**63), st.sampled_from([1, 10, 64, 1 << 40]))
def test_the_shares_are_80_10_10_in_every_bucket_of_a_partition(start: int, step: int) -> None:
    with np.errstate(over="ignore"):
        keys = np.uint64(start) + np.arange(20_000, dtype=np.uint64) * np.uint64(step)
    counts = Counter(split_numbers(keys).tolist())
    assert [counts[place] / 20_000 for place in range(3)] == pytest.approx([0.8, 0.1, 0.1], abs=0.015)


# --- Counts of replies ----------------------------------------------------------------------------------------------

# The same few replies again and again, others once; characters beyond 16 bits sort differently in UTF-16.
REPLIES = st.text("ab 日\U0001f600\ufffd", max_size=3) | st.sampled_from(["yes", "no"]) | st.text(max_size=40)
BUDGET = 1 << 16


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("counts")


def texts(replies: list[str]) -> pa.Array:
    return pa.array(replies, pa.string())


def ordered(naive: Counter[str]) -> list[tuple[str, int]]:
    return sorted(naive.items(), key=lambda item: (-item[1], item[0]))


@settings(max_examples=60)
@given(
    st.lists(st.lists(REPLIES, max_size=12), max_size=12), st.integers(1, 4000), st.integers(0, 8), st.integers(1, 3)
)
def test_the_counts_are_those_of_a_counter(
    folder: Path, batches: list[list[str]], budget: int, most: int, min_count: int
) -> None:
    naive: Counter[str] = Counter()
    with pytest.MonkeyPatch.context() as patch, ReplyCounts(budget, folder) as counts:
        patch.setattr(module, "COUNT_PARTS", 3)
        patch.setattr(module, "_TABLE_BYTES", 0)
        for number, batch in enumerate(batches):
            counts.add(pa.chunked_array([texts(batch)] * 2))
            naive.update(batch * 2)
            if number % 5 == 0:  # it can be asked in between
                assert counts.frequent(1, 10**6) == ordered(naive)
        frequent = [item for item in ordered(naive) if item[1] >= min_count]
        assert counts.frequent(min_count, most) == frequent[:most]
        assert (counts.pairs, counts.distinct) == (naive.total(), len(naive))
    assert list(folder.iterdir()) == []


def test_more_replies_than_the_budget_has_room_for(tmp_path: Path) -> None:
    draw = random.Random(0)
    replies = [f"reply {int(draw.paretovariate(0.4)) % 100_000}" for _ in range(60_000)]
    naive = Counter(replies)
    with ReplyCounts(BUDGET, tmp_path) as counts:
        for start in range(0, len(replies), 1000):
            counts.add(texts(replies[start : start + 1000]))
        assert sum(map(len, counts._pieces)) > 2 * module.COUNT_PARTS
        assert counts._held_bytes <= BUDGET
        table = response_table(counts.frequent(2, 100), counts.pairs, counts.distinct)
    assert table.equals(count_responses(naive, 2, 100))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with ReplyCounts(BUDGET, tmp_path) as counts:
        monkeypatch.setattr(pa.ipc, "new_stream", full)
        with pytest.raises(InputError, match=r"cannot be written \(No space left on device\)"):
            counts.add(texts([f"reply number {number}" for number in range(5000)]))
