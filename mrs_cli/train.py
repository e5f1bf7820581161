"""`mrs train`: a trainer of this package, launched through accelerate.

The options are the trainer's own; `accelerate config` or `accelerate launch trainers/NAME.py` choose devices.
"""

from __future__ import annotations

import argparse
import importlib
import os
import subprocess
from collections.abc import Sequence

from mrs_core.arguments import parse_with_config

TRAINERS = ("retrieval", "generation")


def main(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="mrs train", description=__doc__, add_help=False)
    parser.add_argument("trainer", choices=TRAINERS, nargs="?")
    options, rest = parser.parse_known_args(list(argv[:1]) if argv and not argv[0].startswith("-") else [])
    rest = [*rest, *argv[1:]]
    if options.trainer is None:
        parser.print_help()
        return 0
    module = f"mrs_trainers.{options.trainer}"
    # A wrong option is refused here, in one sentence, before anything is launched.
    parse_with_config(importlib.import_module(module).make_parser(), rest)
    from accelerate.commands.launch import launch_command, launch_command_parser

    try:
        launch_command(launch_command_parser().parse_args([*_one_device(), "--module", module, *rest]))
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


def _one_device() -> list[str]:
    """Without an `accelerate config`, what accelerate would assume anyway, said so that it need not."""
    from accelerate.commands.config.config_args import default_config_file

    if os.path.isfile(default_config_file):
        return []
    return ["--num_processes", "1", "--num_machines", "1", "--mixed_precision", "no", "--dynamo_backend", "no"]
