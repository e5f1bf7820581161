"""The commands that pages show in their ```console blocks, and what the tests do with each."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from mrs_core.errors import InputError

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
        InputError: an entry has none or several of them, or other keys.
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
