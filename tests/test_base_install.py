"""What is installed without extras answers messages; every other command names the extra that it lacks."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.cli.main import main
from mrs_suggest.common import extras
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.suggest.suggester import Suggester

MESSAGES = {"es": "¿Quedamos mañana?", "en": "Are you coming to dinner tonight?", "ja": "明日の会議は何時からですか？"}
SUGGEST = [["suggest", "--json", "--explain", message] for message in MESSAGES.values()]
ANSWERED = [["models", "list"], ["suggest", "I want to kill myself"], ["suggest", "--help"], ["serve", "--help"]]
LACKING = {
    "train": ["train retrieval", "reproduce forgetting", "models export x --onnx", "staple export x --out y"],
    "data": ["data prepare mrs --source sample --out x", "data stats sample"],
    "score": ["install"],
    "demo": ["demo"],
    "serve": ["serve"],
}


def run(commands: list[list[str]], folder: Path) -> list[dict[str, Any]]:
    repository = Path(__file__).parents[1]
    command = [sys.executable, "-m", "tests.lean_process", json.dumps(commands)]
    done = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={"PYTHONPATH": str(repository), "HF_HUB_OFFLINE": "1"}
    )
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


def test_messages_are_answered_as_with_all_extras(tmp_path: Path) -> None:
    found = run([["--version"], *ANSWERED, *SUGGEST], tmp_path)
    assert [(one["words"], one["code"]) for one in found if one["code"] != 0] == [], found
    own = Suggester.from_pretrained("everyday-retriever")
    for one, (language, message) in zip(found[-len(SUGGEST) :], MESSAGES.items(), strict=True):
        answer = json.loads(one["out"])
        expected = own.suggest([message], language)[0]
        assert answer["language"] == language
        assert [suggestion["reply"] for suggestion in answer["suggestions"]] == [s.reply for s in expected]
        assert [s["score"] for s in answer["suggestions"]] == pytest.approx([s.score for s in expected], abs=1e-6)
    assert "everyday-retriever" in found[1]["out"]
    assert "nothing is suggested" in found[2]["out"]


def test_own_replies_are_indexed_and_suggested(tmp_path: Path) -> None:
    """README's second command; memory and ranker stay, as in a folder made with all extras."""
    rows = [("I will be there.", "yes"), ("I cannot come.", "no"), ("Thank you, I will look at it.", "thanks")]
    files = {
        "own.csv": "reply,tags\n" + "".join(f'"{reply}",{tag}\n' for reply, tag in rows),
        "own.txt": "".join(f"{reply}\n" for reply, _ in rows),
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    index = ["models", "index", "everyday-retriever", "--language", "en", "--responses"]
    made = [[*index, name, "--out", f"made-{name}"] for name in files]
    asked = [["suggest", "--json", "--model", f"made-{name}", "I have sent you the report."] for name in files]
    changed = ["models", "index", "made-own.txt", "--language", "en", "--responses", "own.csv", "--remove"]
    found = run([*made, *asked, changed], tmp_path)
    assert [one for one in found[:-1] if one["code"] != 0] == []
    assert (found[-1]["code"], "no reply would be left" in found[-1]["err"]) == (2, True)
    assert main([*index, str(tmp_path / "own.csv"), "--out", str(tmp_path / "whole")]) == 0
    own = Suggester.from_pretrained(tmp_path / "whole")
    expected = own.suggest(["I have sent you the report."], "en")[0]
    assert expected[0].reply == "Thank you, I will look at it."
    for one in found[len(made) : -1]:
        answer = json.loads(one["out"])["suggestions"]
        assert [suggestion["reply"] for suggestion in answer] == [s.reply for s in expected]
        assert [s["score"] for s in answer] == pytest.approx([s.score for s in expected], abs=1e-5)
    made_lean = Suggester.from_pretrained(tmp_path / "made-own.csv", verify=True)
    assert made_lean.tags == own.tags == {"en": ["no", "thanks", "yes"]}
    assert all("ranked by texts and examples" in one["out"] for one in found[: len(made)])


def test_every_command_works_or_names_the_extra_that_it_lacks(tmp_path: Path) -> None:
    from mrs_suggest.cli.main import VERBS

    asked = [(words.split(), extra) for extra, commands in LACKING.items() for words in commands]
    found = run([*([verb, "--help"] for verb in VERBS), *(words for words, _ in asked)], tmp_path)
    subverbs = [
        [*one["words"][:-1], sub, "--help"]
        for one in found[: len(VERBS)]
        for sub in (re.search(r"\{([a-z_,-]+)\}", one["out"]) or [None, ""])[1].split(",")
        if sub
    ]
    for one in [*found, *run(subverbs, tmp_path)]:
        sentence = re.fullmatch(
            r"mrs \w+: .*needs the package '\w+', .*\[(\w+)\]'` in a clone \(docs/install\.md\)\.\n", one["err"]
        )
        assert one["code"] == 0 or (one["code"] == 2 and sentence), one
    for one, (words, extra) in zip(found[len(VERBS) :], asked, strict=True):
        assert f"pip install '.[{extra}]'" in one["err"], (words, one)
    assert not list(tmp_path.iterdir())


def test_a_model_that_needs_torch_says_so(tmp_path: Path) -> None:
    """A retriever on another encoder, and a generator."""
    folder = tmp_path / "retriever"
    shutil.copytree(resolve_model("everyday-retriever"), folder)
    (folder / "run.json").unlink()  # its list of files would tell the change
    config = folder / "query_0_Transformer" / "config.json"
    config.write_text(config.read_text().replace('"bert"', '"xlm-roberta"'))
    (tmp_path / "generator").mkdir()
    (tmp_path / "generator" / "generator.json").write_text("{}")
    (tmp_path / "own.txt").write_text("Yes, sure.\n")
    index = ["models", "index", str(folder), "--language", "en", "--responses", "own.txt", "--out", "made"]
    asked = [["suggest", "--model", str(tmp_path / name), "Hi"] for name in ("retriever", "generator")]
    shutil.copy(resolve_model("everyday-retriever") / "run.json", tmp_path)
    record = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    del record["files"]
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    for one in run([*asked, index], tmp_path):
        assert one["code"] == 2, one
        assert "pip install '.[torch]'" in one["err"], one


def test_the_smallest_extra_is_named_unless_the_command_has_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda module: None if module != "json" else object())

    def named(module: str, extra: str | None = None) -> str | None:
        wrapped = ValueError("a library tells it in other words")
        wrapped.__cause__ = ModuleNotFoundError("no", name=f"{module}.part")
        found = extras.lacking(wrapped, extra)
        return found[1] if found else None

    assert (named("torch"), named("torch", "train"), named("torch", "serve")) == ("torch", "train", "torch")
    assert (named("pyarrow"), named("pyarrow", "score"), named("pandas")) == ("data", "score", "data")
    assert (named("sklearn"), named("accelerate"), named("starlette")) == ("train", "train", "serve")
    assert named("colours_of_no_extra") is None, "a bug, which keeps its traceback"
    assert named("json") is None, "it is there: what failed is something else"
    assert extras.lacking(ValueError("x")) is None
