"""Gather the site's pages below build/: docs/, what is written from the code, and the project's own files.

    python docs/site/assemble.py build/site-pages
    mkdocs build --strict

A page may link to a file outside of docs/ where it reads well on a code host. Such a link is turned to the page of the
site that shows the file; where none does, its text stays without the link.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from api_pages import api_pages
from blocks import read_ledger, with_reasons
from cli_pages import cli_page, trainers_page
from config_page import anchor, config_page
from everyday_page import everyday_page
from fonts import write_fonts
from result_page import result_page

from mrs_suggest.common import __version__
from mrs_suggest.common.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
OWN = {
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "README.md": "index.md",
    "examples/README.md": "examples.md",
}
LINK = re.compile(r"\[([^\[\]]*)\]\(([^)\s:]+)\)")
CONFIGS = "trainers/configs/"


def pages() -> dict[str, str]:
    """Path on the site -> Markdown, of all pages."""
    docs = ROOT / "docs"
    found = {str(path.relative_to(docs)): f"docs/{path.relative_to(docs)}" for path in sorted(docs.rglob("*.md"))}
    made = {name: _linked(ROOT / source, name) for name, source in found.items() if not name.startswith("results/")}
    own = {
        name: OWN[name] for name in ("CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md") if (ROOT / name).is_file()
    }
    made |= {shown: _linked(ROOT / name, shown) for name, shown in own.items()}
    return made | generated()


def generated() -> dict[str, str]:
    """The pages that are written from the code."""
    return {
        "reference/cli.md": cli_page(__version__),
        "reference/trainers.md": trainers_page(),
        "reference/configs.md": config_page(ROOT),
        "results.md": result_page(ROOT),
        "mrs_everyday.md": everyday_page(),
        **{f"reference/api/{name}": text for name, text in api_pages(ROOT).items()},
    }


def _linked(source: Path, name: str) -> str:
    """The text of a page, with its links to files outside of docs/ turned to pages of the site."""
    up = "../" * name.count("/")

    def turned(found: re.Match[str]) -> str:
        target, _, part = found[2].partition("#")
        if not target:
            return found[0]
        path = (source.parent / target).resolve()
        try:
            inside = str(path.relative_to(ROOT))
        except ValueError:
            raise InputError(f"{source}: the link {found[2]} leaves the project; link to a file of it.") from None
        if inside.startswith(CONFIGS):
            inside, part = "reference/configs.md", anchor(inside.removeprefix(CONFIGS))
        elif inside.startswith("docs/"):
            inside = inside.removeprefix("docs/")
        elif inside in OWN:
            inside = OWN[inside]
        else:
            return found[1]
        return f"[{found[1]}]({up}{inside}{'#' if part else ''}{part})"

    text = with_reasons(source.read_text(encoding="utf-8"), read_ledger(ROOT).get(str(source.relative_to(ROOT)), {}))
    pieces = re.split(r"(^```.*?^```$)", text, flags=re.DOTALL | re.MULTILINE)
    return "".join(piece if piece.startswith("```") else LINK.sub(turned, piece) for piece in pieces)


def assemble(folder: Path) -> int:
    """Write all pages, pictures, styles and fonts; returns the number of pages."""
    shutil.rmtree(folder, ignore_errors=True)
    made = pages()
    for name, text in made.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for picture in (ROOT / "docs").rglob("*"):
        if picture.suffix in (".png", ".svg"):
            path = folder / picture.relative_to(ROOT / "docs")
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(picture, path)
    (folder / "site").mkdir()
    shutil.copyfile(ROOT / "docs" / "site" / "extra.css", folder / "site" / "extra.css")
    write_fonts(ROOT / "docs" / "site" / "fonts", folder / "site" / "fonts")
    return len(made)


if __name__ == "__main__":
    try:
        print(f"{assemble(Path(sys.argv[1]))} pages in {sys.argv[1]}")
    except InputError as error:
        sys.exit(str(error))
