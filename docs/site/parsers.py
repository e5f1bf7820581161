"""The argument parsers of every command, as the command line itself builds them."""

from __future__ import annotations

import argparse
import importlib

from mrs_suggest.cli.main import VERBS


def commands() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command that takes options: `mrs suggest`, `mrs data prepare`, `mrs train retrieval` ..."""
    found: dict[str, argparse.ArgumentParser] = {}
    for verb in VERBS:
        if verb == "train":
            found |= {f"mrs train {name}": parser for name, parser in trainers().items()}
            continue
        module = importlib.import_module(f"mrs_suggest.cli.{verb}")
        found |= _leaves(f"mrs {verb}", module.make_parser())
    return found


def trainers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each script of `trainers/`."""
    from mrs_suggest.cli.train import TRAINERS

    return {name: importlib.import_module(f"mrs_trainers.{name}").make_parser() for name in TRAINERS}


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """The options that a user can pass, except `--help` and hidden ones."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    return [one for one in parser._actions if not isinstance(one, hidden) and one.help != argparse.SUPPRESS]


def _leaves(name: str, parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    found = {name: parser} if not below or parser.get_default("run") else {}  # `mrs demo` runs without a subcommand
    for action in below:
        for word, child in action.choices.items():
            found |= _leaves(f"{name} {word}", child)
    return found
