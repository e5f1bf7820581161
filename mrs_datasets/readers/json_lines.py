"""Published files of JSON lines: one object per line, with the file and line in every error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import EDITED, NUL, read_lines
from mrs_suggest.common.text.text import is_blank


def read_json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line, for errors; the object) of a published file of JSON lines.

    Raises:
        InputError: a line is empty or not a JSON object, or as for `read_lines`.
    """
    for number, line in read_lines(path, as_published=True):
        where = f"{path}, line {number}"
        yield where, parse_object(where, line)


def parse_object(where: str, line: str) -> dict[str, Any]:
    """The JSON object in a line.

    Raises:
        InputError: the line is empty or not a JSON object, a key is repeated in one object, or a text has half a
            character; the sentence starts with `where`.
    """
    if not line.strip():
        raise InputError(f"{where}: an empty line; expected one JSON object per line.")
    try:
        row = json.loads(line, object_pairs_hook=_distinct_keys)
        if "\\u" in line:  # an escape can name half a surrogate pair, which UTF-8 cannot hold
            json.dumps(row, ensure_ascii=False).encode()
    except _RepeatedKeyError as error:
        raise InputError(f"{where}: the key {error.args[0]!r} is repeated in one object; keep one of them.") from None
    except UnicodeEncodeError:
        raise InputError(
            f"{where}: half a character (an escape \\ud800 to \\udfff alone); fetch the file again."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not a JSON object ({error}); the line may be truncated.") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object, found {type(row).__name__}.")
    return row


class _RepeatedKeyError(Exception):
    """A key is repeated in one JSON object; Python would silently keep the last value."""


def _distinct_keys(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) < len(items):
        keys = [key for key, _ in items]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


def require_text(where: str, row: dict[str, Any], name: str) -> str:
    """The text in a row's field `name`.

    Raises:
        InputError: there is none, it is blank (see `is_blank`), or it contains a NUL.
    """
    value = row.get(name)
    if not isinstance(value, str) or is_blank(value):
        found = repr(value)[:60] if name in row else "nothing"
        raise InputError(f"{where}: expected {name!r} to be a text, found {found}.")
    if "\0" in value:
        raise InputError(f"{where}: {name!r} has {NUL} in it; {EDITED}")
    return value
