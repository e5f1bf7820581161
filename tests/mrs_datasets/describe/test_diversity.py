"""Indices of a language sample's diversity against Table 2 of the XCOPA paper, and tables of typological features."""

import gzip
import math
from pathlib import Path

import pytest

from mrs_datasets.describe.diversity import (
    BENCHMARKS,
    family_index,
    geography_index,
    language_vectors,
    read_uriel,
    typology_index,
)
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import KNOWN
from tests.cases import cases

TABLE_2 = cases(__file__, "TABLE_2")
TABLE = "code,S_SVO,S_SOV,S_TONE\nest,1,0,0\ntam,0,1,\ncmn,1.0,0.0,1\n"


def sample(codes: str) -> list:
    return [KNOWN[code] for code in codes.split()]


def saved(folder: Path, text: str | bytes) -> Path:
    path = folder / "table.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8"))
    return path


def cut(value: float) -> float:
    return math.floor(100 * value + 1e-9) / 100


@pytest.mark.parametrize("name", TABLE_2)
def test_family_and_geography_are_the_figures_of_table_2(name: str) -> None:
    benchmark = BENCHMARKS[name]
    assert [benchmark.family, benchmark.geography, benchmark.typology] == TABLE_2[name]
    languages = [KNOWN[code] for code in benchmark.codes]
    assert [cut(family_index(languages)), cut(geography_index(languages))] == TABLE_2[name][:2]


@pytest.mark.parametrize("index", [family_index, geography_index])
@pytest.mark.parametrize(("codes", "told"), [("", "at least one language"), ("et sw et", "et 2 times")])
def test_no_language_and_one_twice_are_refused(index, codes: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        index(sample(codes))


def test_typology_is_the_mean_entropy_of_the_known_values() -> None:
    known = [{"a": 1, "b": 0}, {"a": 0, "b": 0}, {"a": 0, "b": 0}, {"a": 1, "b": 1}]
    quarter = 0.25 * 2 + 0.75 * math.log2(4 / 3)
    assert typology_index(known) == pytest.approx((1 + quarter) / 2)
    # `c`: only one language has a value, entropy 0; `d`: none has, it does not count
    gaps = [{"a": 1, "c": None, "d": None}, {"a": 0, "c": 1, "d": math.nan}, {"a": None}]
    assert typology_index(gaps) == 0.5


def test_a_table_is_read_and_its_languages_found_by_either_code(tmp_path: Path) -> None:
    path = saved(tmp_path, TABLE + "qu,?,--,NaN\n")
    table = read_uriel(path)
    assert table["tam"] == {"S_SVO": 0, "S_SOV": 1, "S_TONE": None}
    assert table["cmn"] == {"S_SVO": 1, "S_SOV": 0, "S_TONE": 1}
    assert set(table["qu"].values()) == {None}
    vectors = language_vectors(table, sample("zh qu et"), path)
    assert vectors == [table["cmn"], table["qu"], table["est"]]
    third = math.log2(3) / 3 + 2 / 3 * math.log2(1.5)  # S_SVO and S_SOV over est, tam, cmn; S_TONE over est, cmn
    assert typology_index(language_vectors(table, sample("et ta zh"), path)) == pytest.approx((2 * third + 1) / 3)


@pytest.mark.parametrize(
    "text",
    [
        TABLE.replace(",", "\t"),
        TABLE.replace("est", '"EST"').replace("code", '" Code"'),
        TABLE.replace("\n", "\n\n").removesuffix("\n\n"),
        TABLE.replace(",", " , "),
    ],
    ids=["tabs", "quotes and capitals", "empty lines", "blanks"],
)
def test_the_ways_in_which_programs_write_a_table_are_one(tmp_path: Path, text: str) -> None:
    expected = read_uriel(saved(tmp_path, TABLE))
    assert read_uriel(saved(tmp_path, text)) == expected
    packed = tmp_path / "table.csv.gz"
    packed.write_bytes(gzip.compress(text.encode("utf-8")))
    assert read_uriel(packed) == expected


@pytest.mark.parametrize(("text", "told"), cases(__file__, "test_a_bad_table_is_refused_in_one_sentence_with_its_line"))
def test_a_bad_table_is_refused_in_one_sentence_with_its_line(tmp_path: Path, text: str | bytes, told: str) -> None:
    with pytest.raises(InputError, match=told) as caught:
        read_uriel(saved(tmp_path, text))
    assert "table.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_all_languages_that_a_table_lacks_are_named(tmp_path: Path) -> None:
    path = saved(tmp_path, TABLE)
    with pytest.raises(InputError, match=r"table\.csv: .* Swahili \(swh or sw\), Quechua \(qve or qu\)"):
        language_vectors(read_uriel(path), sample("et sw qu"), path)
    with pytest.raises(InputError, match=r"no line for Thai \(tha or th\);"):
        language_vectors(read_uriel(path), sample("et th"), path)
