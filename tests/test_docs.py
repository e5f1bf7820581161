"""What the documentation shows is what the project makes."""

import json
import re
from pathlib import Path

import pytest

from mrs_suggest.cli.reproduce import TABLES
from mrs_suggest.reproduce.page import unit_note
from mrs_suggest.reproduce.report import printed_tables
from mrs_suggest.reproduce.results import ROW
from mrs_suggest.reproduce.table import read_table


@pytest.mark.parametrize(
    ("shown", "made"),
    [
        ("docs/dataset_card.md", "mrs_datasets/sample/README.md"),
        ("docs/model_card.md", "mrs_suggest/suggest/embedded/everyday-retriever/README.md"),
    ],
)
def test_the_cards_in_the_docs_are_those_that_ship(repository: Path, shown: str, made: str) -> None:
    assert (repository / shown).read_bytes() == (repository / made).read_bytes(), f"copy {made} to {shown}"


def test_the_picture_of_the_readme_shows_what_the_model_suggests(repository: Path) -> None:
    from mrs_suggest.suggest.suggester import Suggester

    suggester = Suggester.from_pretrained("everyday-retriever")
    chats = (repository / "docs" / "suggestions.html").read_text(encoding="utf-8").split('<div class="c">')[1:]
    assert len(chats) == 3
    for chat in chats:
        (language,), (message,), shown = (re.findall(rf'<div class="{kind}">([^<]+)', chat) for kind in "lms")
        assert [suggestion.reply for suggestion in suggester.suggest([message], language)[0]] == shown


def test_the_page_on_scale_has_the_figures_of_its_json(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(repository / "benchmarks")
    import bench_scale

    page = (repository / "docs" / "scale.md").read_text(encoding="utf-8")
    record = json.loads((repository / "benchmarks" / "results" / "bench_scale.json").read_text(encoding="utf-8"))
    assert bench_scale.page_with(page, record) == page, "run python benchmarks/bench_scale.py --docs"


PAGES = ("README.md", "docs/*.md", "docs/*/*.md")


def test_figures_and_tables_are_those_of_their_records(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(repository / "docs" / "site")
    from quotes import quoted

    for page in (path for pattern in PAGES for path in repository.glob(pattern)):
        text = page.read_text(encoding="utf-8")
        assert quoted(text, repository, page.name) == text, "run make results"


RECORDS = sorted((Path(__file__).parents[1] / "docs" / "results").glob("*.json"))


@pytest.mark.parametrize("path", RECORDS, ids=lambda path: path.stem)
def test_the_tables_of_a_record_follow_from_its_figures(path: Path) -> None:
    """A doctored digit in either is found; and what was computed by row is not called significant."""
    record = json.loads(path.read_text(encoding="utf-8"))
    table = read_table(TABLES, record["table"])
    assert record["printed"] == printed_tables(record, table)
    figure = next(one for one in record["figures"] if one["values"])
    seed, value = next(iter(figure["values"].items()))
    figure["values"][seed] = value + 0.1
    assert record["printed"] != printed_tables(record, table)
    assert record["unit"] in (ROW, "message")
    if record["unit"] == ROW:
        shown = str(record["printed"])
        assert not re.search("[ᵃ-ᶻ]", shown), "letters of groups"
        assert "no difference here is called significant" in unit_note(ROW)
        assert "**holds**" not in shown
