"""XGLUE's archive: every format read, checked, described; what is missing is told, what is broken is refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.prepared.report import Report
from mrs_datasets.readers.xglue import XGLUE, read_xglue
from mrs_datasets.readers.xglue_files import read_xglue_references, references_path
from mrs_datasets.synthetic.xglue import draw_task
from mrs_datasets.tasks.xglue_layout import write_layout, write_split_files
from mrs_metrics.xglue_tasks import TASKS, get_task
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from tests.cases import cases

Files = dict[str, str]
WriteTree = Callable[[Path, dict[str, Any]], Path]


def squad(*questions: dict[str, Any], context: str = "Anna lives in Berlin.") -> str:
    return json.dumps(
        {"version": "1.1", "data": [{"title": "t", "paragraphs": [{"context": context, "qas": questions}]}]}
    )


def asked(name: str, **fields: Any) -> dict[str, Any]:
    answers = [{"text": "Berlin", "answer_start": 14}]
    return {"id": name, "question": "Where does Anna live?", "answers": answers, **fields}


MLQA_DE = "MLQA/MLQA_V1/dev/dev-context-de-question-de.json"
FILES: Files = cases(__file__, "FILES")
Rows = dict[tuple[str, str], list[dict[str, Any]]]
ROWS: Rows = {tuple(part.split("/")): rows for part, rows in cases(__file__, "ROWS").items()}


def read(*sources: Path) -> tuple[dict[tuple[str, str], list[dict[str, Any]]], Report]:
    report = Report("xglue", partial=True)
    return {(config, split): table.to_pylist() for config, split, table in read_xglue(list(sources), report)}, report


@pytest.mark.parametrize("folder", ["", "xglue_full_dataset/"])
def test_every_format_is_read(tmp_path: Path, write_tree: WriteTree, folder: str) -> None:
    write_tree(tmp_path, {folder + name: text for name, text in FILES.items()})
    rows, report = read(tmp_path)
    assert rows == ROWS
    assert "nc-de: the source does not have the answers of test; label is null." in report.notes
    assert "ntg-de: the source does not have the answers of test; news_title is null." in report.notes
    assert "rows of QG, and those of a complete source: qg-en/train 2 (100,000)." in report.notes
    assert "not in the source (QAM): qam-de qam-fr qam-en/validation qam-en/test." in report.notes
    assert not report.findings


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"\n", b"\r"),
        lambda text: text.rstrip(b"\n"),
        lambda text: text.replace(b"\n", b" \n"),
    ],
    ids=["byte-order mark", "CRLF", "CR", "no last line end", "white space"],
)
def test_rows_do_not_depend_on_how_lines_end(
    tmp_path: Path, write_tree: WriteTree, change: Callable[[bytes], bytes]
) -> None:
    write_tree(tmp_path, {name: change(text.encode()) for name, text in FILES.items()})
    assert read(tmp_path)[0] == ROWS


def test_parts_may_come_from_several_sources_but_once(tmp_path: Path, write_tree: WriteTree) -> None:
    names = list(FILES)
    write_tree(tmp_path / "a", {name: FILES[name] for name in names[:7]})
    write_tree(tmp_path / "b", {name: FILES[name] for name in names[7:]})
    assert read(tmp_path / "a", tmp_path / "b")[0] == ROWS
    write_tree(tmp_path / "b", {names[0]: FILES[names[0]]})
    with pytest.raises(InputError, match=r"b/NER/en\.train: ner-en/train is in .*a/NER/en\.train already; keep one"):
        read(tmp_path / "a", tmp_path / "b")


def test_an_answer_elsewhere_than_told_is_moved_and_counted(tmp_path: Path, write_tree: WriteTree) -> None:
    answers = [{"text": "Berlin", "answer_start": start} for start in (0, 40, 13, 14)]
    context = "Berlin? Anna lives in Berlin, the Berlin of Anna."
    write_tree(tmp_path, {MLQA_DE: squad(asked("q", answers=answers), context=context)})
    rows, report = read(tmp_path)
    assert [answer["start"] for answer in rows["mlqa-de", "validation"][0]["answers"]] == [0, 34, 22, 22]
    ((part, what), found), *others = report.findings.items()
    assert (part, found["count"], others) == ("mlqa-de/validation", 3, [])
    assert what.startswith("answer_start that is not where the answer is")


def changed(text: str, change: Any) -> str | bytes:
    if isinstance(change, dict):
        ((old, new),) = change.items()
        assert old in text
        return text.replace(old, new)
    return change(text) if callable(change) else change or ""


# File, what is done to it (a mapping: texts replaced; None: removed), and the sentence.
DAMAGE: list[tuple[str, Any, str]] = [
    *cases(__file__, "DAMAGE"),
    *[
        (name, change, sentence)
        for name in ("XNLI/de.dev", MLQA_DE)
        for change, sentence in (
            (lambda text: text[:-3].encode() + b"\xe9\n", r"line \d+: not UTF-8 \(byte 0xe9"),
            (lambda text: text + "\0", r"line \d+: the line has a NUL"),
        )
    ],
    (MLQA_DE, "", "line 1: JSON is expected"),
    (MLQA_DE, '{"data": []}', "the file has no examples"),
    (MLQA_DE, lambda text: text[:-5], "line 1: JSON is expected"),
    (MLQA_DE, "[" * 100_000, "JSON is expected"),
    (MLQA_DE, "{}", "not in the format of SQuAD 1.1 .* question 1 lacks 'data'"),
    (MLQA_DE, '{"data": [{"paragraphs": 3}]}', "not in the format of SQuAD 1.1"),
    (MLQA_DE, squad(asked("q", id=3)), "the id of a question must be a text, not 3"),
    (MLQA_DE, squad(asked("q"), asked("q")), "question 'q': the id is that of an earlier question"),
    (MLQA_DE, squad({"id": "q", "question": "?"}), "question 1 lacks 'answers'"),
    (MLQA_DE, squad(asked("q", answers=[])), "question 'q': one right answer or more is expected"),
    (MLQA_DE, squad(asked("q", answers=[{"answer_start": 1}])), "question 1 lacks 'text'"),
    (MLQA_DE, squad(asked("q", answers=[{"text": "Anna", "answer_start": True}])), "a whole number, found True"),
    (MLQA_DE, squad(asked("q", answers=[{"text": "Bonn", "answer_start": 0}])), "answer 'Bonn' is not in the context"),
    (MLQA_DE, squad(asked("q", question=None)), "expected 'question' to be a text, found None"),
    (MLQA_DE, squad(asked("q"), context=""), "expected 'context' to be a text, found ''"),
    (MLQA_DE, squad(asked("q", question="\ud800")), "'question' has a NUL character .* or half a character"),
]


@pytest.mark.parametrize(("name", "change", "sentence"), DAMAGE)
def test_damage_is_told_in_one_sentence_and_nothing_is_left(
    tmp_path: Path, write_tree: WriteTree, refused, name: str, change: Any, sentence: str
) -> None:
    beside = {other: FILES[other] for other in FILES if other.startswith("QG") and name.startswith("QG")}
    write_tree(tmp_path / "source", {**beside, name: changed(FILES[name], change)})
    if change is None:
        (tmp_path / "source" / name).unlink()
    refused(sentence, prepare, "xglue", [str(tmp_path / "source")])


@pytest.mark.parametrize("name", ["README.txt", "xnli/de.dev", "a/b/XNLI/de.dev", "XNLI/xx.dev"])
def test_a_source_without_xglue_is_refused(tmp_path: Path, write_tree: WriteTree, refused, name: str) -> None:
    source = write_tree(tmp_path / "source", {name: "p\th\tneutral\n"})
    refused("no file of XGLUE was found; expected folders NER, POS", prepare, "xglue", [str(source)])


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory, write_tree: WriteTree) -> PreparedData:
    folder = tmp_path_factory.mktemp("xglue")
    write_tree(folder / "source", FILES)
    prepare("xglue", [str(folder / "source")], folder / "out")
    return open_prepared(str(folder / "out"))


def test_a_part_is_checked_without_an_error_and_described(
    prepared: PreparedData, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {finding.level for finding in check(prepared)} == {"warning"}
    assert prepared.configs()[:3] == ["ner-en", "ner-de", "pos-en"]
    assert main(["data", "stats", str(prepared.folder), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    tasks = {row["task"]: row for row in content["tasks"]}
    assert tasks["XNLI"]["languages"] == ["en", "de"]
    assert tasks["XNLI"]["rows"] == {"train": 2, "validation": 1}
    assert tasks["XNLI"]["published"] == {"train": 433, "validation": 2.5, "test": 5}
    assert list(tasks) == list(TASKS)
    labels = {(row["config"], row["split"]): row["labels"] for row in content["texts"]}
    assert labels["xnli-en", "train"]["label"] == {"neutral": 1, "contradiction": 1, "entailment": 0}
    assert labels["ner-en", "train"]["tags"]["B-PER"] == 1
    assert main(["data", "stats", str(prepared.folder), "--language", "ner-de"]) == 0
    printed = capsys.readouterr().out
    assert "15K / 2.8K / 3.4K" in printed
    assert "\nTable 3" in printed


def test_an_installed_task_loads_by_name(tmp_path: Path, write_tree: WriteTree, monkeypatch) -> None:
    from datasets import load_dataset

    from mrs_datasets.prepared.install import install_dataset

    monkeypatch.setattr("datasets.config.HF_DATASETS_CACHE", tmp_path / "cache")
    write_tree(tmp_path / "source", {"NER/de.test": FILES["NER/de.test"]})
    prepare("xglue", [str(tmp_path / "source")], tmp_path / "out")
    install_dataset(tmp_path / "out", "xglue")
    rows = load_dataset("xglue", "ner-de", split="test", cache_dir=str(tmp_path / "cache"))
    assert rows.to_list() == ROWS["ner-de", "test"]


@pytest.mark.parametrize(("config", "split", "row", "rule"), cases(__file__, "test_the_check_finds_what_does_not_fit"))
def test_the_check_finds_what_does_not_fit(tmp_path: Path, config: str, split: str, row: Any, rule: str) -> None:
    path = tmp_path / "bad" / "data" / config / f"{split}-00000-of-00001.parquet"
    path.parent.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist([row], XGLUE.schema(config)), path)
    (tmp_path / "bad" / "report.json").write_text('{"data_set": "xglue"}', encoding="utf-8")
    errors = {finding.rule for finding in check(open_prepared(str(tmp_path / "bad"))) if finding.level == "error"}
    assert rule in errors


@pytest.mark.parametrize("task", TASKS)
def test_generator_writer_reader_and_scorer_agree(tmp_path: Path, task: str) -> None:
    """Generated rows, written in the archive's layout, come back from it; and the scorer reads the same answers."""
    made = draw_task(task.lower(), 3)
    for split, by_language in made.items():
        for language, rows in by_language.items():
            if split != "train" or language == "en":
                write_split_files(tmp_path, get_task(task), language, split, rows)
    rows, _ = read(tmp_path)
    for (config, split), found in rows.items():
        assert found == made[split][config.partition("-")[2]], (config, split)
    assert len(rows) == 2 * len(made["test"]) + 1
    for language, expected in made["test"].items():
        gold = read_xglue_references(references_path(tmp_path, task, language), task)
        answer = XGLUE.kinds[task.lower()].hidden[0]
        answers = [row[answer] for row in expected]
        if task == "MLQA":
            answers = [[one["text"] for one in given] for given in answers]
            assert gold.ids == [row["id"] for row in expected]
        assert gold.references == answers
        assert gold.queries == ([row["query"] for row in expected] if task == "WPR" else None)


def test_prepared_rows_are_written_in_the_archives_layout(
    prepared: PreparedData, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = write_layout(prepared, tmp_path / "layout")
    assert sorted(path.relative_to(tmp_path / "layout").as_posix() for path in paths) == sorted(FILES)
    assert read(tmp_path / "layout")[0] == ROWS
    command = ["data", "write-xglue", str(prepared.folder), "--out"]
    assert main([*command, str(tmp_path / "some"), "--config", "qg-en", "ner-de"]) == 0
    assert "wrote 3 files" in capsys.readouterr().out
    for arguments, sentence in (
        ([*command, str(tmp_path / "layout")], "exists already"),
        ([*command, str(tmp_path / "other"), "--config", "ner-xx"], "no config 'ner-xx'; it has ner-en"),
        (["data", "write-xglue", "sample", "--out", str(tmp_path / "other")], "expected prepared data of xglue or"),
    ):
        assert main(arguments) == 2
        err = capsys.readouterr().err
        assert sentence in err
        assert err.count("\n") == 1
    assert not (tmp_path / "other").exists()
