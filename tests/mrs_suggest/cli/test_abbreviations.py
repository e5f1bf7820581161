"""No command reads an abbreviated option: `--lang` would silently be another one."""

from __future__ import annotations

import argparse
import ast
import runpy
from collections.abc import Iterator
from pathlib import Path

from mrs_suggest.cli import data
from mrs_suggest.cli.main import make_parser

ROOT = Path(__file__).resolve().parents[3]
FOLDERS = ("benchmarks", "examples", "trainers", "docs/site", ".ci", "mrs_*")


def walked(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """A parser and those of its subcommands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from walked(below)


def test_no_parser_of_the_command_line_takes_abbreviations() -> None:
    from mrs_suggest.cli import models, staple

    pages = runpy.run_path(str(ROOT / "docs" / "site" / "parsers.py"))

    made = [make_parser(), *pages["commands"]().values(), *pages["trainers"]().values()]
    found = [
        one for parser in [*made, *(part.make_parser() for part in (data, models, staple))] for one in walked(parser)
    ]
    assert len(found) > 40
    assert [one.prog for one in found if one.allow_abbrev] == []


def test_no_script_makes_a_parser_that_takes_abbreviations() -> None:
    paths = [path for folder in FOLDERS for place in ROOT.glob(folder) for path in place.rglob("*.py")]
    makers, wrong = 0, []
    for path in paths:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("ArgumentParser"):
                makers += 1
                given = {word.arg: ast.unparse(word.value) for word in node.keywords}
                if given.get("allow_abbrev") != "False":
                    wrong.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert makers > 20
    assert wrong == []
