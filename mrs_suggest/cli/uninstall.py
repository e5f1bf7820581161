"""`mrs uninstall`: remove exactly what `mrs install` put into the caches."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.hub.installed import uninstall
from mrs_suggest.common.text.text import visible


def make_parser() -> argparse.ArgumentParser:
    return CommandParser(prog="mrs uninstall", description=__doc__)


def main(argv: Sequence[str]) -> int:
    make_parser().parse_args(argv)
    removed = uninstall()
    for folder in removed:
        print(f"removed {visible(folder)}")
    print(f"{len(removed)} folders removed" if removed else "nothing is installed")
    return 0
