"""Which comments stay, and the reason for every one that goes."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.builders.reddit.cleaning import filter as rules
from mrs_datasets.builders.reddit.cleaning.filter import CLEAN, PAPER, FilterCounts, Rules, filter_batch
from mrs_datasets.builders.reddit.read import COMMENTS

ROW = {
    "id": "zzc1",
    "parent_id": "t1_zzc0",
    "link_id": "t3_zzp1",
    "body": "Sure!",
    "score": 1,
    "is_bot": False,
    "deleted_later": False,
    "created": 0,
}


def batch_of(*changes: dict[str, Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([ROW | change for change in changes], COMMENTS)


def reason(change: dict[str, Any], profile: Rules = PAPER) -> str:
    counts = FilterCounts()
    kept = filter_batch(batch_of(change), profile, counts)
    assert counts.seen == 1 == counts.kept + counts.dropped.total()
    assert kept.num_rows == counts.kept
    return next(iter(counts.dropped), "")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ""),
        ({"body": "[removed]"}, rules.REMOVED),
        ({"body": "[removed] by the moderators"}, rules.REMOVED),
        ({"body": "[ Removed by Reddit ]"}, rules.REMOVED),
        ({"body": "[ Removed by Reddit ] on account of its rules"}, rules.REMOVED),
        ({"body": "It says [ Removed by Reddit ]"}, ""),
        ({"body": "[deleted]\n"}, rules.DELETED),
        ({"body": "It says [removed] there"}, ""),
        ({"body": "[Removed]"}, ""),
        ({"deleted_later": True}, rules.DELETED_LATER),
        ({"score": 0}, rules.LOW_SCORE),
        ({"score": -7}, rules.LOW_SCORE),
        ({"score": None}, ""),
        ({"body": ""}, rules.EMPTY),
        ({"body": " \n\u3000\xa0"}, rules.EMPTY),
        ({"is_bot": True}, ""),
        ({"body": "[removed]", "score": -7, "deleted_later": True, "is_bot": True}, rules.REMOVED),
        ({"score": -7, "deleted_later": True}, rules.DELETED_LATER),
        ({"score": -7, "body": ""}, rules.LOW_SCORE),
    ],
)
def test_the_rules_of_the_paper(change: dict[str, Any], expected: str) -> None:
    assert reason(change) == expected


def test_clean_drops_bots_after_everything_else() -> None:
    assert reason({"is_bot": True}, CLEAN) == rules.BOT
    assert reason({"is_bot": True, "body": ""}, CLEAN) == rules.EMPTY
    assert reason({}, CLEAN) == ""


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("abc", ""),
        ("  ab  ", rules.TOO_SHORT),
        ("ééé", ""),
        ("abcde", ""),
        ("abcdef", rules.TOO_LONG),
        (" ", rules.EMPTY),
    ],
)
def test_bounds_count_characters_without_outer_white_space(body: str, expected: str) -> None:
    assert reason({"body": body}, Rules(min_characters=3, max_characters=5)) == expected


def test_the_least_score_is_an_option() -> None:
    assert reason({"score": 4}, Rules(min_score=5)) == rules.LOW_SCORE
    assert reason({"score": 5}, Rules(min_score=5)) == ""
    assert reason({"score": -9}, Rules(min_score=-9)) == ""


def test_samples_are_the_first_ones_of_each_reason_over_all_batches() -> None:
    counts = FilterCounts()
    first = batch_of({"body": "a", "score": 0}, {"body": "stays"}, {"body": "[deleted]"})
    second = batch_of({"body": "b", "score": 0}, {"body": "c", "score": 0})
    for batch in (first, second, second):
        filter_batch(batch, PAPER, counts, keep_rejects=2)
    assert counts.samples == {rules.LOW_SCORE: ["a", "b"], rules.DELETED: ["[deleted]"]}
    assert counts.dropped == {rules.LOW_SCORE: 5, rules.DELETED: 1}
    silent = FilterCounts()
    filter_batch(first, PAPER, silent)
    assert silent.samples == {}


def test_a_slice_and_an_empty_batch() -> None:
    batch = batch_of({"body": "[removed]"}, {}, {"score": 0}, {"id": "last"})
    counts = FilterCounts()
    assert filter_batch(batch.slice(1), PAPER, counts)["id"].to_pylist() == ["zzc1", "last"]
    assert filter_batch(batch.slice(4), PAPER, counts).num_rows == 0
    assert vars(counts) == {"seen": 3, "kept": 2, "dropped": {rules.LOW_SCORE: 1}, "samples": {}}


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
RULES = st.builds(
    Rules, st.integers(-1, 2), st.booleans(), st.none() | st.integers(0, 4), st.none() | st.integers(2, 9)
)


@given(ROWS, RULES)
def test_a_batch_is_filtered_as_its_rows_are_one_by_one(changes: list[dict[str, Any]], profile: Rules) -> None:
    batch, counts = batch_of(*({"id": f"{i}"} | change for i, change in enumerate(changes))), FilterCounts()
    before = batch.to_pylist()
    kept = filter_batch(batch, profile, counts, keep_rejects=100)
    reasons = [reason(change, profile) for change in changes]
    assert kept.schema == COMMENTS
    assert kept.to_pylist() == [row for row, why in zip(before, reasons, strict=True) if not why]
    assert {why: len(bodies) for why, bodies in counts.samples.items()} == dict(counts.dropped)
    assert sorted(counts.dropped.elements()) == sorted(filter(None, reasons))
    assert batch.to_pylist() == before
