"""What a run prints: every system, its lead, one row per language, the paper's figures; several runs in one table."""

import copy
from typing import Any

import pytest

from mrs_suggest.evaluation.tables import print_comparison, print_results, same_tests

NAMES = ["Model", "Random", "Most frequent", "TF-IDF"]
PAPER = {"table": 3, "family": "retrieval", "model": "mbert", "setting": "mt", "language": "es", "rouge": 0.0187}


def run_of(languages: list[str], ranks: bool = True) -> dict[str, Any]:
    row: dict[str, Any] = {
        "n": 1234, "weighted": 0.1234, "weighted_interval": [0.1, 0.2], "ceiling": 0.9876, "dist1": 0.3, "dist2": 0.4,
    }  # fmt: skip
    lead = {"weighted": [-0.01, 0.02]}
    if ranks:
        row |= {"mrr": 0.5, "mrr_interval": [0.4, 0.6], "p@1": 0.25}
        lead["mrr"] = [0.1, 0.2]
    scopes = ["pooled", *languages]
    figures = {
        "systems": {name: {scope: dict(row) for scope in scopes} for name in NAMES},
        "differences": {name: dict.fromkeys(scopes, lead) for name in NAMES[1:]},
        "interval_method": "studentised bootstrap, by message",
        "signatures": {code: {"mrs_rouge": f"mrs_rouge|lang:{code}"} for code in languages},
        "paper": [],
    }
    if ranks:
        figures["pool_size"] = 77
    else:
        figures["systems"]["Model"]["pooled"]["perplexity"] = 98.76
    return {
        "trainer": "retrieval" if ranks else "generation",
        "metrics": figures,
        "milliseconds": dict(zip(NAMES, (1.5, 0.01, 0.02, 2.25), strict=True)),
        "data": {"content_hash": "abc"},
    }


def rows_of(printed: str, name: str) -> list[str]:
    return [line for line in printed.splitlines() if line.startswith(f"│ {name} ")]


@pytest.mark.parametrize("languages", [["es"], ["es", "ja"]])
def test_the_four_rows(languages: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    print_results(run_of(languages))
    printed = capsys.readouterr().out
    for name in NAMES:
        assert len(rows_of(printed, name)) == 1
    assert "1,234 examples; ceiling .9876" in printed
    (row,) = rows_of(printed, "TF-IDF")
    for figure in (".1234", ".500", "-.010", "+.020", "+.100", ".250", ".300", ".400", "2.25"):
        assert figure in row
    assert "1-of-77 pools" in printed
    assert "mrs_rouge|lang:es" in printed
    assert ("2 languages pooled" in printed) == (len(languages) == 2)
    assert bool(rows_of(printed, "ja")) == (len(languages) == 2)
    assert "paper" not in printed


def test_where_there_is_no_interval_the_table_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(["es"])
    run["metrics"]["systems"]["Model"]["pooled"]["weighted_interval"] = None
    run["metrics"]["differences"]["Random"]["pooled"] = {"weighted": [0.0, 0.0], "mrr": [0.1, 0.2]}
    print_results(run)
    printed = " ".join(capsys.readouterr().out.split())
    assert printed.count("(no interval: all values are equal)") == 2
    assert "None" not in printed


def test_the_papers_figures_stand_below(capsys: pytest.CaptureFixture[str]) -> None:
    run = run_of(["es"])
    run["metrics"]["paper"] = [{**PAPER, "dist1": 0.0424, "dist2": 0.0886}]
    print_results(run)
    printed = capsys.readouterr().out
    assert "The paper's figures" in printed
    (row,) = [line for line in printed.splitlines() if "mbert" in line]
    for cell in ("3", "es", ".0187", ".0424", ".0886"):
        assert cell in row


# --- several runs


def test_models_of_two_runs_stand_above_one_set_of_baselines(capsys: pytest.CaptureFixture[str]) -> None:
    one, other = run_of(["es"]), run_of(["es"], ranks=False)
    other["metrics"]["systems"]["Model"]["pooled"]["weighted"] = 0.4321
    other["milliseconds"]["Model"] = 45.6
    print_comparison({"a": one, "b": other})
    printed = capsys.readouterr().out
    (retrieval,), (generation,) = rows_of(printed, "retrieval (a)"), rows_of(printed, "generation (b)")
    assert all(figure in retrieval for figure in (".1234", ".500", "1.50"))
    assert all(figure in generation for figure in (".4321", "98.8", "45.60"))
    for name in NAMES[1:]:
        assert len(rows_of(printed, name)) == 1
    assert "1,234 examples" in printed


@pytest.mark.parametrize("what", ["data", "languages", "examples", "test_hash"])
def test_runs_of_different_tests_are_told_apart(what: str) -> None:
    one = run_of(["es"])
    other = copy.deepcopy(one) if what != "languages" else run_of(["ja"])
    assert same_tests({"a": one, "b": copy.deepcopy(one)})
    if what == "data":
        other["data"]["content_hash"] = "def"  # of runs that did not note their test examples
    if what == "examples":
        other["metrics"]["systems"]["Model"]["pooled"]["n"] = 99
    if what == "test_hash":
        one["data"]["test_hash"], other["data"]["test_hash"] = "11", "22"
    assert not same_tests({"a": one, "b": other})


def ranked(seed: int, mrr: float, pools: str) -> dict[str, Any]:
    run = run_of(["es"])
    figures = run["metrics"]
    figures["signatures"]["es"]["response_ranking"] = f"response_ranking|pool:77|seed:{seed}|lang:es"
    figures["systems"]["Model"]["pooled"]["mrr"] = mrr
    for name in NAMES[1:]:
        for row in figures["systems"][name].values():
            row["mrr"] = 0.057
    return {**run, "metrics": {**figures, "pools": {"es": pools}}}


@pytest.mark.parametrize("other", [ranked(7, 0.318, "cafe"), ranked(42, 0.318, "beef")])
def test_mrr_of_different_pools_does_not_stand_side_by_side(
    other: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    print_comparison({"c": run_of(["es"], ranks=False), "a": ranked(42, 0.333, "cafe"), "b": other})
    printed = capsys.readouterr().out
    assert ".333" in rows_of(printed, "retrieval (a)")[0]
    assert ".057" in rows_of(printed, "Random")[0]
    assert "Baselines: as a measured them" in printed
    assert ".318" not in printed
    print_comparison({"a": ranked(42, 0.333, "cafe"), "b": ranked(42, 0.318, "cafe")})
    assert ".318" in rows_of(capsys.readouterr().out, "retrieval (b)")[0]


def test_perplexities_of_other_vocabularies_do_not_stand_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    one = run_of(["es"], ranks=False)
    one["metrics"]["signatures"]["es"]["reply_perplexity"] = "reply_perplexity|tok:a"
    other = copy.deepcopy(one)
    print_comparison({"a": one, "b": other})
    assert capsys.readouterr().out.count("98.8") == 2
    other["metrics"]["signatures"]["es"]["reply_perplexity"] = "reply_perplexity|tok:b"
    print_comparison({"a": one, "b": other})
    assert capsys.readouterr().out.count("98.8") == 1
