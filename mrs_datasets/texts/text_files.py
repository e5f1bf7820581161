"""Text for pretraining on disk: `LANG=SOURCE` options, the text files of a folder, and their lines."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from fnmatch import fnmatchcase

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import open_binary
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.text.languages import find_language

FILES = ("*.txt", "*.txt.gz", "*.txt.xz", "*.txt.zst")  # of a folder of texts
START = 1 << 13  # bytes that are looked at before a file is read as text


def split_language(text: str, option: str) -> tuple[str, str]:
    """The language and the source of `LANG=SOURCE`.

    Args:
        option: where it was given, for the error.

    Raises:
        InputError: it names no language or no source.
    """
    language, equals, where = text.partition("=")
    if not equals or not where:
        raise InputError(f"{option} {text}: expected LANG=SOURCE, such as ht=texts/ht.txt.")
    if find_language(language) is None:
        raise InputError(f"{option} {text}: {language!r} is not the code of a language, such as ht or pt-BR.")
    return language, where


def files_in(folder: Location, where: object) -> list[Location]:
    """The text files of a folder, in the order of their names.

    Args:
        where: names the folder in the error.

    Raises:
        InputError: there is none.
    """
    files = sorted((file for file in folder.iterdir() if _is_text_file(file)), key=lambda file: file.name)
    if not files:
        raise InputError(f"{where}: the folder has no {' or '.join(FILES)}, and is not a prepared one.")
    return files


def _is_text_file(path: Location) -> bool:
    return any(fnmatchcase(path.name, pattern) for pattern in FILES) and path.is_file()


def require_text(path: Location) -> None:
    """Refuse a binary file; what cannot be read at all is left to who reads it.

    Raises:
        InputError: there is a zero byte near the start of the file.
    """
    with open_binary(path) as file:
        try:
            binary = b"\0" in file.read(START)
        except (OSError, EOFError, lzma.LZMAError, zlib.error):
            binary = False
    if binary:
        raise InputError(f"{path}: is a binary file; expected text in UTF-8 with one sentence a line.")


def one_lines(lines: Iterator[str]) -> Iterator[str]:
    """The lines with single spaces between their words, without the empty ones."""
    return (text for line in lines if (text := " ".join(line.split())))
