"""`mrs score` and `mrs suggest`: in the process, and through the installed command where the process matters."""

import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.command import refused
from tests.untrained import untrained_retriever

pytestmark = pytest.mark.integration

BIN = Path(sys.executable).parent
REPLIES = ["Yes, sure!", "yes sure", "No.", "Thanks a lot", "See you tomorrow", "YES, SURE"]
Command = Callable[..., "tuple[int, str, str]"]


@pytest.fixture
def run(mrs_here: Command) -> Command:
    return mrs_here


# --- mrs score


@pytest.mark.parametrize("language", ["es", "ja"])
def test_golden_files(run: Command, shared_data: Path, language: str) -> None:
    if language == "ja":
        pytest.importorskip("fugashi", reason="needs fugashi, of the extra [ja]")
        pytest.importorskip("unidic_lite", reason="needs unidic-lite, of the extra [ja]")
    folder = shared_data / "golden" / "rouge"
    expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))[language]
    code, out, err = run("score", folder / f"{language}.tsv", "--language", language, "--json")
    assert code == 0
    assert all(line.startswith("warning: ") for line in err.splitlines())
    got = json.loads(out)
    assert got["n"] == expected["n"]
    for key in ("rouge1", "rouge2", "rouge3", "weighted"):
        assert got[key] == pytest.approx(expected[key], abs=1e-6)
    assert got["interval"][0] < got["weighted"] < got["interval"][1]
    assert f"|lang:{language}|" in got["signature"]
    assert "skipped" in got
    code, printed, _ = run("score", folder / f"{language}.tsv", "--language", language)
    assert code == 0
    for key in ("rouge1", "rouge2", "rouge3", "weighted", "dist1", "dist2"):
        assert f"{got[key]:.4f}" in printed, "the table shows the same figures"
    for text in (f"{got['n']}", "[{:.4f}, {:.4f}]".format(*got["interval"]), got["signature"], got["dist_signature"]):
        assert text in printed


def scored(run: Command, path: Path, text: str | bytes, *options: object) -> dict[str, Any]:
    path.write_bytes(text.encode("utf-8") if isinstance(text, str) else text)
    code, out, err = run("score", path, "--language", "en", "--json", *options)
    assert code == 0
    assert all(line.startswith("warning: ") for line in err.splitlines())
    return json.loads(out)


