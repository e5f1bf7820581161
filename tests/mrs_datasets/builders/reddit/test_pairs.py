"""Replies joined with the comments that they answer, every comment accounted for; and the language of the pairs."""

import random
import re
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.pipeline.stages import summed
from mrs_datasets.builders.reddit import pairs as module
from mrs_datasets.builders.reddit import partition as partitioning
from mrs_datasets.builders.reddit.pairs import (
    CYCLE,
    DUPLICATE,
    MISSING,
    PAIRS,
    POST,
    SELF,
    identify_pairs,
    in_groups,
    join_buckets,
)
from mrs_datasets.builders.reddit.partition import PARTITION, partition, stable_hashes
from mrs_datasets.builders.reddit.plan import KEPT, LOW_SCORE, UNKNOWN_LANGUAGE

Row = tuple[str, str, str, str, int]
Pair = tuple[str, str, int, int, int, int]
NONE = {DUPLICATE: 0, POST: 0, MISSING: 0, SELF: 0, CYCLE: 0}
IDS = st.sampled_from(["a", "b", "c", "d", "aa", "A", "é", ""])
LINKS = st.sampled_from(["t3_a", "t3_b", "t3_c", "t3_"])
PARENTS = st.one_of(IDS.map("t1_{}".format), LINKS, st.sampled_from(["", "a", "t1", "t5_a"]))
ROWS = st.tuples(IDS, PARENTS, LINKS, st.text("xyz\n日", max_size=5), st.integers(0, 2_000_000_000))
MONTHS = st.lists(st.lists(ROWS, max_size=25), min_size=1, max_size=3)


