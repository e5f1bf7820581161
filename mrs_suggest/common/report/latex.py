"""Tables for a paper: a `tabular` with the lines of the package booktabs."""

from __future__ import annotations

from collections.abc import Sequence

_MARKS = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$"}
    | {"\n": " ", "<": "$<$", ">": "$>$"}
)


def escaped(text: str) -> str:
    r"""A text as LaTeX prints it.

    >>> print(escaped("50 % of a_b"))
    50 \% of a\_b
    """
    return text.translate(_MARKS)


def bold(text: str) -> str:
    """LaTeX of a text that is escaped already, in bold."""
    return f"\\textbf{{{text}}}" if text else ""


def tabular(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table; the first column is text, the others are figures.

    Args:
        header, rows: LaTeX, escaped.
    """
    lines = [f"\\begin{{tabular}}{{l{'r' * (len(header) - 1)}}}", "\\toprule", _line(header), "\\midrule"]
    lines += [_line(row) for row in rows]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def _line(row: Sequence[str]) -> str:
    """A row; `\\\\` reads a `[` or `*` that follows it as its own."""
    return ("{}" if row[0].startswith(("[", "*")) else "") + " & ".join(row) + " \\\\"


def comment(text: str) -> str:
    """A text as comment lines."""
    return "\n".join(f"% {line}" for line in text.splitlines())
