"""English COPA in another order is put into XCOPA's; a copy in order stays, another data set is refused."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.readers.copa_order import joined_by_text, labels_differ
from mrs_suggest.common.errors import InputError

Row = dict[str, Any]


def row(idx: int, premise: str, choice1: str, choice2: str, label: int = 0) -> Row:
    return {"premise": premise, "choice1": choice1, "choice2": choice2, "question": "cause", "label": label, "idx": idx}


ENGLISH = [
    row(0, "The man turned on the faucet.", "The toilet filled with water.", "Water flowed from the spout.", 1),
    row(1, "The girl found a bug in her cereal.", "She poured milk in the bowl.", "She lost her appetite.", 1),
    row(2, "The woman retired.", "She received her pension.", "She paid off her mortgage."),
    row(3, "My eyes became red and puffy.", "I was sobbing.", "I was laughing."),
]
ITALIAN = [
    row(0, "The man turned on the tap.", "The toilet filled with water.", "Water flowed from the spout."),
    row(1, "The girl found an insect in the cereals.", "He poured the milk into the bowl.", "He lost his appetite."),
    row(2, "The woman retired.", "He received his pension.", "He paid off his mortgage."),
    row(3, "My eyes turned red and swollen.", "I was sobbing.", "I was laughing."),
]
FRENCH = [
    row(0, "A man opened the tap.", "The toilet is full of water.", "Water comes from the spout."),
    row(2, "The woman goes into retirement.", "She gets a pension.", "She paid her mortgage off."),
]
OTHERS = [
    row(0, "The truck crashed into the motorcycle.", "The motorcyclist died.", "The truck driver was bored."),
    row(1, "The homeowners disliked their nosy neighbours.", "They built a fence.", "They hired a gardener."),
    row(2, "The pond froze over for the winter.", "People skated on it.", "People brought boats to it."),
]


def renumbered(rows: list[Row]) -> list[Row]:
    return [{**row, "idx": number} for number, row in enumerate(rows)]


def test_a_copy_in_order_is_handed_back_as_it_came() -> None:
    joined = joined_by_text(ENGLISH, [ITALIAN, FRENCH])
    assert joined.rows is ENGLISH
    assert joined.moved == 0
    backwards = ENGLISH[::-1]  # in another order, but with the right numbers
    assert joined_by_text(backwards, [ITALIAN]).rows is backwards


@pytest.mark.parametrize("translations", [[ITALIAN], [ITALIAN, FRENCH], [FRENCH[::-1], ITALIAN[::-1]]])
def test_another_order_is_undone(translations: list[list[Row]]) -> None:
    given = renumbered([ENGLISH[2], ENGLISH[1], ENGLISH[3], ENGLISH[0]])
    before = json.dumps(given)
    joined = joined_by_text(given, translations)
    assert joined.rows == ENGLISH
    assert (joined.moved, joined.in_doubt) == (3, [])  # the second of them is where it was
    assert json.dumps(given) == before, "the rows that came are left alone"


@pytest.mark.parametrize("rows", [OTHERS, [*OTHERS[:2], *ENGLISH[2:]], [{**OTHERS[0], "idx": 3}]])
def test_another_data_set_is_refused(rows: list[Row]) -> None:
    with pytest.raises(InputError, match=r"^val\.jsonl: \d of \d rows \(idx \d.*have no clear match") as caught:
        joined_by_text(rows, [ITALIAN, FRENCH], "val.jsonl")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("translations", "examples"), [([], 0), ([[]], 0), ([FRENCH], 2)])
def test_more_rows_than_translations_are_refused(translations: list[list[Row]], examples: int) -> None:
    with pytest.raises(InputError, match=rf"English COPA: 4 rows cannot be found among {examples} translated examples"):
        joined_by_text(ENGLISH, translations)


def test_examples_with_the_same_texts_raise_no_doubt_and_stay() -> None:
    twins = [row(0, "It rained.", "A.", "B."), row(1, "It rained.", "A.", "B."), row(2, "It rained.", "A.", "B.")]
    assert joined_by_text(twins, [twins]) == (twins, 0, [])


def test_a_row_that_no_translation_kept_is_named() -> None:
    lost = {**ITALIAN[3], "premise": "Red meat", "choice1": "Chef roast it", "choice2": "Oil"}
    for languages in (1, 20):  # a hint of similarity does not add up
        joined = joined_by_text(renumbered(ENGLISH[::-1]), [[*ITALIAN[:3], lost]] * languages)
        assert joined.rows == ENGLISH
        assert joined.in_doubt == [3]


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def copa(shared_data: Path) -> list[Row]:
    return read(shared_data / "copa" / "val.jsonl")


@pytest.fixture(scope="module")
def translations(shared_data: Path) -> dict[str, list[Row]]:
    files = sorted((shared_data / "xcopa" / "data-gmt").glob("*/val.*.jsonl"))
    assert len(files) == 10
    return {path.parent.name: read(path) for path in files}


def test_real_copa_is_in_order_and_its_other_split_is_refused(
    copa: list[Row], translations: dict[str, list[Row]], shared_data: Path
) -> None:
    joined = joined_by_text(copa, list(translations.values()))
    assert joined.rows is copa
    assert (joined.moved, joined.in_doubt) == (0, [])
    assert labels_differ(copa, read(shared_data / "xcopa" / "data" / "qu" / "val.qu.jsonl")) == 0
    train = read(shared_data / "copa" / "train.jsonl")
    with pytest.raises(InputError, match="have no clear match"):
        joined_by_text(train[:100], [translations["th"]])
    with pytest.raises(InputError, match="368 rows cannot be found among 100"):
        joined_by_text(train, list(translations.values()))


def test_a_real_shuffle_is_undone_by_all_languages_and_by_any(
    copa: list[Row], translations: dict[str, list[Row]]
) -> None:
    order = random.Random(3).sample(range(100), 100)
    shuffled = renumbered([copa[number] for number in order])
    moved = sum(old != new for new, old in enumerate(order))
    for languages in (list(translations), ["th"], ["it"]):
        joined = joined_by_text(shuffled, [translations[code] for code in languages])
        assert joined.rows == copa, languages
        assert joined.moved == moved
    assert labels_differ(shuffled, copa) > 20
