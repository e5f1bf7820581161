"""A report as blocks, written as Markdown and as one HTML file with its pictures in it."""

from __future__ import annotations

import base64
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

from mrs_core.cards import markdown_table
from mrs_core.text import visible

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 72em; margin: 2em auto; padding: 0 1em; color: #222; }
table { border-collapse: collapse; margin: 1em 0; }
td, th { padding: .25em .7em; text-align: left; vertical-align: top; border-bottom: 1px solid #ddd; }
th { border-bottom: 1px solid #777; }
table.n td + td, table.n th + th { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
.wide { overflow-x: auto; } img { max-width: 100%; } p.note { color: #555; }
"""
_CODE, _AS_CODE = re.compile(r"`([^`]+)`"), r"<code>\1</code>"


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, in which code stands between backticks; a note is grey in HTML."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Grid:
    """A table; the columns after the first are figures, or texts."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    texts: bool = False


@dataclass(frozen=True)
class Picture:
    """A picture in the report's folder, and what it shows."""

    file: str
    shows: str


Block = Heading | Paragraph | Grid | Picture


def as_markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown; pictures are links to their files."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def as_html(blocks: Sequence[Block], folder: Path, language: str) -> str:
    """The blocks as a page without scripts or links to elsewhere.

    Args:
        folder: with the pictures.
        language: of the texts in tables of texts, for the browser's fonts and line breaks.
    """
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Report")
    body = "\n".join(_html(block, folder, language) for block in blocks)
    head = f'<meta charset="utf-8"><title>{_safe(title)}</title><style>{STYLE}</style>'
    return f'<!doctype html>\n<html lang="en">{head}\n{body}\n</html>\n'


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {visible(block.text)}"
    if isinstance(block, Paragraph):
        return visible(block.text)
    if isinstance(block, Picture):
        return f"![{visible(block.shows)}]({block.file})"
    cells = [[visible(cell).replace("|", "\\|") for cell in row] for row in [block.header, *block.rows]]
    table = markdown_table(cells[0], cells[1:])
    return table.replace("---:", "---") if block.texts else table


def _html(block: Block, folder: Path, language: str) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level}>{_safe(block.text)}</h{block.level}>"
    if isinstance(block, Paragraph):
        return f"<p{' class=note' if block.note else ''}>{_CODE.sub(_AS_CODE, _safe(block.text))}</p>"
    if isinstance(block, Picture):
        data = base64.b64encode((folder / block.file).read_bytes()).decode()
        return f'<p><img src="data:image/png;base64,{data}" alt="{_safe(block.shows)}"></p>'
    head = "".join(f"<th>{_safe(cell)}</th>" for cell in block.header)
    rows = "".join("<tr>" + "".join(f"<td>{_safe(cell)}</td>" for cell in row) + "</tr>\n" for row in block.rows)
    kind = f' lang="{_safe(language)}"' if block.texts and language else "" if block.texts else " class=n"
    return f"<div class=wide><table{kind}><tr>{head}</tr>\n{rows}</table></div>"


def _safe(text: str) -> str:
    return escape(visible(text))
