"""Duplicates over all buckets of a language, from numbers alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.pipeline.checked_files import read_codes, read_pairs, write_array, write_batches
from mrs_datasets.builders.reddit.cleaning.near_duplicates import Arrival
from mrs_datasets.builders.reddit.duplicates import (
    EXACT,
    EXACT_CODE,
    KEPT_CODE,
    KEY,
    NEAR,
    NEAR_CODE,
    RULES,
    duplicates_shard,
    keyed_pairs,
    mark_duplicates,
    signature_file,
)
from mrs_suggest.common.errors import InputError

LONG = "I have been looking for a good recipe for lentil soup since last winter, does anybody here know one?"
SIDES = st.sampled_from(["yes", "Yes!", "no", LONG, LONG + " Thanks", LONG.lower()])


def table(*rows: tuple[str, str, str, int]) -> pa.Table:
    """Language, message, reply and order, sorted as the build sorts them."""
    language, message, reply, order = zip(*rows, strict=True) if rows else ((), (), (), ())
    columns = {
        "message": pa.array(message, pa.string()),
        "reply": pa.array(reply, pa.string()),
        "thread": pa.array([0] * len(rows), pa.uint64()),
        "order": pa.array(order, pa.uint64()),
        "language": pa.array(language, pa.string()),
    }
    return pa.table(columns).sort_by([("language", "ascending"), ("order", "ascending")])


def write_bucket(path: Path, *rows: tuple[str, str, str, int]) -> Path:
    pairs, signed = keyed_pairs(table(*rows))
    write_array(signature_file(path), signed)
    write_batches(path, pairs.schema, pairs.to_batches())
    return path


def codes_of(paths: list[Path], language: str) -> dict[int, int]:
    """`order` -> code."""
    target = paths[0].parent / f"{language}.npy"
    counts = duplicates_shard(paths, language, target, lambda _: None)
    orders = np.concatenate([read_pairs(path, language, ["order"])[0]["order"].to_numpy() for path in paths])
    codes = read_codes(target, len(orders))
    assert counts == {EXACT: (codes == EXACT_CODE).sum(), NEAR: (codes == NEAR_CODE).sum()}
    return dict(zip(orders.tolist(), codes.tolist(), strict=True))


def test_the_first_by_order_stays_whichever_bucket_it_is_in(tmp_path: Path) -> None:
    one = write_bucket(
        tmp_path / "1.arrow",
        ("en", "Where are you?", "At home", 5),
        ("sv", "Where are you?", "At home", 9),
        ("en", LONG, "I do!", 2),
        ("en", LONG, "I don't", 6),
    )
    two = write_bucket(
        tmp_path / "2.arrow", ("en", "where are you", "AT HOME!", 3), ("en", LONG + " Thanks", "I do", 4)
    )
    assert codes_of([one, two], "en") == {5: EXACT_CODE, 3: KEPT_CODE, 2: KEPT_CODE, 4: NEAR_CODE, 6: KEPT_CODE}
    assert codes_of([one, two], "sv") == {9: KEPT_CODE}
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "1.arrow", "1.signatures.npy", "2.arrow", "2.signatures.npy", "en.npy", "sv.npy",
    ]  # fmt: skip


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["en", "ja"]), SIDES, SIDES), min_size=1, max_size=14), st.integers(1, 4))
def test_the_buckets_do_not_matter(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]], buckets: int
) -> None:
    folder = tmp_path_factory.mktemp("buckets")
    numbered = [(*row, (7 * place) % 15) for place, row in enumerate(rows)]
    whole = [write_bucket(folder / "whole.arrow", *numbered)]
    split = [write_bucket(folder / f"{n}.arrow", *numbered[n::buckets]) for n in range(buckets)]
    for language in {row[0] for row in rows}:
        assert codes_of(whole, language) == codes_of(split, language)


def test_equal_pairs_have_equal_keys_up_to_case_and_punctuation() -> None:
    pairs, signed = keyed_pairs(
        table(("en", "Hi there", "Yes", 1), ("en", "hi, there!", "yes.", 2), ("en", "yes", "hi", 3))
    )
    first, second, third = pairs[KEY].to_pylist()
    assert first == second != third
    assert signed.shape == (RULES.bands, 3, 2, RULES.rows)
    assert keyed_pairs(table())[1].shape == (RULES.bands, 0, 2, RULES.rows)


def test_no_pairs() -> None:
    none = np.empty(0, np.uint64)
    assert mark_duplicates(none, Arrival(none, none), keyed_pairs(table())[1], RULES).shape == (0,)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def of_another_bucket(path: Path) -> None:
    write_array(path, keyed_pairs(table(("en", "a", "b", 1)))[1])


@pytest.mark.parametrize("harm", [Path.unlink, cut, of_another_bucket, lambda path: path.write_bytes(b"")])
def test_a_damaged_file_of_signatures_is_named(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    path = write_bucket(tmp_path / "1.arrow", ("en", "a", "b", 1), ("en", "c", "d", 2))
    harm(signature_file(path))
    with pytest.raises(InputError, match=r"1\.signatures\.npy: is damaged \(.*--resume"):
        duplicates_shard([path], "en", tmp_path / "en.npy", lambda _: None)
    assert not list(tmp_path.glob(".*"))


def test_codes_of_another_build_are_refused(tmp_path: Path) -> None:
    write_array(tmp_path / "en.npy", np.zeros(3, np.uint8))
    with pytest.raises(InputError, match="3 entries for 4 pairs"):
        read_codes(tmp_path / "en.npy", 4, "pairs")
