"""Tables on a terminal and in LaTeX: any text is printed as it is, and rows keep their fields."""

import re
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.report.tables import (
    Entry,
    Grid,
    grid_latex,
    grid_markdown,
    latex_comment,
    latex_escaped,
    print_grid,
)

COMMANDS = re.compile(r"\\text(?:backslash|asciitilde|asciicircum)\{\}|\\[&%$#_{}]|\$(?:\\pm|[<>])\$")


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"])))
def test_no_character_that_latex_reads_itself_is_left(text: str) -> None:
    assert not re.search(r"[\\&%$#_{}~^<>]", COMMANDS.sub("", latex_escaped(text)))


def test_marks_bold_and_comments() -> None:
    grid = Grid(["", "x"], [["a_b", Entry("-.5", marks="a", bold=True)]])
    assert "a\\_b & \\textbf{$-$.5}$^{a}$ \\\\" in grid_latex(grid)
    assert "| a_b | **-.5**ᵃ |" in grid_markdown(grid)
    assert latex_comment("one\ntwo") == "% one\n% two"


@pytest.mark.parametrize("columns", [200, 80, 40])
def test_a_narrow_terminal_shows_every_name_and_figure(
    columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    header = ["model", "language", *(f"figure {number}" for number in range(4))]
    names = ["everyday-retriever 98a10a033c8e", "build/office-with-a-long-name 0123456789ab", "third"]
    rows = [[name, "en", *(f"0.{row}{number} [0.100, 0.900]" for number in range(4))] for row, name in enumerate(names)]
    print_grid(Grid(header, rows))
    shown = re.sub(r"\x1b\[[\d;]*m", "", capsys.readouterr().out)  # without styles
    assert "…" not in shown
    assert max(map(len, shown.splitlines())) <= columns
    words = " ".join(re.sub(r"[^\w.\[\], /-]", "", shown).split())
    for cell in [*header[1:], *(cell for row in rows for cell in row)]:
        assert cell in words
