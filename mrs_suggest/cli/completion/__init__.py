"""`mrs completion`: print a script with which a shell completes verbs, options, languages and names.

The script contains all words, so that nothing is started when Tab is pressed. Print it again after an update.

bash: mrs completion bash > ~/.local/share/bash-completion/completions/mrs
zsh: mrs completion zsh > FILE, and in ~/.zshrc, after `compinit`: source FILE
fish: mrs completion fish > ~/.config/fish/completions/mrs.fish
"""

import argparse
import importlib
import sys
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import resources

from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import MrsError, first_line

SHELLS = ("bash", "zsh", "fish")
LANGUAGE_OPTIONS = ("lang", "language", "languages")
MODEL_OPTIONS = ("model", "run_folder", "model_name_or_path")  # a folder, or a baseline
ZSH_HEAD = "autoload -U +X bashcompinit && bashcompinit\n"


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(
        prog="mrs completion", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shell", choices=SHELLS)
    parser.set_defaults(run=_run)
    return parser


def _run(options: argparse.Namespace) -> None:
    shell = options.shell
    parsers, left_out = command_parsers()
    print({"bash": "", "zsh": ZSH_HEAD, "fish": ""}[shell] + (_fish(parsers) if shell == "fish" else _bash(parsers)))
    for path, reason in left_out.items():
        print(f"mrs completion: options of `mrs{path}` are left out ({reason})", file=sys.stderr)


def command_parsers() -> tuple[dict[str, argparse.ArgumentParser], dict[str, str]]:
    """Parsers by subcommand (such as ` data prepare`), and why others cannot be made: a library is missing."""
    from mrs_suggest.cli import main
    from mrs_suggest.cli.train import TRAINERS

    modules = {f" {verb}": f"mrs_suggest.cli.{verb}" for verb in main.VERBS}
    modules |= {f" train {name}": f"mrs_trainers.{name}" for name in TRAINERS}
    parsers, left_out = {"": main.make_parser()}, {}
    for path, module in modules.items():
        try:
            parsers |= _with_subcommands(path, importlib.import_module(module).make_parser())
        except (ImportError, MrsError) as error:
            left_out[path] = first_line(error)
    return parsers, left_out


def _with_subcommands(path: str, parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    found = {path: parser}
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, below in action.choices.items():
                found |= _with_subcommands(f"{path} {name}", below)
    return found


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[list[str], list[str], argparse.Action]]:
    """The long names of each option (none for an argument), and the values that it may have, if they are known."""
    named = _named()
    for action in parser._actions:
        if action.help != argparse.SUPPRESS or isinstance(action, argparse._SubParsersAction):
            known = named.get(action.dest) or action.choices or ()
            values = [str(value.value if isinstance(value, Enum) else value) for value in known]
            yield [name for name in action.option_strings if name.startswith("--")], values, action


@cache
def _named() -> dict[str, tuple[str, ...]]:
    """The values of options that have the same ones in every command."""
    from mrs_suggest.common.hub.baselines import read_baselines
    from mrs_suggest.common.text.languages import KNOWN

    return {**dict.fromkeys(LANGUAGE_OPTIONS, tuple(KNOWN)), **dict.fromkeys(MODEL_OPTIONS, tuple(read_baselines()))}


def _bash(parsers: dict[str, argparse.ArgumentParser]) -> str:
    values: list[str] = []
    many: list[str] = []
    own: list[str] = []
    for path, parser in parsers.items():
        words: list[str] = []
        for names, known, action in _options(parser):
            words += names or known
            cases = [f"""    "{path} {name}") fitting='{" ".join(known)}';;""" for name in names if known]
            (many if action.nargs in ("+", "*") else values).extend(cases)
        own.append(f"""    "{path}") fitting='{" ".join(words)}';;""")
    lines = {"values": values, "many": many, "own": own}
    return _filled("bash", f"|{'|'.join(parsers)}|", {name: "\n".join(each) for name, each in lines.items()})


def _fish(parsers: dict[str, argparse.ArgumentParser]) -> str:
    lines = []
    for path, parser in parsers.items():
        start = f"complete -c mrs -n '__mrs_at \"{path}\"'"
        for names, known, action in _options(parser):
            files = "" if action.dest in MODEL_OPTIONS else " -f"
            offered = f"{files} -a '{' '.join(known)}'" if known else ""
            needed = "" if action.nargs == 0 else " -r"
            lines += [f"{start} -l {name[2:]}{needed}{offered}" for name in names]
            if known and not action.option_strings:
                lines.append(start + offered)
    return _filled("fish", " ".join(f"'{path}'" for path in parsers), {"lines": "\n".join(lines)})


def _filled(shell: str, paths: str, parts: dict[str, str]) -> str:
    text = resources.files(__name__).joinpath(f"completion.{shell}").read_text(encoding="utf-8").rstrip()
    for name, part in {"paths": paths, **parts}.items():
        text = text.replace(f"@{name}@", part)
    return text
