"""A measured figure in the pages that people read first stands in a comment that names its record.

Typed ones were wrong whenever a model or a machine changed. What is no measurement is listed here.
"""

import re

import pytest

from tests.docs.test_pages import ROOT

GUIDES = sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs" / "how_to").glob("*.md"))
PAGES = ["README.md", "docs/index.md", "docs/guard.md", "docs/serving.md", *GUIDES]
SETTINGS = {"3.11", "95 %", "1 MiB", "32 KiB", "1.30", "50 ms", "3.2", ".1667", ".5", "0.1", "0.9", ".3", "0.3", "0.7"}
NO_PROSE = re.compile(
    r"^```.*?^```$|<!-- results:.*?<!-- end of results -->|<!-- figure:.*?<!-- -->|`[^`\n]*`|\]\([^)]*\)", re.S | re.M
)
FIGURE = re.compile(r"(?<![\w.,/§-])(?:\d[\d,.]*\s?(?:%|[mnu]?s\b|[KMG]i?B\b|times\b)|\d*\.\d+(?![\w.]*\w))")


@pytest.mark.parametrize("page", PAGES)
def test_measured_figures_name_their_record(page: str) -> None:
    prose = NO_PROSE.sub(" ", (ROOT / page).read_text(encoding="utf-8"))
    assert [figure for figure in FIGURE.findall(prose) if figure not in SETTINGS] == []


def test_a_typed_figure_is_found() -> None:
    text = "It takes 6.1 ms, .2447 of them in 18 MB (section 4.1)."
    assert FIGURE.findall(text) == ["6.1 ms", ".2447", "18 MB", "4.1"]
    assert NO_PROSE.sub("", "<!-- figure: r.json/n .1f -->6.1<!-- --> ms") == " ms"
