"""What the tasks ask and where their data are, without a harness."""

import importlib
import re
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.integrations.lm_eval import __main__ as files
from mrs_suggest.integrations.lm_eval import tasks
from mrs_suggest.integrations.prompts import choice_question
from mrs_suggest.integrations.sources import question_column, source
from tests.cases import cases

ROW = {
    "premise": "It rained.", "choice1": "I got wet.", "choice2": "I slept.", "question": "effect", "label": 0, "idx": 4,
    "changed": False, "question_corrected": "cause",
}  # fmt: skip


def test_a_file_for_each_task_names_functions_that_exist(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert files.main(["--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"{tmp_path}\n"
    names = {path.name.removesuffix(".yaml") for path in tmp_path.glob("*.yaml")}
    assert len(names) == 67
    assert not [name for name in names if not name.startswith("mrs")], "the harness has other tasks of its own"
    for path in tmp_path.glob("_*_yaml"):
        for name in re.findall(r"!function '(\S+)'", path.read_text(encoding="utf-8")):
            module, _, function = name.rpartition(".")
            assert callable(getattr(importlib.import_module(module), function)), name


def test_the_embedded_sample_works_out_of_the_box(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.delenv("MRS_DATA", raising=False)
    splits = tasks.load("mrs", "es")
    assert "the embedded sample" in caplog.text
    row, example = splits["test"][0], splits["fewshot"][0]
    assert row["prompt"].endswith(
        f"in Spanish, one on each line and nothing else.\nMessage: {row['message']}\nReplies:"
    )
    assert len(set(example["answer"].split("\n"))) == 3
    record = tasks.mrs_results(row, [f"1. {row['reference']}\n2. No."])["weighted_rouge"]
    assert record == {
        "index": 0, "language": "es", "message": row["message"], "reference": row["reference"],
        "suggestions": [row["reference"], "No."],
    }  # fmt: skip
    assert tasks.mrs_samples_results(row, [["", "\n", " "]])["dist1"]["suggestions"] == [""]


@pytest.mark.parametrize(("view", "column", "context"), cases(__file__, "test_the_views_of_a_question"))
def test_the_views_of_a_question(view: str, column: str, context: str) -> None:
    assert choice_question(ROW, view, column) == (context, ("I got wet.", "I slept."), 0)


def test_missing_data_are_told_of(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("XCOPA_DATA", "STAPLE_DATA"):
        monkeypatch.delenv(name, raising=False)
        data_set = name.removesuffix("_DATA").lower()
        with pytest.raises(
            InputError, match=f"{name} is not set; set it to a folder that `mrs data prepare {data_set}`"
        ):
            source(data_set)
    monkeypatch.setenv("MRS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match="nowhere: no such folder"):
        tasks.load("mrs_samples", "es")
    monkeypatch.setenv("XCOPA_QUESTION", "questions")
    with pytest.raises(InputError, match="XCOPA_QUESTION: expected question or question_corrected, not 'questions'"):
        question_column()
    monkeypatch.setenv("XCOPA_QUESTION", "question_corrected")
    assert question_column() == "question_corrected"
