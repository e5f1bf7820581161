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
        if make_publish := getattr(module, "make_publish_parser", None):
            found[f"mrs {verb} publish"] = make_publish()
    return found


def trainers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each script of `trainers/`."""
    from mrs_suggest.cli.train import TRAINERS

    return {name: importlib.import_module(f"mrs_trainers.{name}").make_parser() for name in TRAINERS}


def options_of(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    """What a reader can give, without `--help` and what is hidden."""
    hidden = (argparse._HelpAction, argparse._SubParsersAction)
    return [one for one in parser._actions if not isinstance(one, hidden) and one.help != argparse.SUPPRESS]


def _leaves(name: str, parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        return {name: parser}
    return {
        leaf: one
        for action in below
        for word, child in action.choices.items()
        for leaf, one in _leaves(f"{name} {word}", child).items()
    }
