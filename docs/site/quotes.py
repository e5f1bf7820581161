"""Tables and figures of results in the project's own pages, taken from their JSON files: `make results`.

A page says where a table comes from, and the lines between the two comments are replaced:

    <!-- results: docs/results/mrs-small.json 3 weighted -->
    <!-- end of results -->

After the file of `mrs reproduce`: the table (a figure is `figure-2`) and the metric, `claims` or `leads-COLUMN`; of a
table without columns, `all` or `leads`. A single figure of any JSON file, with the keys that lead to it and its format:

    <!-- figure: benchmarks/results/bench_serve.json/1 workers/bare ms .1f -->6.1<!-- -->
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.io.files import atomic_write

BEGIN = re.compile(r"^<!-- results: (\S+) (\S+) (\S+) -->$", re.MULTILINE)  # an indented one is an example
END = "<!-- end of results -->"
FIGURE = re.compile(r"(<!-- figure: (\S+\.json)/([^>]+) ([^\s>]+) -->).*?(<!-- -->)")


def quoted(text: str, folder: Path, page: str = "the page") -> str:
    """The text of a page with its tables replaced.

    Args:
        folder: that the files of results are named from.
        page: for the sentence of an error.

    Raises:
        InputError: a block has no end, or its file, table, metric or figure is not there.
    """
    made, place = [], 0
    for begin in BEGIN.finditer(text):
        end = text.find(END, begin.end())
        following = BEGIN.search(text, begin.end())
        if end < 0 or (following and following.start() < end):
            raise InputError(f"{page}: {begin[0]} has no end; write {END} below it.")
        table = _table(folder / begin[1], begin[2].replace("figure-", "figure "), begin[3], page)
        made += [text[place : begin.end()], f"\n\n{table.strip()}\n\n"]
        place = end
    filled = "".join([*made, text[place:]])
    return FIGURE.sub(
        lambda match: match[1] + _figure(folder / match[2], match[3].split("/"), match[4], page) + match[5], filled
    )


def _figure(path: Path, keys: Sequence[str], form: str, page: str) -> str:
    try:
        found: Any = json.loads(path.read_text(encoding="utf-8"))
        for key in keys:
            found = found[int(key) if isinstance(found, list) else key]
        return format(found, form).removeprefix("0") if form.endswith("f") and abs(found) < 1 else format(found, form)
    except (OSError, ValueError, KeyError, IndexError, TypeError) as error:
        raise InputError(
            f"{page}: {path} has no figure at {'/'.join(keys)} for {form} ({first_line(error)})."
        ) from None


def _table(path: Path, table: str, part: str, page: str) -> str:
    try:
        printed = json.loads(path.read_text(encoding="utf-8"))["printed"]
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(f"{page}: {path} is not a JSON file of `mrs reproduce`; name one.") from None
    if table not in printed:
        raise InputError(f"{page}: {path} has no table {table!r}; expected one of {', '.join(printed)}.")
    if part not in printed[table]:
        raise InputError(f"{page}: table {table} of {path} has no {part!r}; expected {', '.join(printed[table])}.")
    return str(printed[table][part])


def main(argv: Sequence[str]) -> int:
    """Fill in the pages that are named; files of results are named from the working folder."""
    for name in argv:
        path = Path(name)
        text = path.read_text(encoding="utf-8")
        if (filled := quoted(text, Path(), name)) != text:
            atomic_write(path, filled)
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except InputError as error:
        sys.exit(str(error))
