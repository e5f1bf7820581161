"""Cells are run once, resumed, repeated where something changed, and one that fails does not stop the others."""

import json
import os
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.reproduce import runner
from mrs_suggest.reproduce.cells import DONE, FAILED, INTERRUPTED, MISSING, States
from mrs_suggest.reproduce.overview import Overview, trial_lines
from mrs_suggest.reproduce.runner import prepare_data, run_cells
from tests.mrs_suggest.reproduce.conftest import TABLE, Ready

BOTH = ("teacher/42", "student")


def calls(folder: Path) -> list[str]:
    return (folder / "calls.txt").read_text().splitlines() if (folder / "calls.txt").exists() else []


def test_what_is_finished_is_not_run_again(ready: Ready, tmp_path: Path) -> None:
    said: list[str] = []
    setup, cells = ready(*BOTH)
    assert list(cells) == ["teacher/42", "student/42"]
    assert run_cells(setup, cells, said.append) == {}
    assert len(calls(tmp_path)) == 2
    assert run_cells(setup, cells, said.append) == {}
    assert len(calls(tmp_path)) == 2
    assert said[-1] == "[2/2] student/42: finished before"
    assert States(setup, cells).state("student/42") == DONE


@pytest.mark.parametrize("changed", [{"config": "learning_rate: 0.25\n"}, {"scale": "tiny"}])
def test_other_options_are_another_run_and_the_old_one_is_kept(
    ready: Ready, tmp_path: Path, changed: dict[str, object]
) -> None:
    setup, cells = ready(*BOTH)
    run_cells(setup, cells, lambda line: None)
    setup, cells = ready(*BOTH, **changed)  # type: ignore[arg-type]
    assert "before," in States(setup, cells).state("student/42"), "it started from the other cell's run"
    run_cells(setup, cells, lambda line: None)
    assert len(calls(tmp_path)) == 4
    assert (tmp_path / "out" / "cells" / "teacher-42" / "run-before" / "run.json").is_file()


def test_other_contents_of_the_model_are_another_run(ready: Ready, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "model.safetensors").write_bytes(b"one")
    setup, cells = ready("teacher/42", model=model)
    run_cells(setup, cells, lambda line: None)
    assert f"--model_name_or_path {model}" in calls(tmp_path)[0]
    model = model.rename(tmp_path / "moved")
    assert States(ready("teacher/42", model=model)[0], cells).state("teacher/42") == DONE
    (model / "model.safetensors").write_bytes(b"two")
    assert States(ready("teacher/42", model=model)[0], cells).state("teacher/42").startswith("changed: model_name")
    # An id on the hub is its own identity.
    setup, cells = ready("teacher/42", model=Path("org/other@v1"))
    run_cells(setup, cells, lambda line: None)
    assert States(setup, cells).identity("teacher/42")["options"]["model_name_or_path"] == "org/other@v1"
    assert States(setup, cells).state("teacher/42") == DONE
    other = ready("teacher/42", model=Path("org/other@v2"))[0]
    assert States(other, cells).state("teacher/42").startswith("changed: model_name_or_path org/other@v1 before")


def test_a_failed_cell_does_not_stop_the_others_but_those_that_need_it(ready: Ready, tmp_path: Path) -> None:
    said: list[str] = []
    setup, cells = ready("teacher", "student", config="fail: 1\n")
    problems = run_cells(setup, cells, said.append)
    assert problems["teacher/42"] == problems["teacher/43"] == "failed with exit code 2: retrieval: no luck."
    assert problems["student/42"] == "needs teacher/42"
    assert len(calls(tmp_path)) == 2
    assert States(setup, cells).state("teacher/42") == FAILED
    assert any("log.txt" in line for line in said)


def test_a_killed_run_is_resumed_and_its_checkpoints_go_when_it_is_finished(ready: Ready, tmp_path: Path) -> None:
    setup, cells = ready("teacher/42", config="fail: 2\n")
    run_cells(setup, cells, lambda line: None)
    assert States(setup, cells).state("teacher/42") == INTERRUPTED
    assert run_cells(setup, cells, lambda line: None) == {}
    assert calls(tmp_path)[1].endswith("--resume_from_checkpoint last")
    folder = tmp_path / "out" / "cells" / "teacher-42"
    assert not list((folder / "run").glob("checkpoint-*"))
    assert json.loads((folder / "cell.json").read_text())["code"] == 0
    assert (folder / "log.txt").read_text().count("step 2") == 2


