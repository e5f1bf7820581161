"""`mrs suggest --conversation`."""

import io
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases
from tests.command import Result, refused, shown

pytestmark = pytest.mark.integration
Command = Callable[..., Result]
TURNS = [
    {"from": "them", "text": "¿Quedamos mañana?"},
    {"from": "me", "text": "Vale"},
    {"from": "them", "text": "¿A qué"},
    {"from": "them", "text": "hora?\x1b"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "chat.json"
    path.write_text(json.dumps(TURNS), encoding="utf-8")
    return path


def test_a_file_or_standard_input(mrs_here: Command, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = json.loads(shown(mrs_here("suggest", "--json", "--conversation", file)))
    expected = Suggester.from_pretrained("everyday-retriever").suggest(TURNS)
    assert (found["message"], found["language"]) == ("¿A qué hora?\x1b", "es")
    assert [row["reply"] for row in found["suggestions"]] == expected.replies
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbf" + file.read_bytes())))
    out = shown(mrs_here("suggest", "--conversation", "-"))
    assert out.splitlines()[0] == "> ¿A qué hora?\\x1b  [es]"
    assert [line.strip()[3:] for line in out.splitlines()[1:]] == expected.replies


def test_why_nothing_is_suggested(mrs_here: Command, file: Path) -> None:
    file.write_text(json.dumps(TURNS[:2]))
    assert shown(mrs_here("suggest", "--conversation", file)) == "(nothing is suggested: the last message is yours)\n"
    found = json.loads(shown(mrs_here("suggest", "--json", "--conversation", file)))
    assert (found["message"], found["reason"], found["suggestions"]) == ("", "own_message", [])
    file.write_text(json.dumps([{"from": "them", "text": "I want to kill myself"}, *TURNS[1:]]))
    assert "the conversation seems to be about suicide" in shown(mrs_here("suggest", "--conversation", file))


@pytest.mark.parametrize(
    ("content", "sentence"), [*cases(__file__, "test_refused_files"), ("[" * 100_000, "cannot be read as JSON (")]
)
def test_refused_files(mrs_here: Command, file: Path, content: str | bytes, sentence: str) -> None:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    told = refused(mrs_here("suggest", "--conversation", file))
    assert told.startswith(f"mrs suggest: --conversation {file}: ")
    assert sentence in told


def test_refusals(mrs_here: Command, file: Path, tmp_path: Path) -> None:
    assert "No such file" in refused(mrs_here("suggest", "--conversation", tmp_path / "no.json"))
    for more in (["hi"], ["--interactive"]):
        sentence = refused(mrs_here("suggest", "--conversation", file, *more))
        assert sentence == "mrs suggest: pass either messages to answer, --conversation or --interactive."
    file.write_text(json.dumps([{"from": "them", "text": "de la"}]))
    assert "de la: the language is not clear; it may be es" in refused(mrs_here("suggest", "--conversation", file))
