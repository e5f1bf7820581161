"""Files of numbers: one example per line, its fields separated by tabs."""

from __future__ import annotations

from pathlib import Path

from mrs_suggest.common.errors import InputError


def read_numbers(path: Path, number: int, line: str, count: int | None, what: str) -> list[float]:
    """The numbers of a line.

    Args:
        path: of the file, for the error.
        number: of the line, for the error.
        line: the numbers, separated by tabs.
        count: how many there must be; None: two or more.
        what: the fields of a line, for the error.

    Raises:
        InputError: a field is not a number, or their count is wrong.
    """
    fields = line.split("\t")
    try:
        values = [float(field) for field in fields if "_" not in field]  # Python reads 1_0 as 10
    except ValueError:
        values = []
    if len(values) != (count or max(2, len(fields))):
        raise InputError(f"{path}, line {number}: expected {what}, separated by tabs, found {line[:60]!r}.")
    return values