def as_batch(rows: list[Row]) -> pa.RecordBatch:
    columns = [[row[column] for row in rows] for column in range(len(PARTITION))]
    arrays = [pa.array(column, kind) for column, kind in zip(columns, PARTITION.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=PARTITION)


def joined(months: list[list[Row]], buckets: int, batch_rows: int = 7) -> tuple[list[pa.Table], dict[str, int]]:
    """The pairs of every bucket, and all counts summed."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitioning, "CHUNK_BYTES", 600)
        files = []
        for number, rows in enumerate(months):
            files.append(Path(folder) / f"{number}.arrow")
            batches = [as_batch(rows[first : first + batch_rows]) for first in range(0, len(rows), batch_rows)]
            partition(batches, files[-1], buckets)
        results = [join_buckets(files, range(bucket, bucket + 1), buckets) for bucket in range(buckets)]
        together, counts = join_buckets(files, range(buckets), buckets)
        assert as_pairs([together]) == as_pairs([table for table, _ in results])
        assert counts == summed(unpaired for _, unpaired in results)
    total = {"comments": 0, "pairs": 0, **NONE}
    for table, unpaired in results:
        total["pairs"] += table.num_rows
        total["comments"] += table.num_rows + sum(unpaired.values())
        for name, value in unpaired.items():
            total[name] += value
    return [table for table, _ in results], total


def test_small_buckets_are_joined_together_and_large_ones_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_GROUPS", 2)
    assert in_groups(np.array([5, 1, 1, 0, 3, 0])) == [range(1), range(1, 6)]
    assert in_groups(np.array([0, 0, 1, 1, 9, 1])) == [range(4), range(4, 5), range(5, 6)]
    assert in_groups(np.zeros(3, int)) == [range(3)]
    monkeypatch.setattr(module, "GROUP_COMMENTS", 2)
    assert in_groups(np.ones(5, int)) == [range(2), range(2, 4), range(4, 5)]


def as_pairs(tables: list[pa.Table]) -> list[Pair]:
    return [tuple(row.values()) for table in tables for row in table.to_pylist()]


def hashed(text: str) -> int:
    return int(stable_hashes(pa.array([text]))[0])


def steps_back(comments: dict[tuple[str, str], Row], start: tuple[str, str]) -> int:
    """How many parents up a comment meets itself; 0 for never."""
    place = start
    for steps in range(1, len(comments) + 1):
        parent = comments[place][1]
        place = (start[0], parent[3:])
        if not parent.startswith("t1_") or place not in comments:
            return 0
        if place == start:
            return steps
    return 0


def by_dictionary(months: list[list[Row]]) -> tuple[list[Pair], dict[str, int]]:
    """The definition: the first comment of an id in a thread counts, parents are looked up in the thread."""
    first: dict[tuple[str, str], Row] = {}
    total = {"comments": 0, "pairs": 0, **NONE}
    for row in (row for rows in months for row in rows):
        total["comments"] += 1
        total[DUPLICATE] += (row[2], row[0]) in first
        first.setdefault((row[2], row[0]), row)
    pairs = []
    for comment, parent, link, reply, created in first.values():
        message = first.get((link, parent[3:])) if parent.startswith("t1_") else None
        circle = steps_back(first, (link, comment))
        if message and circle:
            total[SELF if circle == 1 else CYCLE] += 1
        elif message:
            day = datetime.fromtimestamp(created, UTC)
            pairs.append(
                (message[3], reply, hashed(link), hashed(comment), hashed(message[0]), day.year * 100 + day.month)
            )
        else:
            total[POST if parent.startswith("t3_") else MISSING] += 1
    total["pairs"] = len(pairs)
    return pairs, total


@settings(max_examples=40, deadline=None)
@given(MONTHS, st.integers(1, 6), st.integers(1, 9))
def test_the_join_is_that_of_a_dictionary(months: list[list[Row]], buckets: int, batch_rows: int) -> None:
    tables, total = joined(months, buckets, batch_rows)
    expected, expected_total = by_dictionary(months)
    assert sorted(as_pairs(tables)) == sorted(expected)
    assert total == expected_total
    for table in tables:
        assert table.schema == PAIRS
        keys = list(zip(table["order"].to_pylist(), table["thread"].to_pylist(), strict=True))
        assert keys == sorted(keys)


@given(st.lists(ROWS, max_size=25))
def test_ids_with_the_same_hash_are_told_apart(rows: list[Row]) -> None:
    comments = pa.Table.from_batches([as_batch(rows)])
    links = comments["link_id"].combine_chunks().dictionary_encode().indices.to_numpy()
    hashes = stable_hashes(comments["id"].combine_chunks())
    expected, counts = module._matched_rows(comments, links, hashes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "stable_hashes", lambda values, _=0: np.zeros(len(values), np.uint64))
        found, again = module._matched_rows(comments, links, np.zeros_like(hashes))
    assert found.tolist() == expected.tolist()
    assert again == counts


def made_thread_rows(seed: int, count: int) -> list[Row]:
    """Comments with different ids; parents before or after them, or nowhere."""
    draw = random.Random(seed)
    rows = []
    for i in range(count):
        thread = i % 5
        parent = f"t1_c{draw.randrange(thread, 2 * count, 5)}" if draw.random() < 0.8 else f"t3_p{thread}"
        rows.append((f"c{i}", parent, f"t3_p{thread}", f"body {i}", 10**9))
    return rows


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 1000), st.randoms(use_true_random=False), st.integers(1, 5))
def test_neither_the_order_of_the_comments_nor_their_months_change_the_pairs(
    seed: int, shuffling: random.Random, buckets: int
) -> None:
    rows = made_thread_rows(seed, 60)
    expected, total = joined([rows], buckets)
    assert total["pairs"] > 0
    shuffled = shuffling.sample(rows, len(rows))
    cut = shuffling.randrange(len(rows))
    assert joined([shuffled[:cut], shuffled[cut:]], buckets) == (expected, total)


def test_every_comment_is_accounted_for() -> None:
    january = [
        ("post1", "t3_p", "t3_p", "first", 1514764800),
        ("a", "t1_post1", "t3_p", "answer", 1514764801),
        ("a", "t1_post1", "t3_p", "answer, again", 1514764802),
        ("lost", "t1_removed", "t3_p", "to nobody", 1514764803),
        ("elsewhere", "t1_post1", "t3_q", "in another thread", 1514764804),
    ]
    february = [
        ("late", "t1_a", "t3_p", "a month later", 1517443200),
        ("early", "t1_late", "t3_p", "before what it answers", 1514764799),
    ]
    tables, total = joined([january, february], 1)
    assert sorted((message, reply, month) for message, reply, _, _, _, month in as_pairs(tables)) == [
        ("a month later", "before what it answers", 201712),
        ("answer", "a month later", 201802),
        ("first", "answer", 201801),
    ]
    assert total == {"comments": 7, "pairs": 3, **NONE, DUPLICATE: 1, POST: 1, MISSING: 2}


@pytest.mark.parametrize("length", [1, 2, 3, 64, 1000])
def test_circles_make_no_pairs_and_what_hangs_on_them_does(length: int) -> None:
    """As many answers as there are steps to the circle, and a thread without one, stay."""
    circle = [(f"c{i}", f"t1_c{(i + 1) % length}", "t3_p", f"circle {i}", 0) for i in range(length)]
    tail = [(f"d{i}", f"t1_d{i - 1}" if i else "t1_c0", "t3_p", f"tail {i}", 0) for i in range(30)]
    long = [(f"e{i}", f"t1_e{i - 1}" if i else "t3_p", "t3_p", f"long {i}", 0) for i in range(2000)]
    tables, total = joined([[*tail, *circle], long], 1, 500)
    assert total == {
        "comments": length + 2030, "pairs": 2029, **NONE, POST: 1, SELF if length == 1 else CYCLE: length
    }  # fmt: skip
    assert not [reply for _, reply, *_ in as_pairs(tables) if reply.startswith("circle")]


def test_no_id_leaves_the_join() -> None:
    rows = [
        ("SECRETID1", "t3_SECRETPOST", "t3_SECRETPOST", "hello", 1),
        ("SECRETID2", "t1_SECRETID1", "t3_SECRETPOST", "hi", 2),
    ]
    (table,), _ = joined([rows], 1)
    assert table.num_rows == 1
    assert "SECRET" not in str(table.to_pydict())
    assert all(not field.metadata for field in table.schema)


def test_times_that_no_calendar_has_do_no_harm() -> None:
    rows = [("a", "t3_p", "t3_p", "m", 0)]
    times = [-1, -(2**63), 2**63 - 1, 1_514_764_799, 1_514_764_800]
    rows += [(f"r{i}", "t1_a", "t3_p", str(created), created) for i, created in enumerate(times)]
    (table,), _ = joined([rows], 1)
    found = dict(zip(table["reply"].to_pylist(), table["month"].to_pylist(), strict=True))
    assert [found[str(created)] for created in times] == [197001, 197001, 999912, 201712, 201801]


# --- Language -------------------------------------------------------------------------------------------------------

WORDS = st.text("ab \n\r\u2028é日", max_size=5)


class Stub:
    """Names the language that the text begins with, with the probability that follows: `en 0.9 ...`."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def identify(self, texts: Sequence[str], /) -> list[tuple[str, float]]:
        self.texts += texts
        return [(language, float(score)) for language, score, *_ in (text.split() for text in texts)]


def identified(pairs: list[tuple[str, str]], bound: float = 0.7) -> tuple[pa.Table, Counter[tuple[str, str]], Stub]:
    message, reply = (pa.array([pair[side] for pair in pairs], pa.string()) for side in (0, 1))
    rows = pa.array(range(len(pairs)), pa.uint64())
    stub = Stub()
    found, outcomes = identify_pairs(pa.table({"message": message, "reply": reply, "order": rows}), stub, bound)
    assert found.column_names == ["message", "reply", "order", "language"]
    assert found["language"].type == pa.string()
    return found, outcomes, stub


@given(
    st.lists(
        st.tuples(st.sampled_from(["en", "ja", "und"]), st.sampled_from([0.0, 0.3, 0.7, 0.71, 1.0]), WORDS, WORDS),
        max_size=20,
    ),
    st.integers(1, 8),
)
def test_every_pair_is_kept_or_counted_whatever_the_batches(
    rows: list[tuple[str, float, str, str]], batch: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "BATCH_TEXTS", batch)
        found, outcomes, stub = identified([(f"{code} {score} {text}", reply) for code, score, text, reply in rows])
    expected = [number for number, row in enumerate(rows) if row[0] != "und" and row[1] > 0.7]
    assert found["order"].to_pylist() == expected
    assert found["language"].to_pylist() == [rows[number][0] for number in expected]
    naive: Counter[tuple[str, str]] = Counter()
    for number, (language, *_) in enumerate(rows):
        reason = UNKNOWN_LANGUAGE if language == "und" else LOW_SCORE
        naive[language, KEPT if number in expected else reason] += 1
    assert outcomes == naive
    assert not any("\n" in text or "\r" in text for text in stub.texts)


TEXTS = st.lists(st.sampled_from(["", "a", "<url>", "<b>", "<ip>", "\r\n", "\n", "日本", " "]), max_size=4).map("".join)


@given(st.lists(st.tuples(TEXTS, TEXTS), max_size=9), st.integers(0, 4))
def test_line_ends_and_masks_are_spaces_to_the_model(pairs: list[tuple[str, str]], start: int) -> None:
    sides = [pa.array([pair[side] for pair in pairs], pa.string()) for side in range(2)]
    batch = pa.RecordBatch.from_arrays(sides, ["message", "reply"])[start:]
    expected = [re.sub(r"[\r\n]|<(?:url|user|email|phone|ip)>", " ", " ".join(pair)) for pair in pairs[start:]]
    assert module._words(batch) == expected


@pytest.mark.parametrize(
    ("message", "reply", "seen"),
    [
        ("sv 0.9 hej\r\npå dig", "tack\n\tdetsamma", "sv 0.9 hej  på dig tack \tdetsamma"),
        ("sv 0.9 se <url>, <user>", "tack <email> <phone><ip> < url >", "sv 0.9 se  ,   tack      < url >"),
    ],
)
def test_the_language_is_that_of_one_line_without_masks(message: str, reply: str, seen: str) -> None:
    found, _, stub = identified([(message, reply)])
    assert stub.texts == [seen]
    assert found["message"].to_pylist() == [message]
