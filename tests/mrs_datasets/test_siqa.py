"""Social IQa: read, checked, described, loaded."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.readers.siqa import TEXTS
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from tests.cases import cases

WriteTree = Callable[[Path, dict[str, Any]], Path]
ROW = {"context": "C.", "question": "Why?", "answerA": "a", "answerB": "b", "answerC": "c"}


def lines(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def examples(split: str, number: int) -> dict[str, str]:
    """The files of a split; row n has the label n modulo 3, plus 1."""
    rows = [{**ROW, "context": f"Context {n} of {split}."} for n in range(number)]
    return {f"{split}.jsonl": lines(*rows), f"{split}-labels.lst": "".join(f"{n % 3 + 1}\n" for n in range(number))}


@pytest.mark.parametrize("folder", ["", "socialiqa-train-dev/"])
def test_every_row_has_its_own_label_and_number(tmp_path: Path, write_tree: WriteTree, folder: str) -> None:
    files = {**examples("train", 5), **examples("dev", 4)}
    write_tree(tmp_path / "source", {folder + name: text for name, text in files.items()})
    prepare("siqa", [str(tmp_path / "source")], tmp_path / "out")
    data = open_prepared(str(tmp_path / "out"))
    assert data.splits("en") == ["train", "validation"]
    for split, name, size in (("train", "train", 5), ("validation", "dev", 4)):
        expected = [{**ROW, "context": f"Context {n} of {name}.", "label": n % 3, "idx": n} for n in range(size)]
        assert data.load("en", split).to_list() == expected


def test_a_whole_source_has_no_note_and_no_finding(
    tmp_path: Path, write_tree: WriteTree, capsys: pytest.CaptureFixture[str]
) -> None:
    write_tree(tmp_path / "source", {**examples("train", 33_410), **examples("dev", 1_954)})
    report = prepare("siqa", [str(tmp_path / "source")], tmp_path / "out")
    assert (report["notes"], report["partial_splits"]) == ([], [])
    assert main(["data", "check", str(tmp_path / "out"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["errors"] == 0


def test_a_part_is_noted_and_checks_without_an_error(
    tmp_path: Path, write_tree: WriteTree, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {**examples("dev", 3), "test.jsonl": lines(ROW)}
    write_tree(tmp_path / "source", files)
    report = prepare("siqa", [str(tmp_path / "source")], tmp_path / "out")
    assert report["notes"] == [
        "en: test.jsonl is left out, since the archive has no labels for it.",
        "not in the source: train.",
        "en: the validation split has 3 rows, a complete source has 1,954.",
    ]
    assert report["partial_splits"] == ["en/validation"]
    assert list(report["configs"]["en"]) == ["validation"]
    assert main(["data", "check", str(tmp_path / "out")]) == 0
    out = capsys.readouterr().out
    assert "rows of a whole source (noted in report.json)" in out
    assert "test.jsonl is left out" in (tmp_path / "out" / "README.md").read_text(encoding="utf-8")


THREE = {**examples("dev", 3)}
DAMAGE: dict[str, tuple[dict[str, str | bytes | None], str]] = {
    **cases(__file__, "DAMAGE"),
    "cut off": ({"dev.jsonl": THREE["dev.jsonl"][:-20]}, r"dev\.jsonl, line 3: not a JSON object .*truncated"),
    "empty line": ({"dev.jsonl": lines(ROW) + "\n" + lines(ROW)}, r"dev\.jsonl, line 2: an empty line"),
}
for name in TEXTS:
    for kind, row in (
        ("missing", {key: text for key, text in ROW.items() if key != name}),
        ("blank", {**ROW, name: " "}),
    ):
        sentence = rf"dev\.jsonl, line 2: expected '{name}' to be a text, found "
        DAMAGE[f"{name} {kind}"] = ({"dev.jsonl": lines(ROW, row, ROW)}, sentence)


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_one_sentence_with_file_and_line(tmp_path: Path, write_tree: WriteTree, refused, kind: str) -> None:
    change, sentence = DAMAGE[kind]
    files = {name: content for name, content in {**THREE, **change}.items() if content is not None}
    source = str(write_tree(tmp_path / "source", files))
    assert source in refused(sentence, prepare, "siqa", [source])


def test_check_tells_of_leaks_and_equal_answers_but_lets_contexts_repeat(
    tmp_path: Path, write_tree: WriteTree, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = {"train": [ROW, {**ROW, "question": "How?"}], "dev": [{**ROW, "answerC": "a"}, ROW]}
    for name, content in rows.items():
        write_tree(tmp_path / "source", {f"{name}.jsonl": lines(*content), f"{name}-labels.lst": "1\n2\n"})
    prepare("siqa", [str(tmp_path / "source")], tmp_path / "out")
    assert main(["data", "check", str(tmp_path / "out"), "--json"]) == 1
    found = {
        (finding["level"], finding["rule"], finding["where"], finding["count"])
        for finding in json.loads(capsys.readouterr().out)["findings"]
    }
    sizes = {rule for _, rule, _, _ in found if "whole source" in rule}
    assert {finding for finding in found if finding[1] not in sizes} == {
        ("error", "row identical to one of train", "en/validation", 1),
        ("warning", "equal answerA and answerB and answerC", "en/validation", 1),
    }


def test_what_a_view_hides_is_gone_and_the_rest_is_as_it_was(tmp_path: Path, write_tree: WriteTree) -> None:
    write_tree(tmp_path / "source", {**examples("train", 3), **examples("dev", 2)})
    prepare("siqa", [str(tmp_path / "source")], tmp_path / "out", views=["nop", "noq", "nopq"])
    data = open_prepared(str(tmp_path / "out"))
    for view, hidden in (("nop", {"context"}), ("noq", {"question"}), ("nopq", {"context", "question"})):
        for split in ("train", "validation"):
            whole = data.load("en", split).to_list()
            left = [{name: row[name] for name in row if name not in hidden} for row in whole]
            assert data.load(f"{view}-en", split).to_list() == left
    assert not [finding for finding in check(data) if finding.level == "error"]
    with pytest.raises(InputError, match="--views pairs: siqa has nop noq nopq"):
        prepare("siqa", [str(tmp_path / "source")], tmp_path / "again", views=["pairs"])
