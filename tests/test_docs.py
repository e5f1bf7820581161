"""What the documentation shows is what the project makes."""

import json
import re
from pathlib import Path

import pytest


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


def test_tables_of_results_are_those_of_their_files(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(repository / "docs" / "site")
    from quotes import quoted

    for page in (repository / "README.md", *(repository / "docs").glob("*.md")):
        text = page.read_text(encoding="utf-8")
        assert quoted(text, repository, page.name) == text, "run make results"