def test_all_references_skipped_is_refused(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("a\t...\tyes\t\t\nb\t\tno\t\t\n")
    assert str(path) in refused(run("score", path, "--language", "en"))
    assert refused(run("score", path, "--language", "en", "--json"))


def test_more_or_fewer_suggestions(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    assert "nbest:1" in scored(run, path, "a\tyes\tyes\n", "--nbest", 1)["dist_signature"]
    assert scored(run, path, "a\tyes\tno\tno\tno\tyes\n", "--nbest", 4)["weighted"] == pytest.approx(1 / 6, abs=1e-6)
    assert "1 to 2 suggestions" in refused(run("score", path, "--language", "en", "--nbest", 2))


# --- mrs suggest


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained retriever, saved as a run saves it."""
    return untrained_retriever(tmp_path_factory.mktemp("suggest"), REPLIES, ["en", "es"])


def command(*arguments: object, stdin: str | bytes = "") -> subprocess.CompletedProcess[bytes]:
    """The installed command in its own process, on one thread, in a UTF-8 locale."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "LC_ALL": "C.UTF-8"}
    return subprocess.run(
        [str(BIN / "mrs"), *map(str, arguments)],
        input=stdin.encode("utf-8") if isinstance(stdin, str) else stdin,
        env=environment, capture_output=True, timeout=120,
    )  # fmt: skip


def test_three_suggestions_to_each_message(run: Command, model: Path) -> None:
    code, out, _ = run("suggest", "--model", model, "--language", "en", "Are you coming?", "¿Qué?")
    assert code == 0
    lines = out.splitlines()
    assert [line for line in lines if line.startswith("> ")] == ["> Are you coming?", "> ¿Qué?"]
    for begin in (0, 4):
        assert [line[:5] for line in lines[begin + 1 : begin + 4]] == ["  1. ", "  2. ", "  3. "]
        replies = [line[5:] for line in lines[begin + 1 : begin + 4]]
        assert len(set(replies)) == 3
        assert set(replies) <= {"Yes, sure!", "No.", "Thanks a lot", "See you tomorrow"}


def test_json_lines(run: Command, model: Path) -> None:
    messages = ["first", 'with "quotes"', "はい\tそう"]
    code, out, _ = run("suggest", "--model", model, "--language", "es", "--json", "--count", 2, *messages)
    assert code == 0
    records = [json.loads(line) for line in out.splitlines()]
    assert [record["message"] for record in records] == messages
    for record in records:
        assert (record["language"], record["model"], len(record["suggestions"])) == ("es", str(model), 2)
        assert record["suggestions"][0]["score"] >= record["suggestions"][1]["score"]
    assert "はい" in out  # readable, not escaped


def test_interactive_from_a_pipe(model: Path) -> None:
    typed = "hello\n\n   \nare you there?\r\n\nlast without a line end"
    done = command("suggest", "--model", model, "--language", "en", "--interactive", "--json", stdin=typed)
    assert done.returncode == 0
    assert done.stderr == b""  # no prompt, no progress bars, no warnings
    messages = [json.loads(line)["message"] for line in done.stdout.decode().splitlines()]
    assert messages == ["hello", "", "   ", "are you there?", "", "last without a line end"]  # a line, an object
    plain = command("suggest", "--model", model, "--language", "en", "--interactive", stdin="hello\n")
    assert plain.stdout.startswith(b"> hello\n  1. ")
    assert plain.stdout.count(b"\n") == 4


def test_bytes_that_are_no_text_end_in_no_traceback(model: Path) -> None:
    """A pipe may carry another encoding: the bad line is answered or refused in a sentence, the others are answered."""
    typed = b"hello\nni\xf1o \xff\xfe\nbye\n"
    done = command("suggest", "--model", model, "--language", "en", "--interactive", "--json", stdin=typed)
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 2)
    assert done.returncode == 0 or done.stderr.count(b"\n") == 1
    assert b'"hello"' in done.stdout
    done = subprocess.run(
        [str(BIN / "mrs").encode(), b"suggest", b"--model", str(model).encode(), b"--language", b"en", b"ni\xf1o"],
        capture_output=True,
        timeout=120,
    )
    assert b"Traceback" not in done.stderr
    assert done.returncode in (0, 2)


def test_a_reader_that_leaves_is_no_error(model: Path) -> None:
    script = f"yes hello | head -200 | {BIN / 'mrs'} suggest --model {model} --language en --interactive | head -1"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, timeout=120)
    assert done.stdout == "> hello\n"
    assert done.stderr == f"model: {model}\n"