def test_a_run_without_a_checkpoint_starts_again(ready: Ready, tmp_path: Path) -> None:
    setup, cells = ready("teacher/42")
    (tmp_path / "out" / "cells" / "teacher-42" / "run").mkdir(parents=True)
    assert States(setup, cells).state("teacher/42") == MISSING
    assert run_cells(setup, cells, lambda line: None) == {}
    assert "--resume" not in calls(tmp_path)[0]


def test_a_signal_ends_the_cells_and_the_run_says_where_it_goes_on(
    ready: Ready, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_suggest.cli import main, reproduce

    ready(config="interrupt: 1\n")
    (tmp_path / "configs" / "test.yaml").write_text(TABLE)
    for name in ("TABLES", "CONFIGS"):
        monkeypatch.setattr(reproduce, name, tmp_path / "configs")
    assert main.main(["reproduce", "test", "--only", "teacher", "--output", "out"]) == 130
    assert capsys.readouterr().err.splitlines() == [
        "[1/2] teacher/42: missing, starts",
        "mrs reproduce: stopped by SIGINT; run the same command to continue.",
    ]
    (tmp_path / "configs" / "a.yaml").write_text("model_name_or_path: org/base\n")
    assert main.main(["reproduce", "test", "--only", "teacher", "--output", "out"]) == 0


def test_two_at_once_in_one_folder_are_refused(ready: Ready) -> None:
    setup, cells = ready("teacher/42")
    with runner._locked(setup.output), pytest.raises(InputError, match="another `mrs reproduce` is running there"):
        run_cells(setup, cells, lambda line: None)


def test_cells_without_their_data_are_skipped_with_the_reason(ready: Ready, tmp_path: Path) -> None:
    setup, cells = ready("chats")
    setup = prepare_data(setup, {}, ["chats"], False, print)
    assert run_cells(setup, cells, print) == {
        "chats/42": "no data: pass --data chats=FOLDER, with en.tsv (pairs of a test)"
    }
    prepared = tmp_path / "prepared"
    (prepared / "data" / "en").mkdir(parents=True)
    (prepared / "report.json").write_text("{}")
    setup = prepare_data(setup, {"chats": prepared}, ["chats"], False, print)
    assert "have no mt-fr (put mt-fr.tsv next to" in run_cells(setup, cells, print)["chats/42"]
    (prepared / "data" / "mt-fr").mkdir()
    assert run_cells(setup, cells, print) == {}
    assert f"--data {prepared} " in calls(tmp_path)[0]
    (prepared / "data" / "en" / "train-0.parquet").write_bytes(b"other pairs")
    assert States(prepare_data(setup, {"chats": prepared}, ["chats"], True, print), cells).state("chats/42") != DONE


def test_source_files_are_prepared_once_by_the_tables_command(ready: Ready, preparing: None, tmp_path: Path) -> None:
    source = tmp_path / "source"
    (source / "data" / "ht").mkdir(parents=True)  # as in XCOPA's repository
    setup, _ = ready("chats")
    with pytest.raises(InputError, match=r"en\.tsv is missing"):
        prepare_data(setup, {"chats": source}, ["chats"], False, print)
    (source / "en.tsv").write_text("a\tb\n")
    said: list[str] = []
    prepare_data(setup, {"chats": source}, ["chats"], True, said.append)
    assert [line.partition(":")[0] for line in said] == ["data chats", "  not prepared yet"]
    assert calls(tmp_path) == []
    for _ in range(2):
        found = prepare_data(setup, {"chats": source}, ["chats"], False, print)
    assert found.data == {"chats": tmp_path / "out" / "data" / "chats"}
    assert len(calls(tmp_path)) == 1
    assert calls(tmp_path)[0].startswith(f"data prepare mrs --source {source} --out ")
    (source / "en.tsv").write_text("a\tc\n")
    prepare_data(setup, {"chats": source}, ["chats"], False, print)
    assert len(calls(tmp_path)) == 2
    with pytest.raises(InputError, match="--data chat=...: expected one of chats"):
        prepare_data(setup, {"chat": source}, ["chats"], False, print)


def test_a_cell_with_other_data_waits_for_them_and_depends_on_their_contents(ready: Ready, tmp_path: Path) -> None:
    setup, cells = ready("adapted")
    setup = prepare_data(setup, {}, ["sample", "texts"], False, print)
    problems = run_cells(setup, cells, print)
    assert problems == {"adapted/42": "no data: pass --data texts=FOLDER (lines of a test)"}
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "T.txt").write_text("a line")
    setup = prepare_data(setup, {"texts": texts}, ["sample", "texts"], False, print)
    assert run_cells(setup, cells, print) == {}
    moved = texts.rename(tmp_path / "moved")
    setup = prepare_data(setup, {"texts": moved}, ["sample", "texts"], False, print)
    assert States(setup, cells).state("adapted/42") == DONE, "wherever they are"
    (moved / "T.txt").write_text("another line")
    setup = prepare_data(setup, {"texts": moved}, ["sample", "texts"], False, print)
    assert States(setup, cells).state("adapted/42").startswith("changed: other data texts")


