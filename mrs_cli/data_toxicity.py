"""`mrs data toxicity`: drop toxic pairs and replies from a prepared folder."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrs_datasets.passes import FolderPass


def add_toxicity(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("toxicity", help="drop toxic pairs and replies from a prepared folder")
    add_toxicity_options(parser)
    parser.set_defaults(run=run_toxicity)


def add_toxicity_options(parser: argparse.ArgumentParser) -> None:
    """Options that `mrs data toxicity` and `mrs data build` share."""


def toxicity_pass(options: argparse.Namespace) -> FolderPass | None:
    """The pass that the options ask for, with its models opened; None: none.

    Raises:
        InputError: an unknown model, or options that do not fit together.
    """
    return None


def run_toxicity(options: argparse.Namespace) -> int:
    return 0
