"""`mrs train`: run a trainer of this package, in one process or in those that `accelerate config` sets up.

The options are the trainer's own; `accelerate launch trainers/NAME.py` chooses devices for one run. `--estimate` runs a
few steps and prints estimated memory and time. `--sweep FILE` trains with the values of that YAML file (`method: grid`,
`random`, `halving` or `tpe`, `options: NAME: [VALUES]`) and prints the best on validation.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from pkgutil import iter_modules

from tqdm import tqdm

import mrs_trainers
from mrs_suggest.common.arguments import parse_with_config, words_of
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.launcher import announce_launcher
from mrs_suggest.common.report.console import make_console

TRAINERS = sorted(module.name for module in iter_modules(mrs_trainers.__path__))


def make_parser() -> argparse.ArgumentParser:
    parser = CommandParser(prog="mrs train", description=__doc__, add_help=False)
    parser.add_argument("trainer", choices=TRAINERS, nargs="?")
    return parser


def main(argv: Sequence[str]) -> int:
    parser = make_parser()
    options, rest = parser.parse_known_args(list(argv[:1]) if argv and not argv[0].startswith("-") else [])
    rest = _with_shipped_config([*rest, *argv[1:]])
    if options.trainer is None:
        parser.print_help()
        return 0
    sweep, rest = _without("--sweep", rest)
    if sweep is not None:
        return _sweep(options.trainer, Path(sweep), rest)
    module = f"mrs_trainers.{options.trainer}"
    here = not config_file().is_file()
    if here:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # accelerate's default; read when torch is first imported
    trainer = importlib.import_module(module)
    parse_with_config(trainer.make_parser(), rest)  # a wrong option is refused before anything is launched
    # In this process, whatever ends the command ends the training.
    return int(trainer.main(rest)) if here else _launch(module, rest)


def _with_shipped_config(arguments: list[str]) -> list[str]:
    """The words; a `--config trainers/configs/...` that is not in this folder is the file that the package brings."""
    config, rest = _without("--config", arguments)
    if config is None or Path(config).exists() or Path(config).parts[:2] != ("trainers", "configs"):
        return arguments
    shipped = Path(mrs_trainers.__path__[0], *Path(config).parts[1:])
    return ["--config", str(shipped), *rest] if shipped.is_file() else arguments


def _without(option: str, arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The value of an option, and the other words."""
    parser = CommandParser(prog="mrs train", add_help=False)
    parser.add_argument(option, dest="value")
    options, rest = parser.parse_known_args(arguments)
    return options.value, rest


def _sweep(trainer: str, path: Path, arguments: Sequence[str]) -> int:
    """Run a sweep; its runs are processes of this command."""
    from mrs_suggest.training.search.sweep import result_rows, run_sweep
    from mrs_suggest.training.search.sweep_file import read_sweep

    sweep = read_sweep(path)
    parser = importlib.import_module(f"mrs_trainers.{trainer}").make_parser()
    for values in sweep.trials:  # a wrong value is refused before anything is launched
        *_, training = parse_with_config(parser, [*arguments, *sweep.words(), *words_of(values)])
    output = Path(training.output_dir)
    announce_launcher()
    result = run_sweep(trainer, sweep, _without("--output_dir", arguments)[1], output, tqdm.write)
    _show(*result_rows(result))
    best = result["runs"][result["best"] - 1]
    chosen = ", ".join(f"{key} {value}" for key, value in best["values"].items())
    print(f"best on validation: {output / str(best['run'])} ({best['metric']} {best['value']:.4g}; {chosen})")
    print(f"to train with it and test:\n  {result['command']}")
    return 0


def _show(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table

    table = Table(*heads)
    for row in rows:
        table.add_row(*row)
    make_console(100).print(table)


def _launch(module: str, arguments: Sequence[str]) -> int:
    """Start the processes that the user's `accelerate config` sets up."""
    from accelerate.commands.launch import launch_command, launch_command_parser

    announce_launcher()
    try:
        launch_command(launch_command_parser().parse_args(["--module", module, *arguments]))
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


def config_file() -> Path:
    """Where `accelerate config` writes; asking accelerate would import torch."""
    from huggingface_hub.constants import HF_HOME

    return Path(HF_HOME) / "accelerate" / "default_config.yaml"
