"""Answers of multiple-choice runs: read, averaged, split, compared; and what `mrs compare` prints of them."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.choice.analysis import XCOPA, accuracy, average, average_difference, by_changed, differences
from mrs_suggest.evaluation.choice.answers import Answers, read_answers
from tests.cases import cases

N = 40


def answers(right: int, n: int = N, *, first: int = 0, changed: int = 0) -> Answers:
    """n questions from number `first` on: the first `right` are answered rightly, the first few are changed."""
    gold = np.arange(n) % 2
    predicted = np.where(np.arange(n) < right, gold, 1 - gold)
    return Answers(np.arange(first, first + n), gold, predicted, np.arange(n) < changed, 2)


def write_run(folder: Path, views: dict[str, dict[str, Answers]], view: str = "full") -> Path:
    """The files of a run that `mrs compare` reads."""
    folder.mkdir()
    systems = {}
    for name, languages in views.items():
        configs = {f"translation-{code}" if name == "translation" else code: one for code, one in languages.items()}
        figures = {
            config: {"accuracy": float(one.correct.mean()), "n": len(one.idx)} for config, one in configs.items()
        }
        systems[name] = {**figures, "macro": {"accuracy": 0.5}}
        for config, one in configs.items():
            rows = zip(one.idx, one.gold, one.predicted, one.changed.astype(int), strict=True)  # type: ignore[union-attr]
            lines = [
                "idx\tgold\tpredicted\tchanged\tscore1\tscore2",
                *("\t".join(map(str, [*r, 1, 2.5])) for r in rows),
            ]
            path = folder / f"predictions.{'' if name == view else name + '.'}{config}.tsv"
            path.write_text("\n".join(lines) + "\n")
    record = {"trainer": "multiple_choice", "plan": {"view": view}, "metrics": {"systems": systems}}
    (folder / "run.json").write_text(json.dumps(record))
    return folder


def test_an_accuracy_has_an_interval_and_says_whether_it_may_be_chance() -> None:
    found = accuracy(answers(30))
    assert (found.correct, found.n, found.value) == (30, 40, 0.75)
    assert found.low < 0.75 < found.high
    assert found.chance == pytest.approx(0.00222, abs=1e-5)
    assert accuracy(answers(20)).chance == 1
    assert accuracy(Answers(*[np.arange(9) % 3] * 3, None, 3)).chance == pytest.approx(3**-9)
    found = by_changed({"et": answers(30, changed=10), "th": answers(5, changed=10)})
    assert (found["changed"].correct, found["changed"].n) == (15, 20)
    assert (found["unchanged"].correct, found["unchanged"].n) == (20, 60)
    assert list(by_changed({"et": answers(30)})) == ["unchanged"]


def test_an_average_needs_all_its_languages_with_the_same_questions() -> None:
    every = {code: answers(20 + n) for n, code in enumerate(XCOPA)}
    found = average(every, XCOPA)
    assert found is not None
    assert found.value == pytest.approx(np.mean([(20 + n) / N for n in range(11)]))
    assert average({code: one for code, one in every.items() if code != "qu"}, XCOPA) is None
    assert average({**every, "qu": answers(30, first=1)}, XCOPA) is None


def test_differences_are_paired_by_number_and_corrected_over_languages() -> None:
    first = {"et": answers(40), "th": answers(25)}
    second = {"et": answers(10), "th": answers(25), "qu": answers(3)}
    found = differences(first, second)
    assert list(found) == ["et", "th"]
    assert found["et"].value == 0.75
    assert found["et"].low > 0.5
    assert found["et"].p < 1e-3
    assert (found["th"].value, found["th"].p) == (0, 1)
    order = np.random.default_rng(1).permutation(N)[:30]
    shuffled = Answers(
        *(column[order] for column in (second["et"].idx, second["et"].gold, second["et"].predicted)), None, 2
    )
    assert differences(first, {"et": shuffled})["et"].value == np.mean(order >= 10)
    mean = average_difference(first, second)
    assert mean is not None
    assert mean.value == pytest.approx(0.375)
    assert mean.p < 1e-3
    assert average_difference(first, {"et": answers(10, first=3), "th": answers(1)}) is None
    turned = Answers(second["et"].idx, 1 - second["et"].gold, second["et"].predicted, None, 2)
    with pytest.raises(ValueError, match="et: the two runs have different right answers"):
        differences(first, {"et": turned})
    with pytest.raises(ValueError, match="no test question in common"):
        differences(first, {"et": answers(10, first=500)})


def test_compare_prints_averages_masked_views_translations_and_tests(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    every = {code: answers(20 + n, changed=2) for n, code in enumerate(XCOPA)}
    translated = {code: answers(40, changed=2) for code in XCOPA if code != "qu"}
    nop = {code: answers(20) for code in XCOPA}
    one = write_run(tmp_path / "one", {"full": every, "nop": nop, "translation": translated})
    other = write_run(tmp_path / "other", {"full": {code: answers(40) for code in XCOPA}})
    masked = write_run(tmp_path / "masked", {"noq": nop}, view="noq")
    assert main(["compare", str(one), str(other), str(masked)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for title in ("11 languages", "9 (no ht, qu)", "4 (it th tr zh)"):
        assert title in out
    assert "~50.0" in out, "as good as chance"
    assert "62.5 [" in out, "the average over eleven languages"
    for row in ("one, translation over", "one, nop over one", "other over one", "masked, noq over one"):
        assert row in out
    assert "-12.5* [" in out, "the average without premises"
    assert "100.0 [85.1, 100.0] of 22" in out, "the changed questions of the first run"


DAMAGE = cases(__file__, "DAMAGE")


@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_answers_are_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str) -> None:
    old, new, sentence = DAMAGE[kind]
    run = write_run(tmp_path / "run", {"full": {"et": answers(20)}})
    path = run / "predictions.et.tsv"
    path.write_text(re.sub(old, new, path.read_text(), flags=re.DOTALL))
    assert main(["compare", str(run)]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    with pytest.raises(AssertionError if kind == "other answers" else InputError, match=sentence):
        read_answers(path)
        raise AssertionError(err)


def test_runs_of_two_tasks_are_not_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path / "run", {"full": {"et": answers(20)}})
    (tmp_path / "reply").mkdir()
    (tmp_path / "reply" / "run.json").write_text(json.dumps({"trainer": "retrieval", "metrics": {}}))
    assert main(["compare", str(tmp_path / "reply"), str(run)]) == 2
    assert "answers multiple-choice questions" in capsys.readouterr().err
