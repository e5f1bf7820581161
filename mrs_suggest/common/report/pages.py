"""A report as blocks, written as Markdown and as one HTML file with its pictures in it.

The HTML has no scripts and loads nothing: its content security policy forbids both. It follows the reader's choice of a
light or a dark page, and tables that are wider than the screen scroll by themselves, their first column staying.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path
from urllib.parse import quote

from mrs_suggest.common.report.cards import markdown_table
from mrs_suggest.common.text.text import visible

_CODE, _AS_CODE = re.compile(r"`([^`]+)`"), r"<code>\1</code>"
_STRONG, _AS_STRONG = re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"
_SUPERSCRIPT = str.maketrans("abcdefghijklmnoprstuvwxyz", "ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻ")


@dataclass(frozen=True)
class Heading:
    """A heading; level 1 is the title."""

    text: str
    level: int = 2


@dataclass(frozen=True)
class Paragraph:
    """A paragraph, in which code stands between backticks and strong text between `**`; a note is grey in HTML."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Bullets:
    """A list; its items as a paragraph's text."""

    items: Sequence[str]


@dataclass(frozen=True)
class Entry:
    """A cell of a table that is more than its text.

    Attributes:
        note: what follows the text, in HTML smaller and on a line of its own.
        marks: lower-case letters above the line.
        below: small, below the text; in Markdown in a row of its own.
        shaded: with a background in HTML.
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
        below: the first cell of the rows of what stands below, in Markdown.
        folded: the title of a table that HTML shows only when it is opened.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str | Entry]]
    texts: bool = False
    below: str = ""
    folded: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture in the report's folder, and what it shows."""

    file: str
    shows: str


Block = Heading | Paragraph | Bullets | Grid | Picture


def as_markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown; pictures are links to their files."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def as_html(blocks: Sequence[Block], folder: Path, language: str = "", contents: bool = False) -> str:
    """The blocks as a page without scripts or links to elsewhere.

    Args:
        folder: with the pictures.
        language: of the texts in tables of texts, for the browser's fonts and line breaks.
        contents: list the headings of level 2 below the title.
    """
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Report")
    parts = [_html(block, folder, language, number) for number, block in enumerate(blocks)]
    if contents:
        links = (
            f'<a href="#part-{number}">{_safe(block.text)}</a>'
            for number, block in enumerate(blocks)
            if isinstance(block, Heading) and block.level == 2
        )
        parts.insert(1, f"<nav>{' '.join(links)}</nav>")
    style = (
        resources.files("mrs_suggest.common.report")
        .joinpath("pages.css")
        .read_text(encoding="utf-8")
        .replace("\r\n", "\n")
    )
    digest = base64.b64encode(hashlib.sha256(style.encode("utf-8")).digest()).decode()
    policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{_safe(title)}</title><style>{style}</style>"
    )
    body = "\n".join(parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {_plain(block.text)}"
    if isinstance(block, Paragraph):
        return _plain(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {_plain(item)}" for item in block.items)
    if isinstance(block, Picture):
        return f"![{_plain(block.shows)}]({block.file})"
    rows = [line for row in block.rows for line in _markdown_rows(row, block.below)]
    table = markdown_table([_markdown_cell(name) for name in block.header], rows)
    return table.replace("---:", "---") if block.texts else table


def _markdown_rows(row: Sequence[str | Entry], below: str) -> list[list[str]]:
    lines = [[_markdown_cell(cell) for cell in row]]
    lower = [cell.below if isinstance(cell, Entry) else "" for cell in row]
    return [*lines, [below, *map(_markdown_cell, lower[1:])]] if any(lower) else lines


def _markdown_cell(cell: str | Entry) -> str:
    if isinstance(cell, str):
        return _plain(cell).replace("|", "\\|")
    text = _markdown_cell(cell.text)
    if not text:
        return ""
    text = f"`{text}`" if cell.code else f"**{text}**" if cell.bold else text
    text = f"[{text}]({quote(cell.link)})" if cell.link else text
    text += cell.marks.translate(_SUPERSCRIPT)
    return f"{text} {_markdown_cell(cell.note)}" if cell.note else text


def _plain(text: str) -> str:
    """Text for Markdown, in which no element of HTML begins; what stands as code is code already."""
    parts = re.split("(`[^`]+`)", visible(text))
    return "".join(part if number % 2 else part.replace("<", "\\<") for number, part in enumerate(parts))


def _html(block: Block, folder: Path, language: str, number: int) -> str:
    if isinstance(block, Heading):
        return f'<h{block.level} id="part-{number}">{_safe(block.text)}</h{block.level}>'
    if isinstance(block, Paragraph):
        return f"<p{' class=note' if block.note else ''}>{_inline(block.text)}</p>"
    if isinstance(block, Bullets):
        return f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in block.items)}</ul>"
    if isinstance(block, Picture):
        data = base64.b64encode((folder / block.file).read_bytes()).decode()
        return f'<div class=wide><img src="data:image/png;base64,{data}" alt="{_safe(block.shows)}"></div>'
    head = "".join(f"<th>{_safe(cell)}</th>" for cell in block.header)
    rows = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>\n" for row in block.rows)
    kind = f' lang="{_safe(language)}"' if block.texts and language else "" if block.texts else " class=n"
    table = f"<div class=wide><table{kind}><thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    return f"<details><summary>{_safe(block.folded)}</summary>{table}</details>" if block.folded else table


def _html_cell(cell: str | Entry) -> str:
    if isinstance(cell, str):
        return f"<td>{_safe(cell)}</td>"
    text = _safe(cell.text or ("–" if cell.below else ""))
    text = f"<code>{text}</code>" if cell.code else f"<b>{text}</b>" if cell.bold else text
    text = f'<a href="{escape(quote(cell.link))}">{text}</a>' if cell.link else text
    text += f"<sup>{_safe(cell.marks)}</sup>" if cell.marks else ""
    text += "".join(
        f"<small{kind}>{_safe(more)}</small>" for kind, more in (("", cell.note), (" class=below", cell.below)) if more
    )
    return f"<td{' class=shaded' if cell.shaded else ''}>{text}</td>"


def _inline(text: str) -> str:
    return _STRONG.sub(_AS_STRONG, _CODE.sub(_AS_CODE, _safe(text)))


def _safe(text: str) -> str:
    return escape(visible(text))
