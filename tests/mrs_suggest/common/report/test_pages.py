"""Pages of blocks: what Markdown and HTML show, and that no text becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.report.pages import Bullets, Entry, Grid, Heading, Picture, as_html, as_markdown

ENTRY = Entry(".2500", note="± .0100", marks="ab", bold=True, below=".0300", shaded=True)


def test_a_cell_and_what_belongs_to_it(tmp_path: Path) -> None:
    grid = Grid(["", "en"], [["mt", ENTRY], ["x", Entry("", below="1")], ["none", ""]], below="_paper_")
    assert as_markdown([grid]).splitlines() == [
        "|  | en |",
        "| --- | ---: |",
        "| mt | **.2500**ᵃᵇ ± .0100 |",
        "| _paper_ | .0300 |",
        "| x |  |",
        "| _paper_ | 1 |",
        "| none |  |",
    ]
    page = as_html([Heading("T", 1), grid], tmp_path)
    cell = "<b>.2500</b><sup>ab</sup><small>± .0100</small><small class=below>.0300</small>"
    assert f"<td class=shaded>{cell}</td>" in page
    assert "<td>–<small class=below>1</small></td>" in page


def test_lists_links_code_and_folded_tables(tmp_path: Path) -> None:
    blocks = [
        Heading("Title", 1),
        Heading("Runs & more"),
        Bullets(["one `x < y`", "**two**"]),
        Grid(
            ["run"],
            [[Entry("a/42", link="cells/a 42/run.json")], [Entry("mrs train", code=True)]],
            True,
            folded="2 runs",
        ),
    ]
    text, page = as_markdown(blocks), as_html(blocks, tmp_path, contents=True)
    assert "- one `x < y`\n- **two**" in text
    assert "| [a/42](cells/a%2042/run.json) |" in text
    assert "| `mrs train` |" in text
    assert '<nav><a href="#part-1">Runs &amp; more</a></nav>' in page
    assert '<h2 id="part-1">' in page
    assert "<li>one <code>x &lt; y</code></li><li><strong>two</strong></li>" in page
    assert "<details><summary>2 runs</summary>" in page
    assert '<a href="cells/a%2042/run.json">a/42</a>' in page


def test_the_policy_lets_the_style_in_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "one.png").write_bytes(b"\x89PNG")
    page = as_html([Heading("T", 1), Picture("one.png", 'a "b"')], tmp_path)
    assert "default-src &#x27;none&#x27;; img-src data:; style-src &#x27;sha256-" in page
    assert 'alt="a &quot;b&quot;"' in page
    assert not re.search(r"https?:|<script|@import|url\(", page)


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, list[str]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))


@pytest.mark.hypothesis
@given(st.text() | st.text("<>&\"'`*|\\ a\n\x1b\u202e"))
def test_no_text_becomes_markup(text: str) -> None:
    def tags(of: str) -> list[tuple[str, list[str]]]:
        cell = Entry(of, note=of, below=of, link=of)
        blocks = [Heading(of, 1), Heading(of), Grid([of], [[of, cell]], folded=of or "x")]
        parser = _Tags()
        parser.feed(as_html(blocks, Path(), contents=True))
        return [tag for tag in parser.tags if tag[0] != "small" and tag[0] != "a"]

    assert tags(text) == tags("text" if text else "")
