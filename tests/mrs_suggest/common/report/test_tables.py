"""LaTeX tables: any text is printed as it is, and rows keep their fields."""

import re

from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.report.tables import Entry, Grid, grid_latex, grid_markdown, latex_comment, latex_escaped

COMMANDS = re.compile(r"\\text(?:backslash|asciitilde|asciicircum)\{\}|\\[&%$#_{}]|\$(?:\\pm|[<>])\$")


@given(st.text(st.characters(blacklist_categories=["Cs", "Cc"])))
def test_no_character_that_latex_reads_itself_is_left(text: str) -> None:
    assert not re.search(r"[\\&%$#_{}~^<>]", COMMANDS.sub("", latex_escaped(text)))


def test_marks_bold_and_comments() -> None:
    grid = Grid(["", "x"], [["a_b", Entry("-.5", marks="a", bold=True)]])
    assert "a\\_b & \\textbf{$-$.5}$^{a}$ \\\\" in grid_latex(grid)
    assert "| a_b | **-.5**ᵃ |" in grid_markdown(grid)
    assert latex_comment("one\ntwo") == "% one\n% two"
