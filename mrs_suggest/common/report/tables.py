"""One table, four renderings: on a terminal, in Markdown, in LaTeX (package booktabs) and in HTML; and rich's console
and tables, with the control characters of texts made visible."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from mrs_suggest.common.text.text import SHOWN, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_SUPERSCRIPT = str.maketrans("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ")
_LATEX = str.maketrans(
    {mark: f"\\{mark}" for mark in "&%$#_{}"}
    | {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "±": "$\\pm$"}
    | {"\n": " ", "<": "$<$", ">": "$>$"}
)
_MINUS = re.compile(r"(?<!\w)-(?=[\d.])")


@dataclass(frozen=True)
class Entry:
    """A cell that is more than its text.

    Attributes:
        note: what follows the text, in HTML smaller and on a separate line.
        marks: letters or `*` above the line.
        below: small, below the text; in Markdown in a separate row.
        link: of the text, relative to the page.
        code: the text is code, and may break anywhere.
    """

    text: str
    note: str = ""
    marks: str = ""
    bold: bool = False
    below: str = ""
    shaded: bool = False
    link: str = ""
    code: bool = False


@dataclass(frozen=True)
class Grid:
    """A table; the columns after the first are figures, or texts.

    Attributes:
        header: titles of the columns; all of them empty: none is shown on a terminal.
        below: the first cell of the rows of what stands below, in Markdown.
        folded: the title of a table that HTML shows only when it is opened.
        title: above the table, on a terminal and in LaTeX.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | Entry]]
    texts: bool = False
    below: str = ""
    folded: str = ""
    title: str = ""


def print_grid(grid: Grid, notes: Iterable[str] = ()) -> None:
    """Print a table and notes below it: at full width where the output is not a terminal; where the terminal is too
    narrow, transposed, a few rows after the other. No figure is cut."""
    from rich.console import Console
    from rich.measure import Measurement

    console = Console(highlight=False, markup=False, emoji=False)  # file names are not markup

    def width(table: Table) -> int:
        return Measurement.get(console, console.options.update(max_width=1 << 20), table).maximum

    def part(first: int, last: int) -> Table:
        some = replace(grid, rows=grid.rows[first:last], title="" if first else grid.title)
        return _terminal_table(transposed(some))

    tables = [_terminal_table(grid)]
    if not sys.stdout.isatty():
        console.width = max(console.width, width(tables[0]))
    if grid.rows and width(tables[0]) > console.width:
        tables, first = [], 0
        while first < len(grid.rows):
            last = first + 1
            while last < len(grid.rows) and width(part(first, last + 1)) <= console.width:  # fit next to each other
                last += 1
            tables.append(part(first, last))
            first = last
    console.print(*tables)
    for note in notes:
        console.print(note.translate(SHOWN), style="dim", soft_wrap=True)


def _terminal_table(grid: Grid) -> Table:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=grid.title.translate(SHOWN) or None, title_justify="left", show_header=any(grid.header))
    for number, name in enumerate(grid.header):
        justify: Literal["left", "right"] = "right" if number and not grid.texts else "left"
        table.add_column(name.translate(SHOWN), justify=justify, overflow="fold")
    for row in grid.rows:
        table.add_row(*(Text(_plain(cell), style="bold" if _entry(cell).bold else "") for cell in row))
    return table


def transposed(grid: Grid) -> Grid:
    """The table with a column for each row; of a single row, which becomes the title, without a header."""
    names = [_entry(row[0]).text for row in grid.rows]
    columns = zip(*(row[1:] for row in grid.rows), strict=True)
    rows = [[name, *cells] for name, cells in zip(grid.header[1:], columns, strict=True)]
    if len(names) == 1:
        return Grid(["", ""], rows, grid.texts, title=" ".join(filter(None, (grid.title, names[0]))))
    return Grid([grid.header[0], *names], rows, grid.texts, title=grid.title)


def grid_markdown(grid: Grid) -> str:
    """The table in Markdown; figures are aligned at the right."""
    rows = [line for row in grid.rows for line in _markdown_rows(row, grid.below)]
    align = ["---", *["---" if grid.texts else "---:"] * (len(grid.header) - 1)]
    header = [_markdown_cell(name) for name in grid.header]
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, align, *rows])


def grid_latex(grid: Grid) -> str:
    """A `tabular`; the first column is text, the others are figures."""
    lines = [latex_comment(grid.title)] if grid.title else []
    lines += [f"\\begin{{tabular}}{{l{'r' * (len(grid.header) - 1)}}}", "\\toprule"]
    lines += [_latex_row([latex_escaped(name) for name in grid.header]), "\\midrule"]
    for first, *cells in grid.rows:
        figures = [_MINUS.sub("$-$", latex_escaped(_entry(cell).text)) for cell in cells]
        bold = [
            f"\\textbf{{{text}}}" if text and _entry(c).bold else text for text, c in zip(figures, cells, strict=True)
        ]
        marks = [f"$^{{{_entry(cell).marks}}}$" if _entry(cell).marks else "" for cell in cells]
        lines.append(_latex_row([latex_escaped(_entry(first).text), *map("".join, zip(bold, marks, strict=True))]))
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"])


