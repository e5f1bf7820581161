"""Tables: on a narrow terminal nothing is cut; in LaTeX any text is printed as it is, and rows keep their fields."""

import re
import sys
from typing import Any

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


@pytest.mark.parametrize("width", [200, 80, 60, 30])
def test_no_name_or_figure_is_cut_on_a_narrow_terminal(width: int, monkeypatch: Any, capsys: Any) -> None:
    figures = [f"{n / 8:.3f} [{n / 9:.3f}, {n / 7:.3f}]" for n in range(1, 7)]
    names = [f"model-{letter} {'0123456789ab'}" for letter in "abcde"]
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", str(width))
    print_grid(Grid(["model", "language", *"uvwxyz"], [[name, "en", *figures] for name in names], title="The title"))
    lines = re.sub(r"\x1b\[\d*m", "", capsys.readouterr().out).splitlines()
    cells = [cell.strip() for line in lines for cell in re.split("[│┃]", line)]
    shown = " ".join(cells)
    assert max(map(len, lines)) <= width
    assert "…" not in shown
    assert shown.count("The title") == 1
    if width > 30:  # nothing is broken
        assert all(shown.count(name) == 1 for name in names)
        assert all(cells.count(one) == 5 for one in figures)
