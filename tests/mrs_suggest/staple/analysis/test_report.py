"""`mrs staple report`: its figures are those of `mrs score`, its folder is whole, and wrong input gets one sentence."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_datasets.prepared.prepare import prepare
from mrs_metrics.translations_f1 import aggregate, oracle_curve, score_translations
from mrs_suggest.cli.main import main
from mrs_suggest.staple.gold import read_gold_split
from mrs_suggest.staple.hypotheses import write_hypotheses, write_predictions
from tests.cases import cases
from tests.command import Result, refused
from tests.mrs_suggest.staple.hypotheses_files import ROWS, hypotheses

GOLD = """prompt_a|yes, of course
sim, claro|0.5
claro que sim|0.3
com certeza|0.2

prompt_b|no
não|1.0

prompt_c|maybe
talvez|0.7
pode ser|0.3
"""
AWS = "prompt_a|yes, of course\nSim, claro.\n\nprompt_b|no\nNão\n\nprompt_c|maybe\nTalvez\n"
GOOD = "prompt_a|yes, of course\nsim claro\nclaro que sim\nsim sim\n\nprompt_b|no\nnão\n\nprompt_c|maybe\npode ser\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return prepared data: a validation split with accepted translations, a blind test split."""
    folder = tmp_path_factory.mktemp("staple")
    track = folder / "task" / "en_pt"
    track.mkdir(parents=True)
    (track / "dev.en_pt.gold.txt").write_text(GOLD)
    (track / "dev.en_pt.aws_baseline.pred.txt").write_text(AWS)
    (track / "test.en_pt.blind.txt").write_text("prompt_d|now\n")
    prepare("staple", [str(folder / "task")], folder / "data")
    return folder / "data"


@pytest.fixture(scope="module")
def report(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a report on a prediction file and a file of hypotheses."""
    folder = tmp_path_factory.mktemp("report")
    (folder / "good.txt").write_text(GOOD)
    write_hypotheses(hypotheses(ROWS), folder / "few.parquet")
    systems = ["--systems", f"good={folder / 'good.txt'}", f"few={folder / 'few.parquet'}"]
    words = ["staple", "report", "--data", str(data), "--split", "validation", *systems, "--out", str(folder / "out")]
    assert main(words) == 0
    return folder / "out"


def test_figures_are_those_of_the_metric(report: Path, data: Path) -> None:
    content = json.loads((report / "report.json").read_text())
    rows = read_gold_split(str(data), "validation", None).rows
    predictions = {
        "good": {"prompt_a": ["sim claro", "claro que sim", "sim sim"], "prompt_b": ["não"], "prompt_c": ["pode ser"]},
        "few": {"prompt_a": ["sim, claro", "claro que sim"], "prompt_c": ["talvez"]},
        "reference": {"prompt_a": ["Sim, claro."], "prompt_b": ["Não"], "prompt_c": ["Talvez"]},
    }
    assert {system["system"] for system in content["systems"]} == set(predictions)
    for system in content["systems"]:
        scores = score_translations(rows, predictions[system["system"]])  # type: ignore[arg-type]
        assert {key: system[key] for key in aggregate(scores)} == aggregate(scores)
        assert system["mean_precision"] == pytest.approx(scores.precision.mean())
        kept = content["scores"]["systems"][system["system"]]
        assert kept["weighted_f1"] == pytest.approx(scores.weighted_f1, abs=1e-6)
        low, high = system["intervals"]["weighted_f1"]
        assert low <= system["weighted_macro_f1"] <= high
    by_name = {system["system"]: system for system in content["systems"]}
    assert [by_name[name]["top_found"] for name in ("good", "few", "reference")] == pytest.approx([2 / 3, 2 / 3, 1])
    assert [by_name[name]["translations"] for name in ("good", "few", "reference")] == [5, 3, 3]
    assert [by_name[name]["missing"] for name in ("good", "few", "reference")] == [0, 1, 0]
    assert {system["rank"] for system in content["systems"]} == {1}, "three prompts do not tell systems apart"
    curve = oracle_curve(rows, (1, 2))  # type: ignore[arg-type]
    assert content["oracle"] == {str(k): value for k, value in curve.items()}
    assert content["scores"]["prompts"] == ["prompt_a", "prompt_b", "prompt_c"]


def test_pages_tell_the_same_and_need_no_other_file(report: Path) -> None:
    page, text = (report / "report.html").read_text(), (report / "report.md").read_text()
    for told in ("good", "few", "reference", "word order", "sim sim"):
        assert told in page
        assert told in text
    assert page.count("data:image/png;base64,") == text.count(".png)") == len(list(report.glob("*.png"))) == 3
    assert not re.search("https?:", page)
    assert "<script" not in page


def test_a_gold_file_of_the_task_takes_the_place_of_data(tmp_path: Path) -> None:
    gold = tmp_path / "dev.en_pt.gold.txt"
    gold.write_text(GOLD)
    write_predictions(hypotheses(ROWS), tmp_path / "a.txt")
    words = ["staple", "report", "--gold", str(gold), "--systems", f"a={tmp_path / 'a.txt'}", "--rules", "official"]
    assert main([*words, "--out", str(tmp_path / "out")]) == 0
    content = json.loads((tmp_path / "out" / "report.json").read_text())
    assert [system["system"] for system in content["systems"]] == ["a"], "a gold file has no automatic translation"
    assert content["data"]["language"] == "pt"
    assert "rules:official" in content["systems"][0]["signature"]


WRONG = cases(__file__, "WRONG")


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_one_sentence(
    kind: str, data: Path, tmp_path: Path, staple: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words, files, sentence = WRONG[kind]
    for name, content in files.items():
        Path(name).write_text(content.replace("GOOD", GOOD))
    given = ["--split", "validation", *words]
    assert sentence in refused(staple("report", "--data", data, *given, "--out", "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_hypotheses_of_other_data_are_refused(data: Path, tmp_path: Path, staple: Callable[..., Result]) -> None:
    for number, (facts, sentence) in enumerate((
        ({"language": "ja"}, "hypotheses in ja, but the data are in pt"),
        ({"data": {"id": "toy", "split": "test"}}, "hypotheses of the test split, not of validation"),
    )):  # fmt: skip
        path = tmp_path / f"{number}.parquet"
        write_hypotheses(hypotheses(ROWS, **facts), path)
        words = ["--split", "validation", "--systems", f"a={path}", "--out", tmp_path / "out"]
        assert sentence in refused(staple("report", "--data", data, *words))
