"""The table of remedies against forgetting: sound cells, each with its line and its lead over plain training."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrs_datasets.synthetic.grammar.surface import RULES
from mrs_suggest.reproduce.table import Table, read_table
from mrs_suggest.training.generation.options import RemedyArguments

TABLES = Path(__file__).resolve().parents[3] / "trainers" / "configs" / "reproduce"
PLAIN = "zero-shot"


@pytest.fixture(scope="module")
def table() -> Table:
    return read_table(TABLES, "forgetting")


def test_a_remedy_differs_from_plain_training_in_itself_alone(table: Table) -> None:
    plain = table.cells[PLAIN].options
    grid = table.tables["forgetting"]
    others = ["freeze_embeddings", "peft", "train", "learning_rate", "max_steps", "eval_steps", "save_steps"]
    known = {*RemedyArguments.__annotations__, *others}
    remedies = {row: grid.place(row, "en").cell for row, over in grid.leads if over == PLAIN}
    assert len(remedies) >= 9
    for row, name in remedies.items():
        cell = table.cells[name]
        assert {key: cell.options[key] for key in plain} == plain, row
        own = set(cell.options) - set(plain)
        assert own, row
        assert own <= known, row
        assert cell.config == table.cells[PLAIN].config
    flags = {key for name in remedies.values() for key in table.cells[name].options}
    assert {"freeze_decoder_layers", "freeze_embeddings", "denoising_share", "interpolate_start", "peft"} < flags
    assert "force_language_token" in {key for cell in table.cells.values() for key in cell.options}


def test_no_cell_but_those_with_pairs_trains_on_pairs_of_other_languages(table: Table) -> None:
    for name, cell in table.cells.items():
        sources = set(cell.options.get("train", []))
        if sources & set(RULES):
            assert name in ("multilingual", "unseen")
    assert table.cells["multilingual"].options["validation"] == ["en", *RULES]
