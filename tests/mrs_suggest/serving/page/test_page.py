"""What the demo page shows, and the files of its Space; the page itself is driven in tests/integration."""

import ast
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
import yaml

from mrs_suggest.cli.main import run_verb
from mrs_suggest.common.errors import InputError
from mrs_suggest.serving.page.page import PageAnswer, answer_message, status_text, table_html
from mrs_suggest.serving.page.page_space import space_files
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases


class Echo(ServedModel):
    """Answers with the message, and nothing to `none`."""

    def __init__(self, *languages: str) -> None:
        self._languages = list(languages)

    @property
    def languages(self) -> list[str]:
        return self._languages

    def suggest(self, messages: Sequence[str], language: str, k: int = 3) -> list[list[Suggestion]]:
        self.require_language(language)
        return [[Suggestion(f"{text} {n}", 1 / n) for n in range(1, k + 1) if text != "none"] for text in messages]


@pytest.fixture
def echo() -> Suggester:
    return Suggester(Echo("en"))


def test_a_message_is_answered_in_its_language(echo: Suggester) -> None:
    answer = answer_message(echo, "hi")
    assert (answer.language, answer.likely, answer.why) == ("en", [("en", 1.0)], "")
    assert [suggestion.reply for suggestion in answer.suggestions] == ["hi 1", "hi 2", "hi 3"]
    assert 0 < answer.milliseconds < 10_000
    assert re.fullmatch(r"Language: en 100% · \d+\.\d ms", status_text(answer))
    assert re.fullmatch(r"Language: en \(chosen\) · .* ms", status_text(answer_message(echo, "hi", "en")))


@pytest.mark.parametrize(("message", "language", "why"), cases(__file__, "test_why_nothing_is_suggested"))
def test_why_nothing_is_suggested(echo: Suggester, message: str, language: str | None, why: str) -> None:
    answer = answer_message(echo, message, language)
    assert (list(answer.suggestions), answer.why) == ([], why)


def test_a_model_without_a_detector_asks_for_the_language() -> None:
    answer = answer_message(Suggester(Echo("en", "es")), "hi")
    assert "the model has no languages.safetensors to detect it" in answer.why
    assert answer_message(Suggester(Echo("en", "es")), "hi", "es").why == ""


def test_texts_of_a_model_are_shown_as_texts() -> None:
    suggestion = Suggestion("<script>alert(1)</script>", 0.25, {"direct": 0.5, "<b>": -1.0, "votes": 0.0})
    shown = table_html(PageAnswer("en", [], [suggestion], "", 1.0))
    assert "<script>" not in shown
    assert "<b>" not in shown
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in shown
    assert "<td>+0.50</td>" in shown
    assert "votes" not in shown  # it says nothing
    assert table_html(PageAnswer("en", [], [], "x", 1.0)) == ""


def test_wrong_arguments_are_refused() -> None:
    for arguments, sentence in (
        (["--port", "0"], "--port 0: expected 1 to 65535"),
        (["publish", "name"], "'name': the organisation is missing; pass ORG/NAME."),
        (["publish", "org/name", "--model", "no-such-model", "--dry-run"], "no such folder, and no baseline"),
    ):
        with pytest.raises(InputError, match=re.escape(sentence)):
            run_verb("demo", arguments)


# --- the Space ------------------------------------------------------------------------------------------------------


def test_a_space_has_all_that_its_files_import(repository: Path) -> None:
    files = space_files("org/demo", {"org/model@v1": None})
    modules = {
        name.removesuffix(".py").removesuffix("/__init__").replace("/", ".") for name in files if name[-3:] == ".py"
    }
    ours = {"mrs_metrics", "mrs_suggest"}
    modules.add("mrs_suggest.training.api")  # whose names `mrs_suggest` imports on first use; a Space trains nothing
    for name, content in files.items():
        if not name.endswith(".py"):
            continue
        text = content.decode() if isinstance(content, bytes) else content.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0].startswith("mrs_"):
                assert (node.module or "").split(".")[0] in ours, f"{name}:{node.lineno}"
                assert node.module in modules, f"{name}:{node.lineno}"
    assert "mrs_suggest/common/text/languages.yaml" in files
    assert not [name for name in files if "embedded" in name or "__pycache__" in name]
    card = yaml.safe_load(files["README.md"].decode().split("---")[1])  # type: ignore[union-attr]
    assert (card["sdk"], card["app_file"], card["models"]) == ("gradio", "app.py", ["org/model"])
    assert "load_models(['org/model@v1'])" in files["app.py"].decode()  # type: ignore[union-attr]
    compile(files["app.py"], "app.py", "exec")  # type: ignore[arg-type]


def test_models_of_this_machine_come_along(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    weights = tmp_path / "run" / "model.safetensors"
    weights.write_bytes(b"0")
    run = str(tmp_path / "run")
    files = space_files("org/demo", {run: {"model.safetensors": weights}, "everyday-retriever": {"run.json": b"{}"}})
    assert files["models/run/model.safetensors"] == weights
    assert "load_models(['models/run', 'models/everyday-retriever'])" in files["app.py"].decode()  # type: ignore[union-attr]
    other = tmp_path / "b" / "run"
    other.mkdir(parents=True)
    with pytest.raises(InputError, match="another model has the same name"):
        space_files("org/demo", {run: {}, str(other): {}})
