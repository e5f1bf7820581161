"""Agreement of a judge with the readers of the panel, against scikit-learn and scipy."""

import importlib
import json
from pathlib import Path

import pytest


def test_agreement_is_that_of_other_libraries(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    stats = pytest.importorskip("scipy.stats")
    monkeypatch.syspath_prepend(repository / "benchmarks")
    panel = importlib.import_module("judge_panel")
    folder, name = repository / "benchmarks" / "panel" / "round_2", "everyday-retriever"
    given = (panel.read_grades(str(folder), [str(folder / f"reader_{reader}.tsv")])[name] for reader in "AB")
    ours, theirs = ([panel.VALUES.get(one[0]) for one in grades] for grades in given)
    ours[0] = None  # the judge gave no grade
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps({"metric": "judge", "signature": "judge|model:x", "scores": ours}))
    panel.agree(str(folder), name, str(scores), str(folder / "reader_B.tsv"))
    found = json.loads(capsys.readouterr().out)
    pairs = [(a, b) for a, b in zip(ours, theirs, strict=True) if a is not None and b is not None]
    a, b = ([int(2 * value) for value in column] for column in zip(*pairs, strict=True))
    assert found["messages"] == len(pairs) < len(ours)
    assert found["weighted_kappa"] == pytest.approx(metrics.cohen_kappa_score(a, b, weights="quadratic"))
    assert found["spearman"] == pytest.approx(stats.spearmanr(a, b).statistic)
    for key in ("weighted_kappa", "spearman"):
        assert found[f"{key}_interval"][0] < found[key] < found[f"{key}_interval"][1]
    scores.write_text(json.dumps({"metric": "mrs_rouge", "scores": ours}))
    with pytest.raises(SystemExit, match="for 200 messages"):
        panel.agree(str(folder), name, str(scores), str(folder / "reader_B.tsv"))