def test_one_cell_of_a_kind_is_timed_and_nothing_is_left(ready: Ready, tmp_path: Path) -> None:
    setup, cells = ready()
    told = list(trial_lines(setup, cells))
    options = "retrieval, model_name_or_path"
    assert told == [
        f"  {options} org/base: 2 cells, about 4 min",
        f"  {options} @teacher: 1 cell, unknown until teacher/42 has run",
        "  not timed: 1 cell, lack chats",
        "  not timed: 1 cell, lack texts",
        "  not timed: 1 cell, the configuration none.yaml does not exist yet",
    ]
    assert list(trial_lines(*ready("teacher/42"))) == [f"  {options} org/base: 1 cell, about 115 s"]
    shorter = list(trial_lines(*ready("teacher/42", config="max_steps: 500\nlearning_rate: 1\n")))
    assert shorter == [f"  {options} org/base: 1 cell, about 65 s"], "10 s + 5 s + half of 100 s"
    assert not (tmp_path / "out").exists()
    broken = list(trial_lines(*ready("teacher/42", config="fail: 2\nlearning_rate: too much\n")))
    assert broken == [f"  {options} org/base: 1 cell, teacher/42 cannot be timed: too much"]
    assert calls(tmp_path) == []
    setup, cells = ready()
    assert run_cells(setup, cells, lambda line: None)
    assert "  not timed: 3 cells, finished" in trial_lines(setup, cells)


def test_cells_that_need_a_gpu_are_timed_on_one_alone(ready: Ready, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TABLE.replace("scales: {", "scales: {full: {gpu: true}, ")
    for there, line in ((False, "not timed: 1 cell, need a GPU"), (True, "org/base: 1 cell, about 115 s")):
        monkeypatch.setattr("torch.cuda.is_available", lambda there=there: there)
        assert [one.endswith(line) for one in trial_lines(*ready("teacher/42", text=text))] == [True]


def test_a_list_reads_no_data(ready: Ready, preparing: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    setup, _ = ready()
    sources = {"chats": tmp_path / "source", "texts": tmp_path / "texts"}
    for folder, file in zip(sources.values(), ("en.tsv", "T.txt"), strict=True):
        folder.mkdir()
        (folder / file).write_text("a\tb\n")
    setup = prepare_data(setup, sources, list(sources), False, print)
    note = tmp_path / "out" / "data" / "chats.json"
    said: list[str] = []
    with monkeypatch.context() as patch:
        patch.setattr("mrs_suggest.common.io.files.file_sha256", lambda path: pytest.fail(f"reads {path}"))
        assert prepare_data(setup, sources, list(sources), True, said.append).data == setup.data
        assert not said, "they are prepared"
        overview = Overview("full", setup.configs, tmp_path / "out", sources)
        assert any("can run here" in line for line in overview.lines({"test": setup.table}))
    os.utime(sources["chats"] / "en.tsv", ns=(0, note.stat().st_mtime_ns + 1))
    prepare_data(setup, sources, list(sources), True, said.append)
    assert said[0].startswith("data chats: mrs data prepare "), "as they may have changed"


def test_data_are_not_prepared_for_cells_that_wait_for_another(
    ready: Ready, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mrs_suggest.cli import main, reproduce

    ready()
    table = TABLE.replace("  student:\n", "  student:\n    data: chats\n")
    (tmp_path / "configs" / "test.yaml").write_text(table)
    for name in ("TABLES", "CONFIGS"):
        monkeypatch.setattr(reproduce, name, tmp_path / "configs")
    (tmp_path / "en.tsv").write_text("a\tb\n")
    words = ["--only", "student/42", "--estimate", "--data", f"chats={tmp_path}", "--output", "out"]
    assert main.main(["reproduce", "test", *words]) == 0
    assert "@teacher: 1 cell, unknown until teacher/42 has run" in capsys.readouterr().out
    assert not (tmp_path / "out").exists()