def latex_escaped(text: str) -> str:
    r"""A text as LaTeX prints it.

    >>> print(latex_escaped("50 % of a_b"))
    50 \% of a\_b
    """
    return visible(text, "\n").translate(_LATEX)


def latex_comment(text: str) -> str:
    return "\n".join(f"% {visible(line)}" for line in text.splitlines())


def grid_html(grid: Grid, language: str = "") -> str:
    """The table in HTML; `language` is that of the texts in a table of texts."""
    head = "".join(f"<th>{safe(cell)}</th>" for cell in grid.header)
    rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>\n" for row in grid.rows)
    kind = f' lang="{safe(language)}"' if grid.texts and language else "" if grid.texts else " class=n"
    table = f"<div class=wide><table{kind}><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    return f"<details><summary>{safe(grid.folded)}</summary>{table}</details>" if grid.folded else table


def markdown_plain(text: str) -> str:
    """Text for Markdown, in which no element of HTML begins; what stands as code is code already."""
    parts = re.split("(`[^`]+`)", visible(text))
    return "".join(part if number % 2 else part.replace("<", "\\<") for number, part in enumerate(parts))


def _entry(cell: str | Entry) -> Entry:
    return cell if isinstance(cell, Entry) else Entry(cell)


def _plain(cell: str | Entry) -> str:
    """A cell on a terminal."""
    entry = _entry(cell)
    marks = entry.marks and ("*" if entry.marks == "*" else f" ({entry.marks})")
    return f"{entry.text}{marks}{entry.note and f' {entry.note}'}".translate(SHOWN)


def _markdown_rows(row: Sequence[str | Entry], below: str) -> list[list[str]]:
    lines = [[_markdown_cell(cell) for cell in row]]
    lower = [_entry(cell).below for cell in row]
    return [*lines, [below, *map(_markdown_cell, lower[1:])]] if any(lower) else lines


def _markdown_cell(cell: str | Entry) -> str:
    if isinstance(cell, str):
        return markdown_plain(cell).replace("|", "\\|")
    text = _markdown_cell(cell.text)
    if not text:
        return ""
    text = f"`{text}`" if cell.code else f"**{text}**" if cell.bold else text
    text = f"[{text}]({quote(cell.link)})" if cell.link else text
    text += cell.marks.translate(_SUPERSCRIPT)
    return f"{text} {_markdown_cell(cell.note)}" if cell.note else text


def _latex_row(cells: Sequence[str]) -> str:
    r"""A row; `\\` reads a `[` or `*` that follows it as its own."""
    return ("{}" if cells[0].startswith(("[", "*")) else "") + " & ".join(cells) + " \\\\"


def _html_cell(cell: str | Entry) -> str:
    if isinstance(cell, str):
        return f"<td>{safe(cell)}</td>"
    text = safe(cell.text or ("–" if cell.below else ""))
    text = f"<code>{text}</code>" if cell.code else f"<b>{text}</b>" if cell.bold else text
    text = f'<a href="{escape(quote(cell.link))}">{text}</a>' if cell.link else text
    text += f"<sup>{safe(cell.marks)}</sup>" if cell.marks else ""
    text += "".join(
        f"<small{kind}>{safe(more)}</small>" for kind, more in (("", cell.note), (" class=below", cell.below)) if more
    )
    return f"<td{' class=shaded' if cell.shaded else ''}>{text}</td>"


def safe(text: str) -> str:
    return escape(visible(text))


def make_console(width: int | None = None, **options: Any) -> Console:
    """A rich console that makes control characters in texts visible; rich's own colour codes stay.

    Args:
        width: columns if the output is not a terminal; None: rich's own guess.
    """
    from rich.console import Console
    from rich.text import Text

    class VisibleConsole(Console):
        def render_str(self, text: str, **named: Any) -> Text:
            return super().render_str(visible(text, "\n\t"), **named)

    to_terminal = "file" not in options and sys.stdout.isatty()
    return VisibleConsole(width=None if to_terminal else width, highlight=False, **options)


def make_table(*columns: str, title: str | None = None) -> Table:
    """A rich table; columns whose names begin with `>` are aligned to the right."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    return table


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> None:
    """Print a table whose first `left` columns are text, and whose others are figures."""
    table = make_table(*(name if number < left else f">{name}" for number, name in enumerate(header)), title=title)
    for row in rows:
        table.add_row(*row)
    make_console().print(table)
