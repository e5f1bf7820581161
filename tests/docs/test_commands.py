"""Every command of the documentation is one that the project has, and ran in a test or says why not."""

import argparse
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "docs" / "site"))  # the site's own scripts; no name of theirs is a library's

import blocks  # noqa: E402
import parsers  # noqa: E402

from tests.docs.test_training_snippets import PAGES as GUIDES  # noqa: E402  their commands marked `tested` run there

PAGES = blocks.pages(ROOT)
LAUNCHERS = ("accelerate", "torchrun")
MADE = "docs/first_contribution.md"  # its test runs its commands once it has added what they name
OTHER_PROGRAMS = {"curl", "npx", "pip", "sudo", "export", "source", "git", "cd", "ln", "pytest", "lm_eval", "lighteval"}


@cache
def known_commands() -> dict[str, argparse.ArgumentParser]:
    return parsers.commands()


def each_command() -> Iterator[tuple[str, blocks.Command]]:
    for page in PAGES:
        for command in blocks.commands(page.read_text(encoding="utf-8")):
            yield str(page.relative_to(ROOT)), command


def parts(text: str) -> Iterator[list[str]]:
    """The single commands of a line, without settings of variables before them."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in [*lexer, "&&"]:
        if word in ("|", "&&", ";", "&", ">", "||"):
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                del words[0]
            if words:
                yield words
            words = []
        else:
            words.append(word)


def fault(words: list[str]) -> str:
    """What the program would say of its words; empty where it takes them."""
    name = words[0]
    if name == "mrs":
        return mrs_fault(words)
    if name == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        unknown = [one for one in words[1:] if "=" not in one and not re.search(rf"^{one}:", makefile, re.MULTILINE)]
        return f"the Makefile has no {unknown}" if unknown else ""
    if name in LAUNCHERS:
        return launch_fault(words)
    if name.startswith(("python", "env/bin/python")):
        script = next((one for one in words[1:] if not one.startswith("-")), "")
        return f"there is no {script}" if script.endswith(".py") and not (ROOT / script).is_file() else ""
    if "/" in name and not name.startswith("env/"):
        return "" if (ROOT / name).is_file() else f"there is no {name}"
    return "" if name in OTHER_PROGRAMS or name.startswith("env/bin/") else f"no test knows the program {name}"


def mrs_fault(words: list[str]) -> str:
    if words[1] == "train" and "--sweep" in words:  # the command's own option; the others are the trainer's
        at = words.index("--sweep")
        words = words[:at] + words[at + 2 :]
    if words in (["mrs", "--help"], ["mrs", "--version"], ["mrs", "--version", "--json"]):
        return ""
    for length in (4, 3, 2):
        if parser := known_commands().get(" ".join(words[:length])):
            return parsing_fault(parser, words[length:])
    return f"there is no `{' '.join(words[:3])}`"


def launch_fault(words: list[str]) -> str:
    (at,) = [number for number, word in enumerate(words) if word.endswith(".py")]
    missing = [one for one in words if one.startswith("trainers/") and not (ROOT / one).is_file()]
    if missing:
        return f"there is no {missing}"
    if words[0] == "accelerate":
        from accelerate.commands.launch import launch_command_parser as launcher

        assert words[1] == "launch"
    else:
        from torch.distributed.run import get_args_parser as launcher
    if told := parsing_fault(launcher(), [*words[1 + (words[0] == "accelerate") : at], "script.py"]):
        return told
    return parsing_fault(known_commands()[f"mrs train {Path(words[at]).stem}"], words[at + 1 :])


def parsing_fault(parser: argparse.ArgumentParser, words: list[str]) -> str:
    if "..." in words:  # the page shows some of the options
        known = {flag for action in parser._actions for flag in action.option_strings}
        unknown = [word for word in words if word.startswith("-") and word not in known]
        return f"unknown options {unknown}" if unknown else ""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(parser), "error", lambda self, message: (_ for _ in ()).throw(ValueError(message)))
        patch.setattr(argparse.ArgumentParser, "print_help", lambda *_: None)
        try:
            _, rest = parser.parse_known_args(words)
        except ValueError as error:
            return str(error)
        except SystemExit as end:
            return "" if end.code == 0 else f"exit code {end.code}"
    return f"unknown options {rest}" if rest else ""


def test_every_command_is_one_that_the_project_has() -> None:
    wrong = []
    for page, command in each_command():
        if page == MADE:
            continue
        for words in parts(command.text):
            if told := fault(words):
                wrong.append(f"{page}: {command.text}: {told}")
    assert wrong == []


def test_every_command_ran_in_a_test_or_says_why_not() -> None:
    ledger = blocks.read_ledger(ROOT)
    missing = [
        f"{page}: {command.text}"
        for page, command in each_command()
        if not command.mark.startswith(("tested: ", "not run: "))
        and not (command.mark == "tested" and ROOT / page in GUIDES)
        and command.text not in ledger.get(page, {})
    ]
    assert missing == [], f"add them to {blocks.LEDGER}"


def test_no_entry_is_of_a_command_that_is_gone() -> None:
    shown = set(each_command_text())
    gone = [
        f"{page}: {command}"
        for page, entries in blocks.read_ledger(ROOT).items()
        if (ROOT / page).is_file()
        for command in entries
        if (page, command) not in shown
    ]
    assert gone == []


def each_command_text() -> Iterator[tuple[str, str]]:
    for page, command in each_command():
        yield page, command.text


def test_the_tests_that_are_named_are_there() -> None:
    ledger = {page: entries for page, entries in blocks.read_ledger(ROOT).items() if (ROOT / page).is_file()}
    named = {entry["test"] for entries in ledger.values() for entry in entries.values() if "test" in entry}
    named |= {
        command.mark.removeprefix("tested: ") for _, command in each_command() if command.mark.startswith("tested: ")
    }
    missing = []
    for name in named:
        path, _, function = name.partition("::")
        text = (ROOT / path).read_text(encoding="utf-8") if (ROOT / path).is_file() else ""
        if not text or (f"def {function}(" not in text and function):
            missing.append(name)
    assert missing == []
    assert len(named) > 40
