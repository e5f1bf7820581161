"""Sheets: what spreadsheet programs must not read, and texts that come back as they were."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.sheets import (
    escaped,
    is_altered,
    read_sheet,
    require_unfilled,
    restored,
    sheet_bytes,
    sheets_in,
    text_hash,
)

TEXTS = st.text() | st.text("=+-@'＝\t\r\n\",; 1/5a\x00\ufeff", max_size=8)


@given(TEXTS)
def test_escaping_can_be_undone(text: str) -> None:
    cell = escaped(text)
    assert restored(cell) == text
    assert cell.strip()[:1] not in tuple("=+-@＝＋－＠")
    assert not is_altered(cell, text_hash(text))
    assert not is_altered(text, text_hash(text)), "a program dropped the apostrophe"


def test_a_long_text_with_a_number_is_left_alone() -> None:
    assert escaped("I was there for 3 days") == "I was there for 3 days"
    assert escaped("5 May 2020") == "'5 May 2020"


@pytest.mark.parametrize("text", ["\t=1+1", "\r\n+1", " @x", "\x01-3", "\u200b=A1", "\ufeff=A1"])
def test_what_is_not_seen_hides_no_formula(text: str) -> None:
    assert escaped(text) == f"'{text}"


@given(rows=st.lists(st.tuples(TEXTS, TEXTS), min_size=1), delimiter=st.sampled_from(",;\t"))
def test_cells_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]], delimiter: str
) -> None:
    path = tmp_path_factory.getbasetemp() / "sheet.csv"
    path.write_bytes(sheet_bytes(("a", "b"), rows))
    if delimiter != ",":  # as another program saves it
        text = io.StringIO()
        csv.writer(text, delimiter=delimiter).writerows([("A ", "b"), *rows])
        path.write_bytes(text.getvalue().encode())
    kept = [(number, row) for number, row in enumerate(rows, start=2) if any(cell.strip() for cell in row)]
    assert list(read_sheet(path, ("a", "b"))) == [(number, {"a": row[0], "b": row[1]}) for number, row in kept]


def test_what_is_no_sheet(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    for content, expected in (
        (b"a,b\n\xff", "not UTF-8"),
        (b"a\n1\n", "row 1: expected the columns a, b"),
        (b"", "row 1"),
    ):
        path.write_bytes(content)
        with pytest.raises(InputError, match=expected):
            list(read_sheet(path, ("a", "b")))


def test_filled_and_added_sheets_are_not_lost(tmp_path: Path) -> None:
    (tmp_path / "one.csv").write_bytes(b"a")
    (tmp_path / "~lock.csv").write_bytes(b"")
    files = sheets_in(tmp_path)
    assert list(files) == ["one.csv"]
    require_unfilled(tmp_path, files, tmp_path)
    (tmp_path / "one.csv").unlink()
    require_unfilled(tmp_path, files, tmp_path)
    (tmp_path / "two.csv").write_bytes(b"a")
    with pytest.raises(InputError, match=r"two\.csv has been filled in"):
        require_unfilled(tmp_path, files, tmp_path)
