"""The options of `mrs data prepare mrs` for your own pairs."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from mrs_suggest.common.errors import InputError

if TYPE_CHECKING:
    from mrs_datasets.readers.pairs.own_pairs import PairOptions

NAMES = ("message_column", "reply_column", "language", "on_error", "language_model")


def add_pair_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for your own pairs, beside `--source`."""
    own = parser.add_argument_group("mrs, from your own pairs")
    own.add_argument(
        "--message-column", metavar="NAME", help="the column or key of the messages (default message; TSV: the first)"
    )
    own.add_argument(
        "--reply-column", metavar="NAME", help="the column or key of the replies (default reply; TSV: the second)"
    )
    own.add_argument(
        "--language", metavar="CODE", help="language of a file or data set not named after it: es, pl, pt-BR"
    )
    own.add_argument(
        "--on-error",
        choices=("stop", "skip"),
        help="on an invalid row: stop and name its line (default), or skip and count it",
    )
    own.add_argument(
        "--language-model",
        metavar="FILE",
        help="fastText's lid.176, to count rows in another language (default: the installed one; without one only "
        "scripts are checked)",
    )


def pair_options(options: argparse.Namespace) -> PairOptions:
    """The options for the reader."""
    from mrs_datasets.readers.pairs.own_pairs import PairOptions
    from mrs_datasets.readers.pairs.pair_files import MESSAGE, REPLY, STOP, Columns
    from mrs_suggest.common.text.language_id import open_identifier

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
            raise InputError(f"--{name.replace('_', '-')}: applies only to mrs.")
