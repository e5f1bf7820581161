"""`mrs completion`: print a script with which a shell completes verbs, options, languages, names and paths.

The script holds all words, so that nothing runs at the Tab key. Put it where the shell looks for such scripts:

bash: mrs completion bash > ~/.local/share/bash-completion/completions/mrs
zsh: mrs completion zsh > FOLDER/_mrs, where FOLDER is one of $fpath
fish: mrs completion fish > ~/.config/fish/completions/mrs.fish
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError, MissingExtraError

SHELLS = ("bash", "zsh", "fish")
LANGUAGE_OPTIONS = ("lang", "language", "languages")
FOLDER_OPTIONS = ("data", "folder", "output_dir", "out", "dumps", "work", "scratch", "guard_lists")
PATHS = ("model", "model_name_or_path", "config", "source", "files", "runs", "run")


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="mrs completion", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shell", choices=SHELLS)
    return parser


def main(argv: Sequence[str]) -> int:
    options = make_parser().parse_args(argv)
    try:
        import shtab
    except ImportError:
        raise MissingExtraError("shtab", "completion", "completion in a shell") from None
    parser, left_out = command_parser()
    for action in actions_of(parser):
        _describe(action, shtab.FILE, shtab.DIRECTORY)
    print(shtab.complete(parser, options.shell))
    for verb, reason in left_out.items():
        print(f"mrs completion: options of `mrs {verb}` are left out ({reason})", file=sys.stderr)
    return 0


def command_parser() -> tuple[argparse.ArgumentParser, dict[str, str]]:
    """The whole command as one parser, made from those of the verbs, and the verbs whose parser needs what is not
    installed, with the reason."""
    from mrs_suggest.cli.main import VERBS

    parser = CommandParser(prog="mrs", description="Multilingual reply suggestion.")
    parser.add_argument("--version", action="store_true", help="print the version")
    verbs = parser.add_subparsers(dest="verb")
    left_out: dict[str, str] = {}
    for verb, what in VERBS.items():
        with _tried(verb, left_out):
            module = importlib.import_module(f"mrs_suggest.cli.{verb}")
            if verb == "train":
                made = _train_parser(module.TRAINERS, left_out)
            else:
                made = module.make_parser()
            _add(verbs, verb, what, made)
        if verb in left_out:
            verbs.add_parser(verb, help=_plain(what))
    return parser, left_out


def actions_of(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Every option and argument of a parser and of its subcommands."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for below in action.choices.values():
                yield from actions_of(below)
        else:
            yield action


def _train_parser(trainers: Sequence[str], left_out: dict[str, str]) -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs train")
    parsers = parser.add_subparsers(dest="trainer")
    for trainer in trainers:
        with _tried(f"train {trainer}", left_out):
            made = importlib.import_module(f"mrs_trainers.{trainer}").make_parser()
            _add(parsers, trainer, f"the options of trainers/{trainer}.py", made)
        if f"train {trainer}" in left_out:
            parsers.add_parser(trainer)
    return parser


def _add(verbs: argparse._SubParsersAction[Any], name: str, what: str, made: argparse.ArgumentParser) -> None:
    """Add a parser as a subcommand."""
    verbs.add_parser(name, help=_plain(what), parents=[made], add_help=False)


@contextlib.contextmanager
def _tried(name: str, left_out: dict[str, str]) -> Iterator[None]:
    """Note why a parser cannot be made here: a library of an extra is missing."""
    try:
        yield
    except (ImportError, MissingExtraError, InputError) as error:
        left_out[name] = (str(error) or type(error).__name__).splitlines()[0].rstrip(".")


def _describe(action: argparse.Action, files: Mapping[str, object], folders: Mapping[str, object]) -> None:
    """Give an action the values that a shell can offer, and a help text that every shell takes."""
    if action.help and action.help != argparse.SUPPRESS:
        action.help = _plain(action.help)
    if action.choices is not None or action.nargs == 0:
        return
    if action.dest in LANGUAGE_OPTIONS:
        from mrs_suggest.common.text.languages import KNOWN

        action.choices = list(KNOWN)
    elif action.dest in FOLDER_OPTIONS:
        action.complete = folders  # type: ignore[attr-defined]
    elif action.type is Path or action.dest in PATHS:
        action.complete = files  # type: ignore[attr-defined]


def _plain(text: str) -> str:
    """A help text without what a shell would carry out or argparse would fill in."""
    first = text.replace("`", "'").replace("$", "").replace("%%", " percent").replace("%", "").replace("\\", "")
    return " ".join(first.split())