def test_what_a_reply_sends_to_a_terminal_is_shown(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    from mrs_suggest import Suggester, Suggestion
    from mrs_suggest.suggest.answering import Answer

    class Evil:
        def suggest(
            self, messages: Sequence[str], language: str, k: int, *tags: object, **more: object
        ) -> list[Answer]:
            return [Answer([Suggestion("Sí\x1b]0;owned\x07\x9b2J\u202e", 1.0)]) for _ in messages]

    with monkeypatch.context() as patch:
        patch.setattr(Suggester, "from_pretrained", staticmethod(lambda *_, **__: Evil()))
        code, out, err = run("suggest", "--language", "es", "hola\x1b[2J")
        assert (code, out) == (0, "> hola\\x1b[2J\n  1. Sí\\x1b]0;owned\\x07\\x9b2J\\u202e\n")
        code, out, err = run("suggest", "--language", "es", "--json", "hola")
    assert "\x9b" not in out
    assert json.loads(out)["suggestions"][0]["reply"] == "Sí\x1b]0;owned\x07\x9b2J\u202e"
    code, _, err = run("suggest", "--language", "es", "--model", "folder\x1b[2J", "hola")
    assert code == 2
    assert "folder\\x1b[2J: no such folder" in err


TEXTS = {
    "en": ["Are you coming?", "Yes, sure!", "See you there"],
    "es": ["¿Vienes mañana?", "¡Claro que sí!", "Hasta luego"],
}


@pytest.fixture(scope="session")
def detecting(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with a language detector."""
    from mrs_suggest.suggest.language_detector import LanguageDetector

    folder = tmp_path_factory.mktemp("detecting") / "model"
    shutil.copytree(model, folder)
    LanguageDetector.train({code: [*texts, *(f"{text} " * 2 for text in texts)] for code, texts in TEXTS.items()}).save(
        folder
    )
    return folder


def test_the_language_is_detected_message_by_message(run: Command, detecting: Path) -> None:
    code, out, err = run("suggest", "--model", detecting, "Are you there?", "¿Vienes?", "日本", "Yes!\x1b[2J")
    assert code == 0
    shown = [line for line in out.splitlines() if line.startswith(">")]
    assert shown == ["> Are you there?  [en]", "> ¿Vienes?  [es]", "> Yes!\\x1b[2J  [en]"]
    assert err.splitlines()[1:] == ["mrs suggest: 日本: the language is not clear; pass --language with one of en es."]
    code, out, err = run("suggest", "--model", detecting, "--json", "Are you there?", "日本")
    first, second = map(json.loads, out.splitlines())
    assert (code, err, first["language"], len(first["suggestions"])) == (0, "", "en", 3)
    assert second == {
        "message": "日本", "language": None, "model": str(detecting), "suggestions": [], "reason": "language_unclear",
    }  # fmt: skip


def test_typed_messages_are_detected_each(run: Command, detecting: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Are you there?\n\n¿Vienes?\n123\n"))
    code, out, err = run("suggest", "--model", detecting, "--interactive")
    assert (code, [line for line in out.splitlines() if line.startswith(">")]) == (
        0, ["> Are you there?  [en]", "> ¿Vienes?  [es]"],
    )  # fmt: skip
    assert "mrs suggest: 123: the language is not clear" in err
    monkeypatch.setattr("sys.stdin", io.StringIO("¿Vienes?\n\n"))
    code, out, err = run("suggest", "--model", detecting, "--interactive", "--json")
    assert (code, err, [json.loads(line)["language"] for line in out.splitlines()]) == (0, "", ["es", None])


def test_one_message_of_an_unclear_language_is_refused(run: Command, detecting: Path) -> None:
    for more in ((), ("--json",)):
        sentence = refused(run("suggest", "--model", detecting, *more, "日本"))
        assert sentence == "mrs suggest: 日本: the language is not clear; pass --language with one of en es."
    sentence = refused(run("suggest", "--model", detecting, "there hasta"))
    language = r"(es|en) \(\d\d%\)"
    pattern = rf"mrs suggest: there hasta: the language is not clear; it may be {language} or {language}; pass .*"
    assert re.fullmatch(pattern, sentence)
    assert run("suggest", "--model", detecting, "--language", "en", "日本")[0] == 0


def test_refusals_without_a_language(run: Command, model: Path, detecting: Path, tmp_path: Path) -> None:
    for arguments in (["hi"], ["hi", "hola"], ["--interactive"]):
        sentence = refused(run("suggest", "--model", model, *arguments))
        assert sentence == (
            "mrs suggest: --language: the model has no languages.safetensors to detect it; it answers en es, pass one "
            "of these."
        )
    folder = tmp_path / "model"
    shutil.copytree(detecting, folder)
    (folder / "languages.safetensors").write_bytes(b"\0" * 100)
    assert "languages.safetensors: damaged" in refused(run("suggest", "--model", folder, "hi"))
    assert "languages.safetensors: damaged" in refused(run("suggest", "--model", folder, "--language", "en", "hi"))
    shutil.copy(detecting / "languages.safetensors", folder)
    (folder / "response_index" / "es").rename(folder / "response_index" / "it")
    code, out, _ = run("suggest", "--model", folder, "--json", "hola", "hi")
    spanish, english = map(json.loads, out.splitlines())
    assert (code, spanish["language"], spanish["suggestions"], spanish["reason"]) == (0, "es", [], "no_replies")
    assert english["language"] == "en"
    assert english["suggestions"]


def test_refusals_of_suggest(run: Command, model: Path, tmp_path: Path) -> None:
    sentence = refused(run("suggest", "--model", model, "--language", "ja", "hi"))
    assert sentence == "mrs suggest: --language ja: the model answers en es; pass one of these."
    assert "no trained model" in refused(run("suggest", "--model", tmp_path, "--language", "en", "hi"))
    assert "no such folder" in refused(run("suggest", "--model", tmp_path / "no", "--language", "en", "hi"))
    assert "a message is empty" in refused(run("suggest", "--model", model, "--language", "en", " "))
    assert "either messages" in refused(run("suggest", "--model", model, "--language", "en"))
    assert "either messages" in refused(run("suggest", "--model", model, "--language", "en", "--interactive", "hi"))
    too_few = refused(run("suggest", "--model", model, "--language", "en", "--count", 0, "hi"))
    assert "--count: expected 1 or more, found 0." in too_few
