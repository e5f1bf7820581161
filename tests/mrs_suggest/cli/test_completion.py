"""`mrs completion`: the answers of the shells themselves, from the printed scripts."""

import importlib
import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

from mrs_suggest.cli import completion
from mrs_suggest.cli.main import VERBS, run_verb
from tests.cases import cases

LINES = cases(__file__, "LINES")
ASK_BASH = """
source ./mrs.bash
while read -r line; do
    COMP_WORDS=(mrs $line) COMPREPLY=()
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
    _mrs
    printf '%s\\n' "${COMPREPLY[*]}"
done
"""


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the script of each shell, and a file to complete."""
    folder = tmp_path_factory.mktemp("completion")
    (folder / "chats-file.tsv").touch()
    for shell in completion.SHELLS:
        with pytest.MonkeyPatch.context() as patch:
            printed: list[str] = []
            patch.setattr("builtins.print", lambda *words, printed=printed, **_: printed.append(*words))
            assert run_verb("completion", [shell]) == 0
        (script,) = printed  # no note about a missing library
        (folder / f"mrs.{shell}").write_text(f"{script}\n", encoding="utf-8")
    return folder


def test_bash_completes_words(scripts: Path) -> None:
    asked = "\n".join(line for line, _ in LINES) + "\n"
    done = subprocess.run(["bash", "-c", ASK_BASH], input=asked, cwd=scripts, capture_output=True, text=True)
    assert done.stderr == ""
    assert [sorted(line.split()) for line in done.stdout.splitlines()] == [words for _, words in LINES]


def test_bash_at_a_terminal_completes_words_and_files(scripts: Path) -> None:
    main, terminal = pty.openpty()
    environment = {**os.environ, "INPUTRC": os.devnull, "TERM": "dumb", "PS1": ""}
    with subprocess.Popen(
        ["bash", "--norc", "-i"], stdin=terminal, stdout=terminal, stderr=terminal, cwd=scripts, env=environment
    ) as bash:
        os.write(main, b"source ./mrs.bash; mrs() { printf '<%s>' \"$@\"; echo; }\n")
        os.write(main, b"mrs dat\tpre\t\nmrs score chats-f\t\nexit\n")
        assert bash.wait(60) == 0
    os.close(terminal)
    shown = os.read(main, 1 << 16).decode()
    os.close(main)
    assert "<data><prepare>" in shown
    assert "<score><chats-file.tsv>" in shown


def test_fish_completes_words(scripts: Path) -> None:
    if not shutil.which("fish"):
        pytest.skip("needs fish")
    for line, words in LINES[:-2]:
        code = f"source mrs.fish; complete --do-complete 'mrs {line}'"
        done = subprocess.run(
            ["fish", "--no-config", "-c", code], cwd=scripts, capture_output=True, text=True, check=True
        )
        assert sorted(answer.partition("\t")[0] for answer in done.stdout.splitlines()) == words, line


def test_zsh_takes_the_script(scripts: Path) -> None:
    if not shutil.which("zsh"):
        pytest.skip("needs zsh")
    subprocess.run(["zsh", "-n", "mrs.zsh"], cwd=scripts, check=True)


def test_a_verb_whose_library_is_missing_stays_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.import_module

    def without_torch(name: str) -> object:
        if name in ("mrs_suggest.cli.models", "mrs_trainers.retrieval"):
            raise ModuleNotFoundError("No module named 'torch'")
        return real(name)

    monkeypatch.setattr(completion.importlib, "import_module", without_torch)
    parsers, left_out = completion.command_parsers()
    (verb,) = (action for action in parsers[""]._actions if action.dest == "verb")
    assert list(verb.choices or ()) == list(VERBS)
    reason = "No module named 'torch'"
    assert left_out == {" train retrieval": reason, " models": reason}
