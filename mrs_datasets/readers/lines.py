"""Lines of a text file, plain or compressed, with the file and line in every error."""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

from mrs_core.errors import InputError
from mrs_core.text import is_blank

BLOCK = 1 << 22
MAX_LINE = 64 << 20  # chosen: a message has some KiB; without a limit, zero bytes packed 1000:1 would fill the memory
EDITED = "somebody edited the file, so fetch it again."


def open_binary(path: Path) -> BinaryIO:
    """Open a plain, `.gz` or `.xz` file for reading bytes."""
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path, "rb"))
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path, "rb"))
    return path.open("rb")


def read_lines(path: Path, as_published: bool = False, tolerant: bool = False) -> Iterator[tuple[int, str]]:
    """Yield (line number from 1, text without its line end); only `\\n` ends a line, a final one is optional.

    Args:
        as_published: the file comes from a publisher, in UTF-8 without a byte-order mark and with line ends of one
            kind: otherwise somebody edited it, and who knows what else changed. Files of one's own may be as they like.
        tolerant: bytes that are not UTF-8 come as lone surrogates (`surrogateescape`), for the caller to find.

    Raises:
        InputError: the file is missing, damaged, a line is not UTF-8, one goes on for more than `MAX_LINE` bytes, or
            (`as_published`) the file was edited.
    """
    try:
        with open_binary(path) as file:
            number = 0
            rest = b""
            returns = None  # whether lines end with a carriage return
            while block := file.read(BLOCK):
                if as_published and number == 0 and not rest and block.startswith(codecs.BOM_UTF8):
                    raise InputError(
                        f"{path}, line 1: a byte-order mark, which the published file does not have; {EDITED}"
                    )
                lines = (rest + block).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    number += 1
                    if as_published and line.endswith(b"\r") is not returns:
                        if returns is not None:
                            raise InputError(
                                f"{path}, line {number}: another line end than in the lines before; {EDITED}"
                            )
                        returns = line.endswith(b"\r")
                    yield number, _decode(path, number, line, tolerant)
                if len(rest) > MAX_LINE:
                    raise InputError(
                        f"{path}, line {number + 1}: no line end within {MAX_LINE >> 20} MiB; expected a text file "
                        "with one row a line."
                    )
            if rest:
                yield number + 1, _decode(path, number + 1, rest, tolerant)
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: the compressed file is damaged or cut off ({error}); fetch it again.") from None
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None


def read_json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (file and line, for errors; the object) of a published file of JSON lines.

    Raises:
        InputError: a line is empty or no JSON object, or as for `read_lines`.
    """
    for number, line in read_lines(path, as_published=True):
        where = f"{path}, line {number}"
        yield where, parse_object(where, line)


def parse_object(where: str, line: str) -> dict[str, Any]:
    """The JSON object that a line holds.

    Raises:
        InputError: the line is empty or no JSON object, a key comes twice in one object, or a text has half a
            character; the sentence starts with `where`.
    """
    if not line.strip():
        raise InputError(f"{where}: an empty line; expected one JSON object a line.")
    try:
        row = json.loads(line, object_pairs_hook=_distinct_keys)
        if "\\u" in line:  # an escape can name half a surrogate pair, which UTF-8 cannot hold
            json.dumps(row, ensure_ascii=False).encode()
    except _RepeatedKeyError as error:
        raise InputError(f"{where}: the key {error.args[0]!r} comes twice in one object; keep one of them.") from None
    except UnicodeEncodeError:
        raise InputError(
            f"{where}: half a character (an escape \\ud800 to \\udfff alone); fetch the file again."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: not a JSON object ({error}); the line may be cut off.") from None
    if not isinstance(row, dict):
        raise InputError(f"{where}: expected a JSON object, found {type(row).__name__}.")
    return row


class _RepeatedKeyError(Exception):
    """A key stands twice in one JSON object; Python would keep the last value without a word."""


def _distinct_keys(items: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(items)
    if len(found) < len(items):
        keys = [key for key, _ in items]
        raise _RepeatedKeyError(next(key for key in keys if keys.count(key) > 1))
    return found


def require_text(where: str, row: dict[str, Any], name: str) -> str:
    """The text that a row has under `name`.

    Raises:
        InputError: there is none, it shows nothing (see `is_blank`), or it has a NUL in it.
    """
    value = row.get(name)
    if not isinstance(value, str) or is_blank(value):
        found = repr(value)[:60] if name in row else "nothing"
        raise InputError(f"{where}: expected {name!r} to be a text, found {found}.")
    if "\0" in value:
        raise InputError(f"{where}: {name!r} has a NUL character (U+0000) in it; {EDITED}")
    return value


def ends_inside_a_line(path: Path) -> bool:
    """Whether a file ends without a line end, as one does that was cut off."""
    last = b"\n"
    with open_binary(path) as file:
        while block := file.read(BLOCK):
            last = block
    return not last.endswith(b"\n")


def _decode(path: Path, number: int, line: bytes, tolerant: bool) -> str:
    errors = "surrogateescape" if tolerant else "strict"
    try:
        # Windows editors put a byte-order mark first
        return line.removesuffix(b"\r").decode("utf-8-sig" if number == 1 else "utf-8", errors)
    except UnicodeDecodeError as error:
        raise InputError(
            f"{path}, line {number}: not UTF-8 (byte {line[error.start]:#04x} at position {error.start}); "
            "convert the file to UTF-8."
        ) from None
