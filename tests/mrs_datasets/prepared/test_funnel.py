"""How a data set was built, on the page `report.html`."""

from html import escape
from html.parser import HTMLParser
from typing import Any

from mrs_datasets.prepared.funnel import funnel_page

EVIL = '<script>alert("1")</script>'


def report(**pipeline: Any) -> dict[str, Any]:
    return {
        "name": "MRS",
        "version": "0.1",
        "configs": {"en": {"train": {"rows": 1234}, "test": {"rows": 5}}, "en-responses": {"train": {"rows": 6}}},
        "pipeline": {
            "dumps": [{"name": "RC_2018-01.zst", "bytes": 12345, "sha256": "0a", "lossy": ""}],
            "profile": "paper",
            "departures": {},
            "stages": [
                {"stage": "read", "in": 4000, "out": 3000, "dropped": {"broken JSON": 1, "blank line": 999}},
                {"stage": "filter", "in": 3000, "out": 0, "dropped": {"low score": 3000}},
            ],
            "languages": {"de": {"low": 7}, "en": {"kept": 90, "low": 10}, "fr": {"kept": 95, "low": 1}},
            "warnings": [],
            **pipeline,
        },
    }


class Walker(HTMLParser):
    """Checks that every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_values_are_escaped_and_empty_stages_have_a_page() -> None:
    page = funnel_page(
        report(
            dumps=[{"name": EVIL, "bytes": 1, "sha256": "0a", "lossy": EVIL}],
            departures={"split_by": EVIL},
            stages=[{"stage": EVIL, "in": 1, "out": 1, "dropped": {EVIL: 0}}],
            languages={EVIL: {"kept": 1}},
            warnings=[f"{EVIL}: the file ends early; everything before was used."],
        )
    )
    walker = Walker()
    walker.feed(page)
    assert walker.open == []
    assert "<script" not in page
    assert page.count(escape(EVIL)) >= 4
    assert "Warnings" in page
    empty = [{"stage": "read", "in": 0, "out": 0, "dropped": {}}]
    assert "read" in funnel_page(report(stages=empty, languages={"en": {}}))
    assert funnel_page(report(stages=[], languages={}, dumps=[]))
