"""The output options of verbs that write a data set: a local folder, or a URL with a local scratch folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError

if TYPE_CHECKING:
    from mrs_suggest.common.io.storage import Location


def add_out_options(parser: argparse.ArgumentParser) -> None:
    """`--out` and `--scratch`, for `out_location`."""
    parser.add_argument("--out", required=True, metavar="FOLDER", help="the folder to write; or a URL, with --scratch")
    parser.add_argument("--scratch", metavar="FOLDER", help="local folder for intermediate files, if --out is a URL")


def out_location(text: str, scratch: str | None) -> Location:
    """The place that `--out` (`text`) and `--scratch` name.

    Raises:
        InputError: the place is not writable, or a remote folder has no local scratch folder.
    """
    from mrs_suggest.common.io.remote_errors import masked
    from mrs_suggest.common.io.storage import is_url, location, require_writable

    if not is_url(text):
        if scratch is not None:
            raise InputError(
                f"--scratch {masked(scratch)}: applies only if --out is a URL; local builds use a folder next to --out."
            )
        return Path(text)
    if scratch is None or is_url(scratch):
        raise InputError(
            f"--out {masked(text)}: files are built on this machine before they are uploaded; pass a local folder with "
            "--scratch FOLDER."
        )
    out = location(text, Path(scratch).absolute())
    if text.startswith("memory:"):
        raise InputError(f"--out {text}: would be lost when this command ends; pass another folder.")
    require_writable(out)
    return out
