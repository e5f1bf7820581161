"""No command reads an abbreviated option: `--language` would silently be another one."""

import argparse
import runpy
from collections.abc import Iterator
from pathlib import Path

from mrs_suggest.cli import data
from mrs_suggest.cli.main import make_parser

ROOT = Path(__file__).resolve().parents[3]


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
