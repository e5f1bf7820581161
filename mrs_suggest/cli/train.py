"""`mrs train`: run a trainer of this package, in one process or in those that `accelerate config` sets up.

The options are the trainer's own; `accelerate launch trainers/NAME.py` chooses devices for one run. `--estimate` runs a
few steps and prints estimated memory and time. `--sweep FILE` trains with the values of that YAML file (`method: grid`,
`random`, `halving` or `tpe`, `options: NAME: [VALUES]`) and prints the best on validation.
"""

import argparse
import importlib
import subprocess
from collections.abc import Sequence
from pathlib import Path
from pkgutil import iter_modules

import mrs_trainers

from mrs_suggest.common.arguments import parse_with_config, words_of
from mrs_suggest.common.command_parser import CommandParser
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.launcher import announce_launcher
from mrs_suggest.common.report.tables import make_console, make_table

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
    trainer = importlib.import_module(module)
    parse_with_config(trainer.make_parser(), rest)  # a wrong option is refused before anything is launched
    # In this process, whatever ends the command ends the training.
    return _launch(module, rest) if config_file().is_file() else int(trainer.main(rest))


def _with_shipped_config(arguments: list[str]) -> list[str]:
    """The words; a file `trainers/configs/...` that is not in this folder is that of the package."""
    words = []
    for word in arguments:
        option, equals, value = word.rpartition("=")
        place = Path(value)
        shipped = Path(mrs_trainers.__path__[0], *place.parts[1:])
        ours = place.parts[:2] == ("trainers", "configs") and not place.exists() and shipped.is_file()
        words.append(f"{option}{equals}{shipped}" if ours else word)
    return words


def _without(option: str, arguments: Sequence[str]) -> tuple[str | None, list[str]]:
    """The value of an option, and the other words."""
    parser = CommandParser(prog="mrs train", add_help=False)
    parser.add_argument(option, dest="value")
    options, rest = parser.parse_known_args(arguments)
    return options.value, rest


def _sweep(trainer: str, path: Path, arguments: Sequence[str]) -> int:
    """Run a sweep; its runs are processes of this command."""

    from mrs_suggest.training.sweep import ranked, read_sweep, run_sweep

    sweep = read_sweep(path)
    parser = importlib.import_module(f"mrs_trainers.{trainer}").make_parser()
    for values in sweep.examples():  # a wrong value is refused before anything is launched
        *_, training = parse_with_config(parser, [*arguments, *sweep.words(), *words_of(values)])
        if training.eval_strategy == "no" or not training.load_best_model_at_end:
            raise InputError(
                "--sweep: compares best checkpoints; pass --eval_strategy steps and --load_best_model_at_end true."
            )
    output = Path(training.output_dir)
    announce_launcher()
    result = run_sweep(trainer, sweep, _without("--output_dir", arguments)[1], output)
    runs = ranked(result["runs"])
    best, stops = runs[0], "stopped_early" in runs[0]
    table = make_table("run", *best["values"], best["metric"], "best step", *(["steps"] if stops else []))
    for run in runs:
        cells = [run["run"], *run["values"].values(), run["value"], run["best_step"]]
        cells += [f"{run['steps']}{', stopped' * run['stopped_early']}"] if stops else []
        table.add_row(*(f"{cell:.4g}" if isinstance(cell, float) else str(cell) for cell in cells))
    make_console(100).print(table)
    chosen = ", ".join(f"{key} {value}" for key, value in best["values"].items())
    print(f"best on validation: {output / str(best['run'])} ({best['metric']} {best['value']:.4g}; {chosen})")
    print(f"to train with it and test:\n  {result['command']}")
    return 0


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
