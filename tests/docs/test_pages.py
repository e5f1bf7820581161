"""The Markdown files of the project: links lead somewhere, and snippets are Python."""

import doctest
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlparse

import pytest

from mrs_metrics.spaces import metric_names

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^ *```.*?^ *```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?\s*\)|<(https?://[^>\s]+)>")
GENERATED = ("reference/", "results.md")  # what docs/site/ writes; `mkdocs build --strict` looks at links to these
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def links(page: Path) -> Iterator[str]:
    text = re.sub(r"`[^`\n]*`", "``", FENCED.sub("", page.read_text(encoding="utf-8")))
    for found in LINK.finditer(text):
        yield found[1] or found[2]


def anchors(page: Path) -> tuple[set[str], set[str]]:
    """The anchors of a page's headings, as a code host makes them and as the site does."""
    text = FENCED.sub("", page.read_text(encoding="utf-8"))
    heads = [
        re.sub(r"[`*]|\[([^]]*)\]\([^)]*\)", r"\1", head) for head in re.findall(r"^#+ +(.+?) *$", text, re.MULTILINE)
    ]
    host = {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}
    plain = [unicodedata.normalize("NFKD", head).encode("ascii", "ignore").decode() for head in heads]
    return host, {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", head).strip().lower()) for head in plain}


def wrong(page: Path, link: str) -> str:
    """What is wrong with a link; empty if nothing is."""
    if re.match(r"[a-z]+:", link):
        parts = urlparse(link)
        fine = parts.scheme in ("http", "https") and re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc)
        return "" if fine or parts.scheme == "mailto" else "it is no address"
    target, _, anchor = link.partition("#")
    path = (page.parent / target).resolve() if target else page
    if ROOT / "docs" in path.parents and str(path.relative_to(ROOT / "docs")).startswith(GENERATED):
        return ""
    if not path.exists():
        return "there is no such file"
    if anchor and not all(anchor in each for each in anchors(path)):
        return "there is no such heading"
    return ""


def test_every_link_and_anchor_leads_somewhere() -> None:
    pages = [page for page in PAGES if not page.name.endswith("_card.md")]
    faults = [f"{name(page)}: {link}: {told}" for page in pages for link in links(page) if (told := wrong(page, link))]
    assert faults == []
    assert sum(1 for page in pages for _ in links(page)) > 100


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_a_reader_of_a_clone_learns_how_to_make_generated_pages(page: str) -> None:
    assert "`make docs`" in (ROOT / page).read_text(encoding="utf-8")  # links to them are dead until then


def test_the_table_of_metrics_marks_those_that_evaluate_cannot_load() -> None:
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    found = dict(re.findall(r"^\| \[(\w+)\]\(metrics/\w+\.md\)( \*)? \|", page, re.MULTILINE))
    assert sorted(name for name, mark in found.items() if not mark) == sorted(metric_names())
    assert {name for name, mark in found.items() if mark} == {"judge", "semantic"}


# The blocks of this page are files and parts of files; test_first_contribution.py puts them in their places.
WHOLE = [page for page in PAGES if page.name != "first_contribution.md"]


@pytest.mark.parametrize("page", WHOLE, ids=name)
def test_python_snippets_are_python(page: Path) -> None:
    for number, snippet in enumerate(PYTHON.findall(page.read_text(encoding="utf-8")), 1):
        if ">>>" in snippet:
            doctest.DocTestParser().get_examples(snippet)
            snippet = "".join(one.source for one in doctest.DocTestParser().get_examples(snippet))
        compile(snippet, f"{name(page)}, snippet {number}", "exec")


def sessions(page: Path) -> str:
    """The sessions of a page, one after the other, without blocks whose mark says `not run`."""
    text = re.sub(
        r"^<!-- not run: [^>]* -->\n```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )
    return "\n".join(one for one in PYTHON.findall(text) if ">>>" in one)


# A session that reads what a command of its page made, below build/, is left out.
SESSIONS = [page for page in WHOLE if sessions(page) and "build/" not in sessions(page)]


@pytest.mark.parametrize("page", SESSIONS, ids=name)
def test_sessions_print_what_they_show(page: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(sessions(page), {}, name(page), name(page), 0)
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    told: list[str] = []
    doctest.DocTestRunner(optionflags=flags, verbose=False).run(test, out=told.append)
    assert told == []
    assert test.examples
