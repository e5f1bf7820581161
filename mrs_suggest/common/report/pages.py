"""A report as blocks, written as Markdown and as one HTML file with its pictures in it.

The HTML loads nothing: its content security policy forbids that, and all scripts but the one that is passed. It follows
the reader's choice of a light or a dark page, and tables that are wider than the screen scroll by themselves, their
first column staying.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from pathlib import Path

from mrs_suggest.common.report.tables import Entry as Entry
from mrs_suggest.common.report.tables import Grid as Grid
from mrs_suggest.common.report.tables import grid_html, grid_markdown, markdown_plain, safe

_CODE, _AS_CODE = re.compile(r"`([^`]+)`"), r"<code>\1</code>"
_STRONG, _AS_STRONG = re.compile(r"\*\*([^*]+)\*\*"), r"<strong>\1</strong>"


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
class Picture:
    """A picture in the report's folder, and what it shows."""

    file: str
    shows: str


Block = Heading | Paragraph | Bullets | Grid | Picture


def as_markdown(blocks: Sequence[Block]) -> str:
    """The blocks as Markdown; pictures are links to their files."""
    return "\n\n".join(_markdown(block) for block in blocks) + "\n"


def as_html(blocks: Sequence[Block], folder: Path, language: str = "", contents: bool = False, script: str = "") -> str:
    """The blocks as a page without links to elsewhere.

    Args:
        language: of the texts in tables of texts, for the browser's fonts and line breaks.
        contents: list the headings of level 2 below the title.
        script: the page's only one, at its end.
    """
    title = next((block.text for block in blocks if isinstance(block, Heading)), "Report")
    parts = [_html(block, folder, language, number) for number, block in enumerate(blocks)]
    if contents:
        links = (
            f'<a href="#part-{number}">{safe(block.text)}</a>'
            for number, block in enumerate(blocks)
            if isinstance(block, Heading) and block.level == 2
        )
        parts.insert(1, f"<nav>{' '.join(links)}</nav>")
    style = resources.files("mrs_suggest.common.report").joinpath("pages.css").read_text(encoding="utf-8")
    style, script = (text.replace("\r\n", "\n") for text in (style, script))
    allowed = f"; script-src {_digest(script)}" if script else ""
    policy = (
        f"default-src 'none'; img-src data:; style-src {_digest(style)}; base-uri 'none'; form-action 'none'{allowed}"
    )
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{escape(policy)}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{safe(title)}</title><style>{style}</style>"
    )
    body = "\n".join([*parts, *([f"<script>{script}</script>"] if script else [])])
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n<body>\n{body}\n</body></html>\n'


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode('utf-8')).digest()).decode()}'"


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {markdown_plain(block.text)}"
    if isinstance(block, Paragraph):
        return markdown_plain(block.text)
    if isinstance(block, Bullets):
        return "\n".join(f"- {markdown_plain(item)}" for item in block.items)
    if isinstance(block, Picture):
        return f"![{markdown_plain(block.shows)}]({block.file})"
    return grid_markdown(block)


def _html(block: Block, folder: Path, language: str, number: int) -> str:
    if isinstance(block, Heading):
        return f'<h{block.level} id="part-{number}">{safe(block.text)}</h{block.level}>'
    if isinstance(block, Paragraph):
        return f"<p{' class=note' if block.note else ''}>{_inline(block.text)}</p>"
    if isinstance(block, Bullets):
        return f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in block.items)}</ul>"
    if isinstance(block, Picture):
        data = base64.b64encode((folder / block.file).read_bytes()).decode()
        return f'<div class=wide><img src="data:image/png;base64,{data}" alt="{safe(block.shows)}"></div>'
    return grid_html(block, language)


def _inline(text: str) -> str:
    return _STRONG.sub(_AS_STRONG, _CODE.sub(_AS_CODE, safe(text)))
