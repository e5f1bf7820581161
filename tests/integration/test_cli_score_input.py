"""`mrs score -`, and `--sentences punkt` on the command line."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.cli.main import run_verb
from mrs_suggest.common.errors import InputError
from tests.cases import cases
from tests.mrs_metrics.test_punkt import PARAMETERS

ROWS = "hi\tI don't. Help?\tI don't. Yes?\tno\nbye\tsee you\tSee you!\n"
Put = Callable[[str], None]


@pytest.fixture
def piped(monkeypatch: pytest.MonkeyPatch) -> Put:
    """Return a function that puts a text on standard input."""

    def put(text: str) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode("utf-8")), encoding="utf-8"))

    return put


@pytest.fixture
def parameters(tmp_path: Path) -> Path:
    """A folder of Punkt's parameters."""
    folder = tmp_path / "english"
    folder.mkdir()
    for name, text in PARAMETERS.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def scored(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert run_verb("score", [*map(str, arguments), "--language", "en", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_standard_input_is_scored_as_the_file_would_be(
    tmp_path: Path, piped: Put, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(ROWS, encoding="utf-8")
    piped(ROWS)
    assert scored(capsys, "-") == scored(capsys, path)
    piped(ROWS)
    both = scored(capsys, "-", path)
    assert [row["weighted"] for row in both] == [both[0]["weighted"]] * 2


@pytest.mark.parametrize(
    ("text", "arguments", "sentence"),
    [
        ("a\n", ["-"], r"^standard input, line 1: expected message"),
        ("", ["-"], r"^standard input: the file is empty"),
        (ROWS, ["-", "-"], "can be read only once"),
        (ROWS, ["-", "--metric", "xglue_score", "--gold", "."], "reads a folder of predictions"),
    ],
)
def test_broken_standard_input_is_refused_by_its_name(
    text: str, arguments: list[str], sentence: str, piped: Put
) -> None:
    piped(text)
    with pytest.raises(InputError, match=sentence):
        run_verb("score", [*arguments, "--language", "en"])


@pytest.mark.parametrize("metric", ["mrs_rouge", "dist_n", "self_rouge"])
def test_sentences_are_split_on_request(
    metric: str, parameters: Path, piped: Put, capsys: pytest.CaptureFixture[str]
) -> None:
    piped(ROWS)
    found = scored(capsys, "-", "--metric", metric, "--sentences", "punkt", "--punkt", parameters)
    assert "|sent:punkt-en-" in found["signature"]
    piped(ROWS)
    assert "|sent:no|" in scored(capsys, "-", "--metric", metric)["signature"]


@pytest.mark.parametrize(("arguments", "sentence"), cases(__file__, "test_what_cannot_be_used_is_refused"))
def test_what_cannot_be_used_is_refused(arguments: list[str], sentence: str, piped: Put) -> None:
    piped(ROWS)
    with pytest.raises(InputError, match=sentence):
        run_verb("score", ["-", "--language", "en", *arguments])
