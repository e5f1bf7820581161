"""`mrs completion`: the shells' own answers, from the scripts that it prints."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from mrs_suggest.cli import completion
from mrs_suggest.cli.main import VERBS

pytest.importorskip("shtab")

LINES = [
    ("data pre", ["prepare"]),
    ("data prepare xc", ["xcopa"]),
    ("suggest --lang e", ["el", "en", "es", "et"]),
    ("suggest --guard-l", ["--guard-lists"]),
    ("train retr", ["retrieval"]),
    ("train retrieval --sampling_a", ["--sampling_alpha"]),
    ("score --metric mrs_r", ["mrs_rouge"]),
    ("train retrieval --data chats-f", ["chats-folder"]),
    ("score chats-f", ["chats-file.tsv", "chats-folder"]),
    ("demo --mod", ["--model"]),
    ("nothing x", []),
]
ASK_BASH = """
source ./mrs.bash
while read -r line; do
    COMP_WORDS=(mrs $line) COMPREPLY=()
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _shtab_mrs mrs "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"
    printf '%s\\n' "${COMPREPLY[*]}"
done
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell, and something to complete."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "chats-folder").mkdir()
    (folder / "chats-file.tsv").touch()
    for shell in completion.SHELLS:
        with pytest.MonkeyPatch.context() as patch:
            printed: list[str] = []
            patch.setattr("builtins.print", lambda *words, printed=printed, **_: printed.append(*words))
            assert completion.main([shell]) == 0
        (folder / f"mrs.{shell}").write_text("\n".join(printed), encoding="utf-8")
    return folder


def test_every_verb_and_trainer_is_there_with_its_options() -> None:
    parser, left_out = completion.command_parser()
    assert left_out == {}
    (verbs,) = (action for action in parser._actions if action.dest == "verb")
    assert list(verbs.choices or ()) == list(VERBS)
    dests = {action.dest for action in completion.actions_of(parser)}
    assert {"lang", "metric", "learning_rate", "language_model", "shell"} <= dests


def test_bash(scripts: Path) -> None:
    asked = "\n".join(line for line, _ in LINES) + "\n"
    done = subprocess.run(["bash", "-c", ASK_BASH], input=asked, cwd=scripts, capture_output=True, text=True)
    assert done.stderr == ""
    assert [sorted(line.split()) for line in done.stdout.splitlines()] == [words for _, words in LINES]


def test_fish(scripts: Path) -> None:
    if not shutil.which("fish"):
        pytest.skip("needs fish")
    for line, words in LINES[:-1]:
        code = f"source mrs.fish; complete --do-complete 'mrs {line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", code], cwd=scripts, capture_output=True, text=True, check=True
        )
        found = sorted(answer.partition("\t")[0].rstrip("/") for answer in done.stdout.splitlines())
        assert found == words, line


def test_zsh_takes_the_script(scripts: Path) -> None:
    if not shutil.which("zsh"):
        pytest.skip("needs zsh")
    subprocess.run(["zsh", "-n", "mrs.zsh"], cwd=scripts, check=True)
    assert (scripts / "mrs.zsh").read_text(encoding="utf-8").startswith("#compdef mrs")


def test_a_verb_whose_library_is_missing_stays_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    real = importlib.import_module

    def without_torch(name: str) -> object:
        if name in ("mrs_suggest.cli.models", "mrs_trainers.retrieval"):
            raise ModuleNotFoundError("No module named 'torch'")
        return real(name)

    monkeypatch.setattr(completion.importlib, "import_module", without_torch)
    parser, left_out = completion.command_parser()
    (verbs,) = (action for action in parser._actions if action.dest == "verb")
    assert list(verbs.choices or ()) == list(VERBS)
    reason = "No module named 'torch'"
    assert left_out == {"train retrieval": reason, "models": reason}
