"""Cells that train nothing: sizes of data, reports of systems, effects of their features."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.prepared.prepare import prepare, prepare_mrs
from mrs_suggest.evaluation.paper_results import paper_figure
from mrs_suggest.reproduce import measure
from tests.staple_source import sentences, write_source


def measured(folder: Path, name: str, *words: object) -> dict[str, Any]:
    """The systems in the record that a command writes."""
    assert measure.main([name, "--seed", "42", "--output_dir", str(folder / "run"), *map(str, words)]) == 0
    record = json.loads((folder / "run" / "run.json").read_text(encoding="utf-8"))
    assert (record["trainer"], record["seed"]) == (name, 42)
    found: dict[str, Any] = record["metrics"]["systems"]
    return found


def test_sizes_of_staple_and_the_oracle(tmp_path: Path) -> None:
    prepare("staple", [str(write_source(tmp_path / "source"))], tmp_path / "data")
    found = measured(tmp_path, "sizes", "--data", tmp_path / "data")
    test = found["test"]["pt"]
    assert (test["prompts"], test["translations"], test["ratio"]) == (14, 56, 4)
    assert sum(found[split]["pt"]["prompts"] for split in ("train", "validation", "test")) == len(sentences())
    oracle = found["oracle test"]["pt"]
    assert oracle["1"] == pytest.approx(2 / 3), "all of it is right, and half of the weight is found"
    assert oracle["5"] == pytest.approx(1)


def test_sizes_of_mrs_with_totals(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for code, count in (("en", 40), ("es", 30)):
        text = "".join(f"message {n}\treply {code} {n}\n" for n in range(count))
        (tmp_path / "source" / f"{code}.tsv").write_text(text, encoding="utf-8")
    prepare_mrs(str(tmp_path / "source"), tmp_path / "data")
    found = measured(tmp_path, "sizes", "--data", tmp_path / "data")["all"]
    assert {code: of["examples"] for code, of in found.items()} == {"en": 40, "es": 30, "pooled": 70}
    assert found["pooled"]["tokens"] == found["en"]["tokens"] + found["es"]["tokens"] == 70 * 5


def test_each_system_is_filtered_by_its_rule(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def staple(*words: object) -> None:
        calls.append(" ".join(map(str, words)).replace(f"{tmp_path}/run/", ""))
        if words[0] == "report":
            folder = tmp_path / "run" / "report"
            folder.mkdir(parents=True)
            system = {"system": "jbrem", "weighted_macro_f1": 0.5, "rank": 1}
            (folder / "report.json").write_text(json.dumps({"systems": [system]}))

    monkeypatch.setattr(measure, "_mrs", staple)
    runs = ("--uniform", "a", "--jbrem", "b", "--nickeilf", "c")
    found = measured(tmp_path, "report", "--data", "D", "--language", "pt", "--nbest", "50", *runs)
    assert found["jbrem"]["pt"]["rank"] == 1
    assert [call for call in calls if call.startswith("decode")] == [
        "decode a --data D --language pt --split test --nbest 10 --out uniform.test.parquet",
        *(f"decode b --data D --language pt --split {split} --nbest 50 --out jbrem.{split}.parquet" for split in
          ("validation", "test")),
        *(f"decode m0=b m1=c --data D --language pt --split {split} --nbest 50 --out nickeilf.{split}.parquet" for split
          in ("validation", "test")),
    ]  # fmt: skip
    assert "filter uniform.test.pooled.parquet --top 10 --out uniform.kept.parquet" in calls
    assert "tune jbrem.validation.pooled.parquet --data D --rule threshold --out jbrem.filter" in calls
    assert "filter nickeilf.test.pooled.parquet --with nickeilf.filter --out nickeilf.kept.parquet" in calls
    assert calls[-1].endswith("uniform=uniform.kept.parquet jbrem=jbrem.kept.parquet nickeilf=nickeilf.kept.parquet "
                              "--out report")  # fmt: skip


def test_effects_are_those_of_the_features(tmp_path: Path) -> None:
    draw, gains = random.Random(1), (0.1, 0.2, 0.05)
    systems = ["baseline_fairseq", "scratch", "uniform", "jbrem", "rakchada", "sweagraw"]
    for track in ("hu", "ja"):
        easy = [draw.uniform(0.1, 0.3) for _ in range(80)]
        of = {}
        for system in systems:
            features = measure.FEATURES.get(system, (1, 1, 1))
            gain = sum(one * has for one, has in zip(gains, features, strict=True))
            of[system] = [min(1, base + gain + draw.gauss(0, 0.01)) for base in easy]
        of["reference"] = easy
        scores = {
            name: dict.fromkeys(("precision", "weighted_recall", "weighted_f1"), each) for name, each in of.items()
        }
        content = {"scores": {"track": track, "prompts": [f"{track}{n}" for n in range(80)], "systems": scores}}
        (tmp_path / track / "report").mkdir(parents=True)
        (tmp_path / track / "report" / "report.json").write_text(json.dumps(content))
    found = measured(tmp_path, "effects", "--hu", tmp_path / "hu", "--ja", tmp_path / "ja")
    for term, gain in zip(("Transformer", "LRF Weights", "Pre-train→Fine-tune"), gains, strict=True):
        assert found[term]["weighted_f1"]["estimate"] == pytest.approx(gain, abs=0.02), term
        assert paper_figure(f"staple/table_6/fixed/{term}/2/0") is not None
    assert set(found) >= {"(Intercept)", "Prompt ID", "Track ID", "Team ID"}
