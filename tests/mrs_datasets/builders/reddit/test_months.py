"""Which comments stay, and the reason for every dropped one."""

from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.builders.reddit import months as rules
from mrs_datasets.builders.reddit.months import FilterCounts, filter_batch
from mrs_datasets.builders.reddit.plan import Settings
from mrs_datasets.builders.reddit.read import COMMENTS
from tests.cases import cases

PAPER, CLEAN = Settings(), Settings(drop_bots=True)
BOUNDED = Settings(min_characters=3, max_characters=5)
ROW = {
    "id": "zzc1", "parent_id": "t1_zzc0", "link_id": "t3_zzp1", "body": "Sure!", "score": 1, "is_bot": False,
    "deleted_later": False, "created": 0,
}  # fmt: skip


def batch_of(*changes: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([ROW | change for change in changes], COMMENTS)


def reason(change: dict[str, Any], settings: Settings) -> str:
    counts = FilterCounts()
    kept = filter_batch(batch_of(change), settings, counts)
    assert counts.seen == 1 == kept.num_rows + counts.dropped.total()
    return next(iter(counts.dropped), "")


@pytest.mark.parametrize(
    ("change", "settings", "expected"), cases(__file__, "test_the_first_reason_that_applies_counts")
)
def test_the_first_reason_that_applies_counts(change: dict[str, Any], settings: dict[str, Any], expected: str) -> None:
    assert reason(change, Settings(**settings)) == expected


def test_samples_are_the_first_ones_of_each_reason_over_all_batches() -> None:
    counts = FilterCounts()
    first = batch_of({"body": "a", "score": 0}, {"body": "stays"}, {"body": "[deleted]"})
    second = batch_of({"body": "b", "score": 0}, {"body": "c", "score": 0})
    for batch in (first, second, second):
        filter_batch(batch, replace(PAPER, keep_rejects=2), counts)
    assert counts.samples == {rules.LOW_SCORE: ["a", "b"], rules.DELETED: ["[deleted]"]}
    assert counts.dropped == {rules.LOW_SCORE: 5, rules.DELETED: 1}
    silent = FilterCounts()
    filter_batch(first, PAPER, silent)
    assert silent.samples == {}


ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "body": st.sampled_from(
                ["", " ", "ok", "[removed]", "[ Removed by Reddit ]", "[deleted] x", "a long answer"]
            ),
            "score": st.none() | st.integers(-2, 3),
            "is_bot": st.booleans(),
            "deleted_later": st.booleans(),
        }
    ),
    max_size=8,
)
SETTINGS = st.builds(
    lambda score, bots, low, high: Settings(
        min_score=score, drop_bots=bots, min_characters=low, max_characters=high, keep_rejects=100
    ),
    st.integers(-1, 2), st.booleans(), st.none() | st.integers(0, 4), st.none() | st.integers(4, 9),
)  # fmt: skip


@given(ROWS, SETTINGS, st.integers(0, 3))
def test_a_batch_is_filtered_as_its_rows_are_one_by_one(
    changes: list[dict[str, Any]], settings: Settings, start: int
) -> None:
    batch = batch_of(*({"id": f"{i}"} | change for i, change in enumerate(changes))).slice(min(start, len(changes)))
    counts, changes = FilterCounts(), changes[start:]
    before = batch.to_pylist()
    kept = filter_batch(batch, settings, counts)
    reasons = [reason(change, settings) for change in changes]
    assert kept.schema == COMMENTS
    assert kept.to_pylist() == [row for row, why in zip(before, reasons, strict=True) if not why]
    assert {why: len(bodies) for why, bodies in counts.samples.items()} == dict(counts.dropped)
    assert sorted(counts.dropped.elements()) == sorted(filter(None, reasons))
