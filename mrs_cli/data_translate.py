"""`mrs data translate`: translate English pairs and response sets of a prepared folder."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mrs_datasets.passes import FolderPass


def add_translate(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = verbs.add_parser("translate", help="translate English pairs and response sets of a prepared folder")
    add_translation_options(parser)
    parser.set_defaults(run=run_translate)


def add_translation_options(parser: argparse.ArgumentParser) -> None:
    """Options that `mrs data translate` and `mrs data build` share."""


def translation_pass(options: argparse.Namespace) -> FolderPass | None:
    """The pass that the options ask for, with its models opened; None: none.

    Raises:
        InputError: an unknown model, or options that do not fit together.
    """
    return None


def run_translate(options: argparse.Namespace) -> int:
    return 0
