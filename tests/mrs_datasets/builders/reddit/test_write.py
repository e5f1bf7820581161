"""The split by thread or by example: stable, 80/10/10, and no thread on two sides."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.builders.reddit.cleaning.columns import mix
from mrs_datasets.builders.reddit.write import assign_splits, split_numbers
from mrs_datasets.prepared.schema import SPLITS

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


def test_all_names_are_splits_and_an_empty_table_has_none() -> None:
    split = assign_splits(table([0] * 50, list(range(50))), "example")["split"]
    assert set(split.to_pylist()) == set(SPLITS)
    assert split.type == pa.string()
    assert assign_splits(table([], []), "thread")["split"].to_pylist() == []
