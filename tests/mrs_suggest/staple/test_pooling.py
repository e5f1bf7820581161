"""Pooling: each translation once, as the metric compares it, with what the members say of it."""

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics.translations_f1 import read_paper
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.hypotheses import Hypotheses, read_hypotheses, write_hypotheses
from mrs_suggest.staple.pooling import pool
from tests.cases import cases
from tests.mrs_suggest.staple.hypotheses_files import PROMPTS, ROWS, Row, hypotheses

HERE = Path("a.parquet")


def pooled(found: Hypotheses) -> list[dict[str, object]]:
    return pool([(HERE, found)]).table.to_pylist()


def test_a_pool_has_each_translation_once_with_the_members_agreement() -> None:
    first, second, third = pooled(hypotheses(ROWS))
    assert [first["text"], second["text"], third["text"]] == ["sim, claro", "claro que sim", "talvez"]
    assert [first["rank"], second["rank"], third["rank"]] == [1, 2, 1]
    assert (first["votes"], first["best_rank"], first["mean_rank"], first["reciprocal_rank"]) == (2, 1, 1, 1)
    assert (second["votes"], second["mean_rank"], second["reciprocal_rank"]) == (1, 2, 0.25)
    # Member two did not find it: it counts with the lowest probability that two gave any for the prompt.
    assert first["log_prob"] == pytest.approx(math.log((math.exp(-0.5) + math.exp(-0.7)) / 2))
    assert second["log_prob"] == pytest.approx(math.log((math.exp(-1.5) + math.exp(-0.7)) / 2))
    # The third prompt is unknown to member two, which does not count there.
    assert third["log_prob"] == pytest.approx(-0.1)
    assert first["log_prob_per_token"] == pytest.approx(-0.5 / 3)
    assert first["mean_log_prob_per_token"] == pytest.approx((-0.5 - 0.7) / 2 / 3)
    assert second["gap_to_best"] == pytest.approx(-1.5 / 4 + 0.5 / 3)
    shares = [math.exp(first["log_prob"]), math.exp(second["log_prob"])]
    assert first["probability_in_list"] == pytest.approx(shares[0] / sum(shares))
    assert third["probability_in_list"] == 1


def test_forms_of_one_member_count_once_and_add_their_probabilities() -> None:
    rows: list[Row] = [("prompt_b", "one", 1, "Não!", -1.0), ("prompt_b", "one", 2, "não", -2.0)]
    (row,) = pooled(hypotheses(rows))
    assert (row["text"], row["votes"], row["mean_rank"]) == ("Não!", 1, 1)
    assert row["log_prob"] == pytest.approx(math.log(math.exp(-1) + math.exp(-2)))
    alone: list[Row] = [("prompt_b", "one", 1, "long one here", -3.0), ("prompt_b", "one", 2, "short", -1.0)]
    assert [row["text"] for row in pooled(hypotheses(alone))] == ["long one here", "short"]
    both = pooled(hypotheses([*alone, ("prompt_b", "two", 1, "short", -1.0)]))
    assert [row["text"] for row in both] == ["short", "long one here"]


TEXTS = st.text(st.sampled_from("aAbB é!.¿Σςİ"), min_size=1, max_size=4).filter(str.strip)


@given(st.lists(st.tuples(st.sampled_from(["prompt_a", "prompt_c"]), st.sampled_from(["x", "y"]), TEXTS), max_size=12))
def test_a_pool_is_what_the_metric_sees(drawn: list[tuple[str, str, str]]) -> None:
    ranks: dict[tuple[str, str], int] = {}
    rows: list[Row] = []
    for key, member, text in sorted(drawn, key=lambda row: row[:2]):
        ranks[key, member] = ranks.get((key, member), 0) + 1
        rows.append((key, member, ranks[key, member], text, -float(len(rows))))
    result = pooled(hypotheses(rows, members={"x": {}, "y": {}}))
    for key in PROMPTS:
        found = [row for row in result if row["id"] == key]
        seen = [read_paper(str(row["text"])) for row in found]
        assert len(set(seen)) == len(seen)
        assert set(seen) == {read_paper(text) for other, _, text in drawn if other == key}
        for row, read in zip(found, seen, strict=True):
            alike = [other for other in rows if other[0] == key and read_paper(other[3]) == read]
            assert row["votes"] == len({member for _, member, *_ in alike})
            assert row["text"] == max(alike, key=lambda other: other[4] or 0)[3]
        assert [row["rank"] for row in found] == list(range(1, len(found) + 1))


def test_files_of_one_pool(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one = hypotheses([row for row in ROWS if row[1] == "one"])
    two = hypotheses([row for row in ROWS if row[1] == "two"])
    write_hypotheses(one, tmp_path / "a.parquet")
    write_hypotheses(two, tmp_path / "b.parquet")
    out = tmp_path / "pooled.parquet"
    assert main(["staple", "combine", str(tmp_path / "a.parquet"), str(tmp_path / "b.parquet"), "--out", str(out)]) == 0
    assert "3 translations of 3 prompts, pooled from 2 members" in capsys.readouterr().out
    found = read_hypotheses(out)
    assert found.members == {"pool": {"members": {"one": {"run": "one"}, "two": {"run": "two"}}}}
    expected = pooled(hypotheses(ROWS))
    assert [{name: row[name] for name in expected[0]} for row in found.table.to_pylist()] == expected
    assert "consensus" in found.features, "features of texts are added"


@pytest.mark.parametrize(("changes", "sentence"), cases(__file__, "test_what_cannot_be_pooled_is_refused"))
def test_what_cannot_be_pooled_is_refused(changes: dict[str, object], sentence: str) -> None:
    found = replace(hypotheses(ROWS), **changes)
    with pytest.raises(InputError, match=rf"^b\.parquet: .*{sentence}"):
        pool([(HERE, hypotheses(ROWS)), (Path("b.parquet"), found)])
