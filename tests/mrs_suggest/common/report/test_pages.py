"""Pages of blocks: what Markdown and HTML show, and that no text becomes markup."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.report.pages import Entry, Grid, Heading, Picture, as_html


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
