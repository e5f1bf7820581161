"""`mrs compare` on folders of finished runs: rows, languages, means, leads, files, and what it refuses."""

import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrs_metrics.corpus import unpaired_test
from mrs_metrics.power import detectable_difference
from mrs_metrics.significance import holm, paired_bootstrap_interval
from mrs_suggest.common.text.predictions import predictions_name, read_predictions, write_predictions
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.evaluation.pairing import paired_interval, scored_run
from tests import warm_python
from tests.cases import cases
from tests.command import Result, refused
from tests.hub.server import LoopbackHub
from tests.mrs_suggest.evaluation.runs.conftest import write_record

MakeRun = Callable[..., Path]
Compare = Callable[..., dict[str, Any]]
Told = Callable[..., Result]


@pytest.fixture
def told(mrs_here: Told) -> Told:
    """Return a function that runs the command and gives its code and output."""
    return partial(mrs_here, "compare")


@pytest.fixture
def compared(told: Told) -> Compare:
    """Return a function that runs the command and reads its JSON."""

    def run(*words: object) -> dict[str, Any]:
        code, out, err = told(*words, "--format", "json")
        assert code == 0, err
        found: dict[str, Any] = json.loads(out)
        return found

    return run


def figures(found: dict[str, Any], row: str, metric: str = "weighted") -> dict[str, dict[str, Any]]:
    """A row's fields by language."""
    own = next(one for one in found["rows"] if one["name"] == row)
    return {one["language"]: one for one in own["figures"] if one["metric"] == metric}


