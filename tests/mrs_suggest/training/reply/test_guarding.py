"""The guard's figures: the sheet that they come from, and the card that shows them."""

from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.guard.guard import Guard
from mrs_suggest.suggest.guard.lists import GuardData
from mrs_suggest.training.reply.card_sections import guard_paragraph
from mrs_suggest.training.reply.guarding import (
    GuardFigures,
    SheetRow,
    fit_guard,
    measure,
    read_sheet,
    situation_messages,
)
from tests.cases import cases


class Silent(ServedModel):
    """A model without an encoder, such as a generator, so that the lists decide alone."""

    @property
    def languages(self) -> list[str]:
        return ["sv"]

    def suggest(self, messages: object, language: str, k: int = 3) -> list[list[Suggestion]]:
        raise AssertionError("figures of the guard need no answers")


def test_figures_count_what_is_vetoed_and_what_is_a_false_alarm() -> None:
    sheet = [SheetRow(*row) for row in cases(__file__, "SHEET")]
    found = measure(Guard(GuardData(), Silent(), None), sheet, "held_out", ["sv", "pl"])
    assert list(found) == ["sv"]
    figures = found["sv"]
    assert (figures.sensitive, figures.vetoed, figures.named) == (3, 2, 1)
    assert (figures.lookalikes, figures.lookalike_alarms) == (2, 1)
    assert (figures.everyday, figures.alarms) == (26, 0), "of the test split, without the annotated one"
    assert (figures.situations, figures.situation_alarms) == (len(situation_messages("sv", ["test", "unseen"])), 0)
    (figures,) = measure(Guard(GuardData(), Silent(), None), sheet[:-1], "held_out", ["sv"]).values()
    assert (figures.everyday, figures.alarms) == (27, 1)
    with pytest.raises(InputError, match="no build rows in a language"):
        measure(Guard(GuardData(), Silent(), None), sheet, "build", ["pl"])


@pytest.mark.parametrize(("text", "problem"), cases(__file__, "test_a_damaged_sheet_is_refused"))
def test_a_damaged_sheet_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "sheet.tsv"
    path.write_text(text)
    with pytest.raises(InputError, match="sheet.tsv") as error:
        read_sheet(path)
    assert problem in str(error.value)


def test_the_card_shows_them_and_says_that_other_figures_are_without() -> None:
    assert "has not been measured" in guard_paragraph({})
    languages = {
        "en": asdict(GuardFigures(28, 21, 14, 12, 3, 1000, 5, 600, 3)),
        "sv": asdict(GuardFigures(28, 28, 28, 12, 0, 0, 0, 400, 1)),
    }
    text = guard_paragraph({"guard": {"half": "held_out", "languages": languages}})
    assert "measured without the guard" in text
    assert "at real chat the model is silent more often" in text
    assert "| en | 28 | 0.750 | 0.500 | 3 of 12 (25.0%) | 5 of 1,000 (0.5%) | 3 of 600 (0.5%) |" in text
    assert "| all | 56 | 0.875 | 0.750 |" in text
    earlier = {key: value for key, value in languages["en"].items() if not key.startswith("situation")}
    assert "3 of 12 (25.0%) | 5 of 1,000 (0.5%) |  |" in guard_paragraph(
        {"guard": {"half": "held_out", "languages": {"en": earlier}}}
    ), "a record of an earlier version"


def test_the_model_learns_and_is_calibrated_on_mrs_everyday() -> None:
    seen = list[str]()

    def encode(texts: list[str]) -> np.ndarray:
        seen.extend(texts)
        return np.zeros((len(texts), 2), np.float32)

    space = fit_guard.__wrapped__(encode, GuardData(), ["sv"])
    read = {split: set(situation_messages("sv", [split])) for split in ("train", "validation", "test", "unseen")}
    counts = {split: len(texts & set(seen)) for split, texts in read.items()}
    assert counts["test"] == counts["unseen"] == 0
    assert 0.3 * len(read["train"]) < counts["train"] < 0.4 * len(read["train"])
    assert counts["validation"] > 0.95 * len(read["validation"])
    assert space.self_harm <= space.threshold
