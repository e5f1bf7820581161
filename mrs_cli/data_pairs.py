"""The options of `mrs data prepare mrs` for pairs of one's own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mrs_core.errors import InputError

if TYPE_CHECKING:
    from mrs_datasets.readers.pair_checks import PairOptions

NAMES = ("message_column", "reply_column", "language", "on_error", "language_model")


def add_pair_options(parser: argparse.ArgumentParser) -> None:
    """Add what pairs of one's own need beside `--source`."""
    own = parser.add_argument_group("mrs, from pairs of your own")
    own.add_argument(
        "--message-column", metavar="NAME", help="the column or key of the messages (default message; TSV: the first)"
    )
    own.add_argument(
        "--reply-column", metavar="NAME", help="the column or key of the replies (default reply; TSV: the second)"
    )
    own.add_argument(
        "--language", metavar="CODE", help="of a file or data set whose name does not tell it, such as es, pl or pt-BR"
    )
    own.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        help="at a row that breaks the layout: stop with its line (default), or leave it out, count it and go on",
    )
    own.add_argument(
        "--language-model",
        metavar="FILE",
        help="fastText's lid.176, to count rows in another language (default: the one that is installed; without one "
        "only scripts are looked at)",
    )


def pair_options(options: argparse.Namespace) -> PairOptions:
    """The options as the reader takes them."""
    from mrs_core.language_id import open_identifier
    from mrs_datasets.readers.pair_checks import PairOptions
    from mrs_datasets.readers.pair_files import MESSAGE, REPLY, STOP, Columns

    columns = Columns(options.message_column or MESSAGE, options.reply_column or REPLY)
    if columns.message == columns.reply:
        raise InputError(f"--reply-column {columns.reply}: the messages are in that column; name another one.")
    identifier = open_identifier(options.language_model)
    return PairOptions(
        columns,
        options.on_error or STOP,
        options.language,
        identifier.identify if identifier else None,
        identifier.languages if identifier else frozenset(),
    )


def refuse_pair_options(options: argparse.Namespace) -> None:
    """Refuse them for a data set other than MRS."""
    for name in NAMES:
        if getattr(options, name) is not None:
            raise InputError(f"--{name.replace('_', '-')}: is for mrs alone.")
