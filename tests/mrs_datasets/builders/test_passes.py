"""Passes over a prepared folder: one after the other, resumed at every text, the same files in the end."""

from collections import Counter
from pathlib import Path

import pytest

from mrs_datasets.builders import passes as running
from mrs_datasets.builders import translation
from mrs_datasets.builders.passes import FolderPass, run_passes
from mrs_datasets.builders.toxicity import Rule, ToxicityPass
from mrs_datasets.builders.translation import TranslationPass
from mrs_suggest.common.errors import InputError
from tests.dumps import all_bytes, leftovers
from tests.mrs_datasets.builders.test_toxicity import Fake, rows
from tests.mrs_datasets.builders.test_translation import LOG, Backwards, say


@pytest.fixture(autouse=True)
def small_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ROWS", 200)
    monkeypatch.setattr(translation, "BLOCK", 16)
    LOG.clear()


def without(letter: str, scored: int | None = None, translated: int | None = None) -> tuple[Fake, list[FolderPass]]:
    """The scorer and the passes that drop texts with a letter and translate the rest; ended after so many texts."""
    scorer = Fake(version=letter, gives=lambda text: float(letter in text), fails_after=scored)
    return scorer, [ToxicityPass((Rule(scorer, 0.9),)), TranslationPass({"de": Backwards(fails_after=translated)})]


def test_passes_run_one_after_the_other_and_leave_the_rest_alone(sample: Path, tmp_path: Path) -> None:
    report = run_passes(str(sample), without("q")[1], tmp_path / "out")
    wanted = [row for row in rows(sample, "en", "train") if "q" not in "".join(map(str, row.values()))]
    assert rows(tmp_path / "out", "en", "train") == wanted
    translated = [{name: say(str(text), "de") for name, text in row.items()} for row in wanted]
    assert rows(tmp_path / "out", "mt-de", "train") == translated
    assert rows(tmp_path / "out", "ja", "test") == rows(sample, "ja", "test")
    first, second = report["passes"]
    assert (first["name"], second["name"]) == ("toxicity", "translation")
    assert second["about"]["counts"]["mt-de"] == {"in": len(wanted), "kept": len(wanted)}
    assert leftovers(tmp_path) == ["out"]


def test_an_interrupted_run_continues_and_does_nothing_twice(sample: Path, tmp_path: Path) -> None:
    run_passes(str(sample), without("q")[1], tmp_path / "whole")
    once, asked = Counter(LOG), Counter[tuple[str, str]]()
    LOG.clear()
    for scored, translated in ((300, None), (None, 100)):
        scorer, stopped = without("q", scored, translated)
        with pytest.raises(KeyboardInterrupt):
            run_passes(str(sample), stopped, tmp_path / "out", resume=True)
        asked += scorer.asked
        assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="--resume"):
        run_passes(str(sample), without("q")[1], tmp_path / "out")
    scorer, both = without("q")
    run_passes(str(sample), both, tmp_path / "out", resume=True)
    assert all_bytes(tmp_path / "out") == all_bytes(tmp_path / "whole")
    assert (scorer.asked.total(), set(asked.values())) == (0, {1}), "the first pass was done"
    assert Counter(LOG) == once


def test_a_resumed_run_with_another_setting_does_not_mix_them(sample: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_passes(str(sample), without("q", translated=100)[1], tmp_path / "out")
    run_passes(str(sample), without("z")[1], tmp_path / "out", resume=True)
    run_passes(str(sample), without("z")[1], tmp_path / "whole")
    assert all_bytes(tmp_path / "out") == all_bytes(tmp_path / "whole")
