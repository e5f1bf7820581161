"""XCOPA's views: what is hidden stays hidden, pairs keep their order, translations stand beside their own original."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_datasets.readers.xcopa import XCOPA
from mrs_datasets.tasks.xcopa_views import join_translations, sentence_pairs
from mrs_suggest.common.errors import InputError
from tests.cases import cases

RED_EYES = cases(__file__, "RED_EYES")
TAP = cases(__file__, "TAP")


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.Table.from_pylist(list(rows), XCOPA.schema("et"))


def real(folder: Path, name: str) -> pa.Table:
    lines = (folder / "xcopa" / name).read_text(encoding="utf-8").splitlines()
    return table(*(json.loads(line) for line in lines))


def test_a_pair_is_written_as_in_the_paper() -> None:
    pairs = sentence_pairs(table(RED_EYES))
    text = "My eyes became red and puffy. What was the cause?"
    assert pairs.to_pylist() == [
        {"idx": 7, "choice": 0, "text": text, "text_pair": "I was sobbing.", "plausible": 1},
        {"idx": 7, "choice": 1, "text": text, "text_pair": "I was laughing.", "plausible": 0},
    ]
    numbers = {"idx", "choice", "plausible"}
    assert all(field.type == (pa.int64() if field.name in numbers else pa.string()) for field in pairs.schema)


text = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
example = st.fixed_dictionaries(
    {
        **dict.fromkeys(("premise", "choice1", "choice2"), text),
        "question": st.sampled_from(["cause", "effect"]),
        "question_corrected": st.sampled_from(["cause", "effect"]),
        "label": st.integers(0, 1),
        "idx": st.integers(0, 2**62),
        "changed": st.booleans(),
    }
)


@given(st.lists(example, max_size=6), st.integers(1, 3))
def test_pairs_keep_examples_texts_and_answers(rows: list[dict[str, Any]], size: int) -> None:
    whole = table(*rows)
    chunked = pa.concat_tables([whole.slice(0, 0), *(whole.slice(i, size) for i in range(0, len(rows), size))])
    prompts = {"cause": "What was the cause?", "effect": "What happened as a result?"}
    for column in ("question", "question_corrected"):
        assert sentence_pairs(chunked, column).to_pylist() == [
            {
                "idx": row["idx"],
                "choice": choice,
                "text": f"{row['premise']} {prompts[row[column]]}",
                "text_pair": row[f"choice{choice + 1}"],
                "plausible": int(row["label"] == choice),
            }
            for row in rows
            for choice in (0, 1)
        ]


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        (table({**TAP, "question": "why"}), r"the question of idx 3 is 'why'; expected cause or effect\."),
        (table(RED_EYES, {**TAP, "label": -1}), r"the label of idx 3 is -1; expected 0 or 1\."),
        (table({**TAP, "premise": None}, RED_EYES), r"premise has 1 gaps; expected a value in every row\."),
        (table(TAP).drop_columns(["choice2"]), r"no column choice2; expected "),
        (table(TAP).drop_columns(["premise", "question"]), r"neither premise nor question"),
    ],
)
def test_pairs_refuse_what_has_no_answer_or_no_prompt(rows: pa.Table, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        sentence_pairs(rows)


def test_translations_are_joined_by_number_and_not_by_place() -> None:
    rows = [RED_EYES, TAP, {**TAP, "idx": 5, "premise": "It rained."}]
    english = {row["idx"]: {name: f"en {row[name]}" for name in ("premise", "choice1", "choice2")} for row in rows}
    joined = join_translations(table(*rows), table(*({**row, **english[row["idx"]]} for row in (*rows[1:], rows[0]))))
    assert sentence_pairs(joined.drop_columns(["premise"]))["text"][0].as_py() == "What was the cause?"
    assert joined.to_pylist() == [
        {**row, **{f"{name}_translated": value for name, value in english[row["idx"]].items()}} for row in rows
    ]


@pytest.mark.parametrize(
    ("original", "translated", "sentence"),
    [
        ([TAP, RED_EYES], [TAP], r"^translations: idx 7 is missing; "),
        ([TAP], [TAP, *({**TAP, "idx": i} for i in (9, 8, 5, 4))], r"^original: idx 4, 5, 8 and 1 more is missing; "),
        ([TAP], [{**TAP, "label": 0}], r"^translations: the label of idx 3 is not the original's; "),
        ([RED_EYES, TAP], [TAP, {**RED_EYES, "question": "effect"}], r"the question of idx 7 is not the original's"),
        ([TAP, TAP], [TAP], r"^original: idx 3 occurs more than once"),
        ([TAP], [TAP, TAP], r"^translations: idx 3 occurs more than once"),
    ],
)
def test_translations_of_other_examples_are_refused(original: Any, translated: Any, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        join_translations(table(*original), table(*translated))


def test_real_translations_join_and_another_language_does_not(shared_data: Path) -> None:
    original, translated = real(shared_data, "data/it/test.it.jsonl"), real(shared_data, "data-gmt/it/test.it.jsonl")
    joined = join_translations(original, translated)
    assert joined.select(original.column_names).equals(original)
    assert joined["choice2_translated"].equals(translated["choice2"])
    thai, italian = "th/val.th.jsonl", "it/val.it.jsonl"  # the questions in `th` are all `effect`, many of them wrongly
    with pytest.raises(InputError, match=r"the question of idx 4, 6, 7 and 44 more is not the original's"):
        join_translations(real(shared_data, f"data/{italian}"), real(shared_data, f"data-gmt/{thai}"))
