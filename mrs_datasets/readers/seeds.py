"""The source of a data set that is generated: a seed."""

from __future__ import annotations

from mrs_suggest.common.errors import InputError

SOURCE = "synthetic"
SEED = 42


def seed_of(source: str) -> int:
    """The seed in `synthetic` or `synthetic:SEED`.

    Raises:
        InputError: it is neither.
    """
    name, colon, number = source.partition(":")
    if name != SOURCE or (colon and not number.isdecimal()):
        raise InputError(f"--source {source}: expected {SOURCE} or {SOURCE}:SEED, such as {SOURCE}:7.")
    return int(number) if colon else SEED
