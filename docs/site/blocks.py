"""The commands that pages show in their ```console blocks, and what the tests do with each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mrs_suggest.common.errors import InputError

LEDGER = Path("tests") / "docs" / "commands.yaml"
BLOCK = re.compile(r"(?:^<!-- (?P<mark>[^>]*) -->\n)?^```console\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"\s+#\s.*$")


class Command(NamedTuple):
    """A command of a block, on one line and without its comment; `mark` is the HTML comment above the block."""

    text: str
    mark: str

    def words(self) -> list[str]:
        """The words that a shell makes of it."""
        return shlex.split(self.text)


def pages(root: Path) -> list[Path]:
    """All Markdown files that readers are given commands in."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def commands(text: str) -> Iterator[Command]:
    """The commands of a page's ```console blocks."""
    for block in BLOCK.finditer(text):
        for command in commands_of(block["text"]):
            yield Command(command, block["mark"] or "")


def commands_of(block: str) -> Iterator[str]:
    """The commands of a block: what follows `$ `, with the lines that a backslash continues."""
    joined = ""
    for line in block.splitlines():
        if joined:
            joined = f"{joined} {line.strip()}"
        elif line.startswith("$ "):
            joined = COMMENT.sub("", line[2:])
        if joined.endswith("\\"):
            joined = joined[:-1].rstrip()
        elif joined:
            yield " ".join(COMMENT.sub("", joined).split(" ")).strip()
            joined = ""


KINDS = ("run", "test", "not run")


def read_ledger(root: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Page -> command -> its entry, which has one of `run`, `test` and `not run`.

    Raises:
        InputError: an entry does not have exactly one of them, or has other keys.
    """
    ledger = {}
    for page, entries in yaml.safe_load((root / LEDGER).read_text(encoding="utf-8")).items():
        for entry in entries:
            if set(entry) not in ({"command", kind} for kind in KINDS):
                raise InputError(f"{LEDGER}: {page}: {entry}: expected `command` and one of {', '.join(KINDS)}.")
        ledger[page] = {entry["command"]: entry for entry in entries}
    return ledger


def reason(command: Command, entries: dict[str, dict[str, Any]]) -> str:
    """Why the tests do not run a command; empty where they do."""
    if command.mark.startswith("not run: "):
        return command.mark.removeprefix("not run: ")
    return str(entries.get(command.text, {}).get("not run", ""))


def with_reasons(text: str, entries: dict[str, dict[str, Any]]) -> str:
    """A page with a note below each block of commands that the tests do not run, for the reader."""

    def noted(block: re.Match[str]) -> str:
        found = [Command(command, block["mark"] or "") for command in commands_of(block["text"])]
        reasons: dict[str, list[str]] = {}
        for command in found:
            if told := reason(command, entries):
                reasons.setdefault(told, []).append(command.text)
        if not reasons:
            return block[0]
        if len(reasons) == 1 and len(next(iter(reasons.values()))) == len(found):
            notes = [f"Not run in our tests: {told}." for told in reasons]
        else:
            notes = [
                f"Not run in our tests: `{'`, `'.join(map(_short, which))}`: {told}." for told, which in reasons.items()
            ]
        return f"{block[0]}\n\n{' '.join(notes)}\n{{: .untested }}\n"

    return BLOCK.sub(noted, text)


def _short(command: str) -> str:
    """A command's first words, which identify it well enough."""
    return " ".join(word for word in command.split()[:4] if not word.startswith("'"))
