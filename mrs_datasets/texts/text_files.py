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
START = 1 << 13  # bytes that are checked before a file is read as text


def split_language(text: str, option: str) -> tuple[str, str]:
    """The language and the source of `LANG=SOURCE`; InputError, naming the option, if one of them is missing."""
    language, _, where = text.partition("=")
    if not where:
        raise InputError(f"{option} {text}: expected LANG=SOURCE, such as ht=texts/ht.txt.")
    if find_language(language) is None:
        raise InputError(f"{option} {text}: {language!r} is not the code of a language, such as ht or pt-BR.")
    return language, where


def files_in(folder: Location, where: object) -> list[Location]:
    """The text files of a folder, by name; InputError, naming `where`, without text files."""
    files = [one for one in folder.iterdir() if any(fnmatchcase(one.name, p) for p in FILES) and one.is_file()]
    if not files:
        raise InputError(f"{where}: the folder has no {' or '.join(FILES)}, and is not a prepared one.")
    return sorted(files, key=lambda file: file.name)


def require_text(path: Location) -> None:
    """Refuse a binary file, which has a zero byte near its start; errors of reading are left to the reader."""
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
