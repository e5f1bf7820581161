"""`mrs train --config trainers/configs/...` works from any folder."""

from pathlib import Path

import pytest

from mrs_suggest.cli.train import _with_shipped_config

NAME = "trainers/configs/retrieval/quickstart.yaml"


@pytest.mark.parametrize(
    "words", [["--data", "x", "--config", NAME], ["--data", "x", "--config", "y", f"--config={NAME}"]]
)
def test_the_file_of_the_package_stands_for_one_that_is_not_here(
    words: list[str], tmp_path: Path, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    *rest, last = words
    *left, word = _with_shipped_config(words)
    assert left == rest, "in their order, and nothing else is changed"
    option, _, shipped = word.rpartition("=")
    assert option == last.rpartition("=")[0]
    assert Path(shipped).read_bytes() == (repository / NAME).read_bytes()


def test_files_that_are_here_and_others_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    mine = tmp_path / NAME
    for name in ("mine.yaml", "trainers/configs/retrieval/no_such.yaml"):
        assert _with_shipped_config(["--config", name]) == ["--config", name]
    mine.parent.mkdir(parents=True)
    mine.write_text("seed: 1\n", encoding="utf-8")
    assert _with_shipped_config(["--config", NAME]) == ["--config", NAME]