def record_of(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return record


def change(folder: Path, how: Callable[[dict[str, Any]], object]) -> None:
    """Change a run's record."""
    record = record_of(folder)
    how(record)
    write_record(folder, record)


def sign(folder: Path, old: str, new: str) -> None:
    """Change the signature of weighted ROUGE in English."""
    record = record_of(folder)
    texts = record["metrics"]["signatures"]["en"]
    texts["mrs_rouge"] = re.sub(old, new, texts["mrs_rouge"])
    write_record(folder, record)


# --- rows and columns


def test_runs_of_other_languages_stand_side_by_side(make_run: MakeRun, compared: Compare) -> None:
    one, other, both = make_run("one", "en"), make_run("other", "es"), make_run("both", "en es", known=0.9)
    found = compared(one, other, both)
    assert [row["name"] for row in found["rows"]] == ["one", "other", "both"]
    assert list(figures(found, "one")) == ["en"]
    assert list(figures(found, "other")) == ["es"]
    assert list(figures(found, "both")) == ["en", "es"]
    own = record_of(one)["metrics"]["systems"]["Model"]["en"]
    assert figures(found, "one")["en"]["values"] == {"42": own["weighted"]}
    assert figures(found, "one")["en"]["intervals"] == {"42": own["weighted_interval"]}
    assert figures(found, "one", "mrr")["en"]["mean"] == own["mrr"]
    assert [(lead["row"], lead["language"]) for lead in found["leads"]] == [("both", "en")]
    assert found["metrics"][0]["shared_languages"] == {"": []}
    assert not any(row["means_over_shared_languages"] for row in found["rows"]), "no mean over different languages"


def test_the_mean_is_over_the_languages_that_all_rows_have(make_run: MakeRun, compared: Compare, told: Told) -> None:
    runs = make_run("all", "en es fr", known=0.7), make_run("two", "en es")
    found = compared(*runs)
    (mean,) = [one for one in found["rows"][0]["means_over_shared_languages"] if one["metric"] == "weighted"]
    assert mean["languages"] == ["en", "es"]
    assert mean["mean"] == pytest.approx(np.mean([figures(found, "all")[code]["mean"] for code in ("en", "es")]))
    _, out, _ = told(*runs)
    assert "mean of en es" in out
    assert "mean of all" not in out
    assert "Most frequent" not in out, "the runs were tested on other languages"
    _, out, _ = told(runs[1], make_run("three", "en es", known=0.1))
    assert "mean of all 2" in out
    assert "Most frequent" in out, "the same tests: the baselines' table comes first"


def test_seeds_are_one_row_with_mean_and_deviation(make_run: MakeRun, compared: Compare, told: Told) -> None:
    runs = [make_run(f"cells/mono-{seed}/run", known=0.6, seed=seed) for seed in (42, 43, 44)]
    other = make_run("cells/low-42/run", known=0.2, learning_rate=1.0)
    found = compared(*runs, other)
    assert [row["name"] for row in found["rows"]] == ["mono", "low-42"]
    assert [run["seed"] for run in found["rows"][0]["runs"]] == [42, 43, 44]
    values = [record_of(run)["metrics"]["systems"]["Model"]["es"]["weighted"] for run in runs]
    own = figures(found, "mono")["es"]
    assert list(own["values"].values()) == values
    assert own["mean"] == pytest.approx(np.mean(values))
    assert own["deviation"] == pytest.approx(np.std(values, ddof=1))
    assert figures(found, "low-42")["es"]["deviation"] is None
    _, out, _ = told(*runs, other)
    assert "mono (3 seeds)" in out
    assert "±" in out
    apart = compared(*runs, other, "--by-run")
    assert [row["name"] for row in apart["rows"]] == ["mono-42", "mono-43", "mono-44", "low-42"]
    again = compared(runs[0], f"{runs[0]}/", runs[1])
    assert [len(row["runs"]) for row in again["rows"]] == [2], "a folder that is named twice is one run"
    change(runs[2], lambda record: record.update(commit="def"))
    assert compared(*runs)["warnings"] == [
        "mono-42, mono-43, mono-44: one row of runs of different commits (abc, def)."
    ]


def test_languages_can_be_joined(make_run: MakeRun, compared: Compare) -> None:
    runs = [make_run(f"mono-{code}-{seed}", code, seed=seed) for code in ("en", "es") for seed in (42, 43)]
    both = make_run("multi-42", "en es", setting="multilingual")
    found = compared(*runs, both, "--join-languages")
    assert [row["name"] for row in found["rows"]] == ["mono", "multi-42"]
    assert list(figures(found, "mono")) == ["en", "es"]
    assert found["metrics"][0]["shared_languages"] == {"": ["en", "es"]}
    mean = found["rows"][0]["means_over_shared_languages"][0]
    assert mean["values"]["43"] == pytest.approx(
        np.mean([figures(found, "mono")[code]["values"]["43"] for code in ("en", "es")])
    )
    assert [(lead["row"], lead["language"]) for lead in found["leads"]] == [("multi-42", "en"), ("multi-42", "es")]
    assert len(compared(*runs, both)["rows"]) == 3


# --- leads


def test_leads_are_paired_over_examples_and_averaged_over_seeds(make_run: MakeRun, compared: Compare) -> None:
    low = [make_run(f"low-{seed}", known=0.2, seed=seed) for seed in (42, 43)]
    high = [make_run(f"high-{seed}", known=0.8, seed=seed, steps=2) for seed in (42, 43)]
    found = compared(*low, *high)
    (lead,) = [one for one in found["leads"] if one["language"] == "en"]
    ours, theirs = ([scored_run(run, "en").weighted for run in runs] for runs in (high, low))
    wanted = paired_bootstrap_interval(np.mean(ours, axis=0), np.mean(theirs, axis=0), seed=EVALUATION_SEED)
    assert lead["interval"] == list(wanted)
    assert lead["difference"] == pytest.approx(np.mean(ours) - np.mean(theirs))
    assert lead["interval"][0] < lead["difference"] < lead["interval"][1]
    alone = paired_bootstrap_interval(ours[1], theirs[1], seed=EVALUATION_SEED)
    first = paired_interval([high[0]], [low[0]], ["en"])
    assert first is not None
    assert lead["by_seed"] == {"42": list(first[0]), "43": list(alone)}
    least = detectable_difference(np.mean(ours, axis=0) - np.mean(theirs, axis=0))[0]
    assert lead["detectable_difference"] == pytest.approx(least)
    turned = compared(*low, *high, "--over", f"{high[1]}/")
    assert turned["over"] == "high"
    assert next(one for one in turned["leads"] if one["language"] == "en")["difference"] == -lead["difference"]


def test_gaps_of_languages_are_tested_by_message_and_corrected(
    make_run: MakeRun, compared: Compare, told: Told
) -> None:
    run = make_run("many", "en es fr")
    path = run / predictions_name("es")  # it knows no Spanish answer
    rows = [replace(row, suggestions=("no", "nope")) for row in read_predictions(path)]
    write_predictions(path, rows)
    english, spanish, french = (scored_run(run, code) for code in ("en", "es", "fr"))
    mean = float(spanish.weighted.mean())
    change(run, lambda record: record["metrics"]["systems"]["Model"]["es"].update(weighted=mean))
    spanish_gap, french_gap = compared(run, "--gaps", "en")["gaps"]
    assert (spanish_gap["language"], spanish_gap["over"], french_gap["language"]) == ("es", "en", "fr")
    assert spanish_gap["difference"] == pytest.approx(spanish.weighted.mean() - english.weighted.mean())
    for gap, one in ((spanish_gap, spanish), (french_gap, french)):
        interval, p = unpaired_test(one.weighted, english.weighted, one.units, english.units)
        assert (gap["interval"], gap["p"]) == (interval.ends, p)
    assert [spanish_gap["p_holm"], french_gap["p_holm"]] == holm([spanish_gap["p"], french_gap["p"]])
    assert spanish_gap["p_holm"] < 0.05 < french_gap["p_holm"]
    printed = told(run, "--gaps", "en")[1]
    assert "Gap in weighted ROUGE over en" in printed
    assert re.search(r"many +│ -\.\d{4}\* \[-\.\d{4}, -\.\d{4}\] +│ [-+]\.\d{4} \[", printed)
    assert "by message (studentised bootstrap); *: p < 0.05 in an unpaired test, after Holm's" in " ".join(
        printed.split()
    )


def test_other_rows_of_a_language_are_told_and_not_compared(make_run: MakeRun, compared: Compare, told: Told) -> None:
    runs = make_run("one", known=0.2), make_run("two", "en", known=0.9, rows="x"), make_run("three", known=0.3, b=1)
    found = compared(*runs)
    assert figures(found, "two")["en"]["mark"] == "a"
    assert figures(found, "three")["en"]["mark"] == ""
    assert found["footnotes"]["a"].startswith("tested on different rows than one: two (en)")
    assert {lead["row"] for lead in found["leads"]} == {"three"}
    _, out, _ = told(*runs, "--format", "markdown")
    (line,) = [line for line in out.splitlines() if line.startswith("| two |") and "ᵃ" in line][:1]
    assert "**" not in line, "the highest figure is of other rows"
    assert "tested on different rows than one" in out


def test_seeds_that_were_tested_on_other_rows_are_no_row(make_run: MakeRun, compared: Compare) -> None:
    runs = make_run("a-42", "en"), make_run("a-43", "en", seed=43, rows="x")
    for run in runs:  # older records had no hash of the tested rows
        change(run, lambda record: record.update(data={"id": "data"}))
    found = compared(*runs)
    assert len(found["rows"]) == 2
    assert any("tested on different rows of en" in text for text in found["warnings"])


def test_mrr_of_other_pools_is_not_compared(make_run: MakeRun, compared: Compare) -> None:
    found = compared(make_run("a", "en"), make_run("b", "en", pool_seed=7, b=1))
    assert figures(found, "b", "mrr")["en"]["mark"] == "a"
    assert figures(found, "b")["en"]["mark"] == "", "weighted ROUGE has no pools"
    assert "ranked in different pools than a" in found["footnotes"]["a"]
    assert found["leads"]


def test_without_predictions_there_are_figures_and_no_leads(make_run: MakeRun, compared: Compare) -> None:
    runs = make_run("a"), make_run("b", known=0.9, b=1)
    (runs[1] / predictions_name("es")).unlink()
    found = compared(*runs)
    assert [lead["language"] for lead in found["leads"]] == ["en"]
    assert found["warnings"] == ["b: suggestions are missing (es); no lead there."]
    assert figures(found, "b")["es"]["mark"] == "", "the hash of the pools says that the rows are the same"


def test_a_model_on_the_hub_has_figures_and_no_leads(make_run: MakeRun, hub: LoopbackHub, tmp_path: Path) -> None:
    runs = make_run("a"), make_run("b", known=0.9, b=1)
    repo = hub.create("model", "org/m")
    repo.write("run.json", (runs[1] / "run.json").read_bytes())
    repo.write("model.safetensors", b"never downloaded")
    repo.tags["v1"] = repo.sha()
    repo.write("run.json", "{}")
    words = ("compare", runs[0], "org/m@v1", "--format", "json")
    env = {**hub.env(tmp_path / "home"), "OMP_NUM_THREADS": "1"}
    done = warm_python.run([sys.executable, "-m", "mrs_suggest.cli.main", *words], cwd=tmp_path, env=env)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [row["name"] for row in found["rows"]] == ["a", "m@v1"]
    own = record_of(runs[1])["metrics"]["systems"]["Model"]["es"]["weighted"]
    assert (figures(found, "m@v1")["es"]["mean"], figures(found, "m@v1")["es"]["mark"]) == (own, "")
    assert found["leads"] == []
    assert found["warnings"] == ["m@v1: the record alone is there (en es); no lead there."]
    assert not any("safetensors" in str(request) for request in hub.log)


# --- what is refused


def test_other_rules_are_refused_and_other_vocabularies_left_out(
    make_run: MakeRun, compared: Compare, told: Told
) -> None:
    runs = make_run("a", "en", trainer="generation"), make_run("b", "en", trainer="generation", b=1)
    for number, run in enumerate(runs):

        def perplexity(record: dict[str, Any], number: int = number) -> None:
            record["metrics"]["systems"]["Model"]["en"]["perplexity"] = 9.5
            record["metrics"]["signatures"]["en"]["reply_perplexity"] = f"reply_perplexity|tok:{number}|version:0.2.0"

        change(run, perplexity)
    found = compared(*runs)
    assert "perplexity" not in [metric["metric"] for metric in found["metrics"]]
    assert any("reply_perplexity|tok:0" in text and "tok:1" in text for text in found["warnings"])
    sentence = refused(told(*runs, "--metrics", "perplexity"))
    assert "a and b computed it by different rules in en" in sentence
    sign(runs[1], "tok:[^|]*", "tok:other")
    sentence = refused(told(*runs))
    assert "weighted ROUGE: a and b computed it by different rules" in sentence
    assert "tok:treebank" in sentence
    assert "tok:other" in sentence


@pytest.mark.parametrize(("words", "sentence"), cases(__file__, "test_what_cannot_be_shown_is_refused"))
def test_what_cannot_be_shown_is_refused(make_run: MakeRun, told: Told, words: list[str], sentence: str) -> None:
    assert sentence in refused(told(make_run("a", "en"), *words))


def test_two_tasks_and_records_without_figures_are_refused(make_run: MakeRun, told: Told, tmp_path: Path) -> None:
    runs = make_run("a", "en"), make_run("b", "en")
    broken: list[Any] = [{}, [], {"systems": {"Model": {"en": 3}}, "signatures": {"en": {}}}]
    for metrics in broken:
        change(runs[1], lambda record, metrics=metrics: record.update(metrics=metrics))
        assert "b: its run.json lacks figures" in refused(told(*runs))
    write_record(tmp_path / "text", {"trainer": "pretraining", "metrics": {}})
    sentence = refused(told(runs[0], tmp_path / "text"))
    assert "text: was pretrained, and a suggests replies; compare runs of one task." in sentence


# --- files


def test_every_kind_of_file_is_written_whole(make_run: MakeRun, tmp_path: Path, told: Told) -> None:
    runs = make_run("a_1", known=0.3), make_run("b & 100%", known=0.9, b=1)
    paths = [tmp_path / f"table.{kind}" for kind in ("md", "tex", "json", "png")]
    code, out, err = told(*runs, *(word for path in paths for word in ("--out", path)))
    assert code == 0, err
    assert out.count("wrote ") == 4
    assert paths[3].read_bytes().startswith(b"\x89PNG")
    assert json.loads(paths[2].read_text(encoding="utf-8")) == json.loads(told(*runs, "--format", "json")[1])
    markdown = paths[0].read_text(encoding="utf-8")
    assert markdown == told(*runs, "--format", "markdown")[1]
    for table in re.findall(r"(?:^\|.*\|\n)+", markdown, re.MULTILINE):
        assert len({len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}) == 1
    (line,) = [line for line in markdown.splitlines() if line.startswith("| b & 100% |")][:1]
    assert "**" in line, "the best row is in bold"


def test_latex_has_whole_tables(make_run: MakeRun, told: Told) -> None:
    runs = make_run("a_1", known=0.3), make_run("[b] & 100%", known=0.9, b=1)
    _, out, _ = told(*runs, "--format", "latex")
    assert out.count("\\begin{tabular}") == out.count("\\end{tabular}") == out.count("\\bottomrule") > 1
    assert "a\\_1" in out
    assert "{}[b] \\& 100\\%" in out
    assert "\\textbf{." in out


# --- other tasks


def test_tasks_of_understanding_have_a_table_each(tmp_path: Path, compared: Compare) -> None:
    for name, score, seed in (("a-1", 0.5, 1), ("a-2", 0.7, 2), ("b-1", 0.9, 1), ("c", 0.8, 1)):
        own = {"n": 24, "score": score, "accuracy": score, "interval": [0.1, 0.9], "signature": "xglue_score|task:NC"}
        record = {
            "trainer": "understanding",
            "seed": seed,
            "arguments": {"tasks": name[0], "seed": seed},
            "data": {"content_hash": "2" if name == "c" else "1"},
            "metrics": {"tasks": {"NC": {"en": own, "de": own}, "NER": {"en": own}}},
        }
        write_record(tmp_path / name, record)
    found = compared(*(tmp_path / name for name in ("a-1", "a-2", "b-1", "c")))
    assert [row["name"] for row in found["rows"]] == ["a", "b-1", "c"]
    assert figures(found, "c", "score")["de"]["mark"] == "a"
    assert "run.json does not show whether" in found["footnotes"]["a"]
    cells = {(one["part"], one["language"]): one for one in found["rows"][0]["figures"]}
    assert list(cells) == [("NC", "en"), ("NC", "de"), ("NER", "en")]
    assert cells["NC", "de"]["mean"] == pytest.approx(0.6)
    assert cells["NC", "de"]["mark"] == ""
    assert found["metrics"][0]["shared_languages"] == {"NC": ["en", "de"], "NER": ["en"]}
    assert found["leads"] == []


def test_pretraining_staple_and_choice_runs_have_a_table(tmp_path: Path, told: Told) -> None:
    metrics = {
        "signature": "masked_perplexity|tok:a",
        "tlm_signature": "masked_perplexity|rows:pairs",
        "test_perplexity": 9.25,
        "test_perplexity_en": 8.5,
        "validation_tlm_perplexity_en-ht": 7.125,
        "test_loss": 2.2,
    }
    records = {
        "text": {"trainer": "pretraining", "metrics": metrics},
        "staple": {
            "trainer": "staple_generation",
            "metrics": {
                "systems": {"model": {"pt": {"weighted_macro_f1": 0.55, "interval": [0.5, 0.6], "perplexity": 1.5}}}
            },
        },
    }
    printed = {}
    for name, record in records.items():
        write_record(tmp_path / name, record)
        code, printed[name], err = told(tmp_path / name)
        assert code == 0, err
    assert all(figure in printed["text"] for figure in ("9.25", "8.50", "7.12", "validation, tlm"))
    assert ".5500 [.5000, .6000]" in printed["staple"]
    systems = {"full": {"et": {"accuracy": 0.5, "n": 20}, "macro": {"accuracy": 0.5}}}
    record = {"trainer": "multiple_choice", "seed": 1, "plan": {"view": "full"}, "metrics": {"systems": systems}}
    write_record(tmp_path / "run", record)
    code, out, _ = told(tmp_path / "run", "--format", "markdown")
    assert code == 0
    assert ".5000" in out


def test_a_run_with_fewer_suggestions_is_compared_and_told_of(make_run: MakeRun, compared: Compare) -> None:
    runs = make_run("a", "en", trainer="generation"), make_run("b", "en", trainer="generation", b=1)
    sign(runs[1], "nbest:[0-9]", "nbest:1")
    assert "b: at most 1 of 2 suggestions a message in en." in compared(*runs)["warnings"]
