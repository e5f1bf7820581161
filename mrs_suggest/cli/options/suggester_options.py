"""The options of a suggester that `mrs suggest` and `mrs serve` share: its model, and when it keeps silent."""

from __future__ import annotations

import argparse
from pathlib import Path

from mrs_suggest.common.errors import InputError

DEFAULT_MODEL = "sample-retriever"


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Add `--model` and `--revision`."""
    parser.add_argument(
        "--model",
        default=DEFAULT_MODEL,
        help="the folder that a training run wrote, a baseline, ORG/NAME, or ORG/NAME@REVISION "
        f"(default {DEFAULT_MODEL}, part of the package)",
    )
    parser.add_argument("--revision", help="revision of a hub model: a branch, a tag or a commit (default main)")


def add_silence_options(parser: argparse.ArgumentParser) -> None:
    """Add `--guard`, `--guard-lists` and `--precision`."""
    parser.add_argument(
        "--guard",
        choices=("on", "off"),
        default="on",
        help="on: no suggestions for sensitive messages, and none with slurs, private data, links, or dates and places "
        "that cannot be known (default); off: answer everything, as published figures are measured",
    )
    parser.add_argument("--guard-lists", type=Path, metavar="FOLDER", help="custom word lists (docs/guard.md)")
    parser.add_argument(
        "--precision",
        type=float,
        metavar="P",
        help="suppress suggestions whose estimated chance of being used is below P (calibrated on validation; see the "
        "model's card); default: answer every message",
    )


def guard_of(choice: str, lists: Path | None) -> bool | Path:
    """The value of `Suggester`'s guard; lists for a guard that is off are refused."""
    if lists is not None and choice == "off":
        raise InputError("--guard-lists: has no effect with --guard off; leave out one of them.")
    return (lists or True) if choice == "on" else False
