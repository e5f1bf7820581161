"""`openai:URL#MODEL` and `openai:FILE.yaml`: what is read, and what is refused in one sentence without secrets."""

from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.language_model.chat import PROMPT, Endpoint, read_endpoint
from tests.cases import cases

URL = "http://localhost:8000/v1"
SECRET = "sk-a-secret-1234"


def test_a_url_and_a_model() -> None:
    assert read_endpoint(f"openai:{URL}#Qwen/Qwen2.5-7B-Instruct") == Endpoint(URL, "Qwen/Qwen2.5-7B-Instruct")
    assert Endpoint(URL, "m").languages == ("en", "es", "de", "pt", "fr", "ja", "sv", "it", "nl", "ru")
    assert "{language}" in PROMPT
    assert "{count}" in PROMPT


def test_a_file_with_every_key(tmp_path: Path) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(
        f"url: {URL}\nmodel: m\nprompt: Three replies in {{language}}.\nlanguages: [en, pl]\ntemperature: null\n"
        "max_tokens: 100\ntimeout: 5\nretries: 0\nconcurrency: 8\nprice_per_million: {input: 0.15, output: 0.6}\n"
        f"cache: {tmp_path}\nkey_variable: OTHER_KEY\n",
        encoding="utf-8",
    )
    expected = Endpoint(
        URL, "m", "Three replies in {language}.", ("en", "pl"), None, 100, 5.0, 0, 8, {"input": 0.15, "output": 0.6},
        tmp_path, "OTHER_KEY",
    )  # fmt: skip
    assert read_endpoint(f"openai:{path}") == expected


def test_the_file_in_the_guide(tmp_path: Path, repository: Path) -> None:
    guide = (repository / "docs" / "how_to" / "language_model.md").read_text(encoding="utf-8")
    path = tmp_path / "model.yaml"
    path.write_text(guide.partition("```yaml\n")[2].partition("```")[0], encoding="utf-8")
    settings = read_endpoint(f"openai:{path}")
    assert settings.price_per_million == {"input": 0.15, "output": 0.6}
    assert {name for name in vars(settings) if f"\n{name}:" in guide} == set(vars(settings))


def test_a_prompt_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("Antworte auf {language}.\n", encoding="utf-8")
    (tmp_path / "model.yaml").write_text(f"url: {URL}\nmodel: m\nprompt: mine.txt\n", encoding="utf-8")
    assert read_endpoint(f"openai:{tmp_path}/model.yaml").prompt == "Antworte auf {language}."
    (tmp_path / "mine.txt").write_text("Be brief.", encoding="utf-8")
    with pytest.raises(InputError, match=r"prompt: expected a text with \{language\}, or a file with one; pass"):
        read_endpoint(f"openai:{tmp_path}/model.yaml")


@pytest.mark.parametrize(("place", "problem"), cases(__file__, "test_names_that_are_no_endpoint"))
def test_names_that_are_no_endpoint(place: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as caught:
        read_endpoint(f"openai:{place}")
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(("lines", "problem"), cases(__file__, "test_files_that_are_refused"))
def test_files_that_are_refused(tmp_path: Path, lines: str, problem: str) -> None:
    path = tmp_path / "model.yaml"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match=problem) as caught:
        read_endpoint(f"openai:{path}")
    assert SECRET not in str(caught.value)
    assert str(caught.value).startswith(f"openai:{path}: ")
    assert str(caught.value).endswith(".")
