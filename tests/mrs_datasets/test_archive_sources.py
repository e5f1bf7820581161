"""A data set from an archive, through the command: what its folder would give, or one sentence and nothing else."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from mrs_datasets.prepared import prepare as module
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.cli.main import main

ROW = {"premise": "P.", "choice1": "A.", "choice2": "B.", "question": "cause", "label": 1, "idx": 0, "changed": False}
VALIDATION = "xcopa-master/data/qu/val.qu.jsonl"
FILES = {VALIDATION: json.dumps(ROW) + "\n", VALIDATION.replace("val", "test"): json.dumps(ROW) + "\n"}


def packed(path: Path, files: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return path


@pytest.mark.parametrize("kind", ["zip", "tgz"])
def test_an_archive_gives_what_its_folder_gives(tmp_path: Path, pack, kind: str) -> None:
    source = (packed if kind == "zip" else pack)(tmp_path / f"x.{kind}", FILES)
    prepare("xcopa", [str(source)], tmp_path / "out")
    assert open_prepared(str(tmp_path / "out")).load("qu", "test").to_list() == [{**ROW, "question_corrected": "cause"}]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["README.md", "data", "report.json"]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({**FILES, VALIDATION: json.dumps({**ROW, "label": 2})}, f"x.zip/{VALIDATION}, line 1: expected 'label' to be"),
        ({**FILES, "a/../../above.txt": ""}, "a/../../above.txt"),
        ({**FILES, "zeros": "0" * ((1 << 20) + 1)}, "1 MiB"),
        ({"inner/data.tar.gz": "x"}, "contains another archive (inner/data.tar.gz)"),
        ({"a.txt": "x"}, "neither XCOPA's folder"),
    ],
    ids=["a broken row", "a path above", "a bomb", "an archive in an archive", "another data set"],
)
def test_a_bad_archive_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch, files: dict[str, str], words: str
) -> None:
    unpacked = module.unpacked  # a limit of 1 MiB in place of 1 GiB
    monkeypatch.setattr(module, "unpacked", lambda archive, beside, limit: unpacked(archive, beside, limit >> 10))
    source = packed(tmp_path / "x.zip", files)
    assert main(["data", "prepare", "xcopa", "--source", str(source), "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
    assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]
