"""The rule by which a generated text becomes replies."""

from __future__ import annotations

import pytest

from mrs_suggest.common.text.answers import read_answer, read_samples


@pytest.mark.parametrize(
    ("text", "replies"),
    [
        ("", []),
        (" \n\t\n ", []),
        (" Yes.\nNo.\nMaybe.\nNever.", ["Yes.", "No.", "Maybe."]),
        ("Yes.\r\n\r\n  No,\tthanks. ", ["Yes.", "No, thanks."]),  # fewer than three stay fewer
        ("Yes.\nYES.\nNo.", ["Yes.", "No."]),  # the same but for case
        ("Sure, here are three:\n\n1. Yes.\n\n2. No.\n\n3. Maybe.\n\nHave fun!", ["Yes.", "No.", "Maybe."]),
        ("1) Yes.\n2) No.", ["Yes.", "No."]),
        ("１．はい。\n２．いいえ。", ["はい。", "いいえ。"]),
        ("- Yes.\n• No.\n* Maybe.", ["Yes.", "No.", "Maybe."]),
        ("3. Juli passt mir.\nNein.", ["3. Juli passt mir.", "Nein."]),  # a date is no number of a list
        ("1. Mai passt mir.\nNein.", ["1. Mai passt mir.", "Nein."]),  # nor is one line a list
        ("1.\n2. No.\n3. Maybe.", ["1.", "2. No.", "3. Maybe."]),  # an item without text is none
        ("“Yes.”\n'No.'\n「はい」\n", ["Yes.", "No.", "はい"]),
        ('"Yes" or "no"', ['"Yes" or "no"']),
        ('""\n"', ['"']),
    ],
)
def test_three_replies_from_one_text(text: str, replies: list[str]) -> None:
    assert read_answer(text, 3) == replies


def test_all_lines_count_where_no_number_is_given() -> None:
    assert read_answer("\n".join(f"line {n}" for n in range(50))) == [f"line {n}" for n in range(50)]


def test_one_reply_from_each_sample() -> None:
    assert read_samples([" Yes.\nand more", "\n", "yes.", "No.", "Maybe.", "Never."], 3) == ["Yes.", "No.", "Maybe."]
