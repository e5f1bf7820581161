"""Files between the stages: pairs by language, and damage."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.pipeline.checked_files import read_pairs, write_batches
from mrs_datasets.builders.reddit.pairs import _by_language
from mrs_suggest.common.errors import InputError


def table(languages: list[str]) -> pa.Table:
    languages = sorted(languages)
    numbers = pa.array(range(len(languages)), pa.uint64())
    return pa.table({"order": numbers, "language": pa.array(languages, pa.string()), "reply": ["yes"] * len(languages)})


def write(path: Path, pairs: pa.Table) -> None:
    write_batches(path, pairs.schema, pairs.to_batches())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["de", "en", "pt-BR", "sv"]), max_size=12), st.integers(1, 5))
def test_a_language_is_read_whatever_the_batches(
    tmp_path_factory: pytest.TempPathFactory, languages: list[str], rows: int
) -> None:
    path = tmp_path_factory.mktemp("pairs") / "bucket.arrow"
    pairs = table(languages)
    write_batches(path, pairs.schema, pairs.to_batches(rows))
    for language in ("de", "en", "ja", "pt-BR", "sv"):
        expected = [n for n, found in enumerate(sorted(languages)) if found == language]
        found, first = read_pairs(path, language, ["reply", "order"])
        assert found.column_names == ["reply", "order"]
        assert found["order"].to_pylist() == expected
        assert not expected or first == expected[0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 7))
def test_one_changed_bit_is_told_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    path = tmp_path_factory.mktemp("pairs") / "bucket.arrow"
    write(path, table(["en", "en", "sv"] * 20))
    expected = read_pairs(path, "en", ["order", "reply"])
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-10:-6], "little") + 10  # Arrow's own, without a checksum
    content[place % (len(content) - footer)] ^= 1 << bit
    path.write_bytes(content)
    with suppress(InputError):
        assert read_pairs(path, "en", ["order", "reply"]) == expected


def test_many_texts_are_ordered_by_language_chunk_by_chunk() -> None:
    pairs = pa.concat_tables([table(["sv", "en"]), table(["de", "en"])])
    ordered = _by_language(pairs)
    assert ordered["language"].to_pylist() == ["de", "en", "en", "sv"]
    assert ordered["order"].to_pylist() == [0, 0, 1, 1]
    assert _by_language(table([])).num_rows == 0


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bucket.arrow"
    write(path, table(["en"] * 1000))
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InputError, match=r"bucket\.arrow: is damaged \(.*--resume"):
        read_pairs(path, "en", ["order"])
    with pytest.raises(InputError, match=r"none\.arrow: is damaged \("):
        read_pairs(tmp_path / "none.arrow", "en", ["order"])
