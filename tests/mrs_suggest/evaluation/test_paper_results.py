"""The paper's figures as they were typed: cells looked up in the PDF's tables, and the shape of the file."""

from __future__ import annotations

import doctest

import pytest

from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.evaluation import paper_results
from mrs_suggest.evaluation.paper_results import PaperRow, paper_row, paper_rows
from mrs_suggest.training.reply.options import SETTINGS

TABLES = {("retrieval", "mbert"): 3, ("generation", "xdae"): 4, ("retrieval", "xlmr"): 5}


def test_examples_in_the_docstrings() -> None:
    found = doctest.testmod(paper_results)
    assert found.attempted
    assert not found.failed


@pytest.mark.parametrize(
    "row",
    [
        PaperRow(3, "retrieval", "mbert", "monolingual", "en", 0.0331, 0.0194, 0.0480),
        PaperRow(3, "retrieval", "mbert", "zero_shot", "ja", 0.0213, 0.0236, 0.0250),
        PaperRow(3, "retrieval", "mbert", "mt", "sv", 0.0176, 0.0302, 0.0677),
        PaperRow(3, "retrieval", "mbert", "multilingual", "ru", 0.0246, 0.0405, 0.0761),
        PaperRow(4, "generation", "xdae", "monolingual", "pt", 0.0566, 0.0209, 0.194),
        PaperRow(4, "generation", "xdae", "mt", "ja", 0.0042, 0.2812, 0.216),
        PaperRow(4, "generation", "xdae", "multilingual", "it", 0.0295, 0.0312, 0.222),
        PaperRow(5, "retrieval", "xlmr", "monolingual", "pt", 0.0345, 0.0088, 0.0239),
        PaperRow(5, "retrieval", "xlmr", "zero_shot", "nl", 0.0161, 0.0134, 0.0371),
        PaperRow(5, "retrieval", "xlmr", "mt", "it", 0.0155, 0.0156, 0.0375),
        PaperRow(5, "retrieval", "xlmr", "multilingual", "fr", 0.0161, 0.0069, 0.0185),
    ],
    ids=lambda row: f"table {row.table}, {row.setting}, {row.language}",
)
def test_cells_looked_up_by_hand(row: PaperRow) -> None:
    assert paper_row(row.family, row.model, row.setting, row.language) == row


@pytest.mark.parametrize(("family", "model"), TABLES)
def test_every_table_has_its_ten_languages(family: str, model: str) -> None:
    for setting in SETTINGS:
        rows = paper_rows(family, model, setting)
        expected = set(LANGUAGES) - ({"en"} if setting == "mt" else set())  # the tables have a dash there
        if (family, setting) == ("generation", "zero_shot"):
            expected = set()
        assert {row.language for row in rows} == expected
        assert len(rows) == len(expected)
        assert {row.table for row in rows} <= {TABLES[family, model]}
    assert len(paper_rows(family, model)) == (29 if family == "generation" else 39)


def test_figures_are_shares_and_zero_shot_english_is_monolingual_english() -> None:
    for row in paper_rows():
        assert 0 < row.rouge < 0.1
        assert 0 < row.dist1 < 0.3
        assert 0 < row.dist2 < 0.4
    for model in ("mbert", "xlmr"):  # one and the same model
        mono, zero = (paper_row("retrieval", model, setting, "en") for setting in ("monolingual", "zero_shot"))
        assert mono is not None
        assert zero is not None
        assert (mono.rouge, mono.dist1, mono.dist2) == (zero.rouge, zero.dist1, zero.dist2)


def test_what_the_paper_does_not_print_is_none() -> None:
    assert paper_row("retrieval", "mbert", "mt", "en") is None
    assert paper_row("generation", "xdae", "zero_shot", "es") is None
    assert paper_row("generation", "mbert", "monolingual", "es") is None
    assert paper_row("retrieval", "mbert", "monolingual", "ko") is None
