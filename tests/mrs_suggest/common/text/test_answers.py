"""The rule by which a generated text becomes replies."""

import pytest

from mrs_suggest.common.text.answers import read_answer, read_samples
from tests.cases import cases


@pytest.mark.parametrize(("text", "replies"), cases(__file__, "test_three_replies_from_one_text"))
def test_three_replies_from_one_text(text: str, replies: list[str]) -> None:
    assert read_answer(text, 3) == replies


def test_all_lines_count_without_a_number_and_one_reply_from_each_sample() -> None:
    assert read_answer("\n".join(f"line {n}" for n in range(50))) == [f"line {n}" for n in range(50)]
    assert read_samples([" Yes.\nand more", "\n", "yes.", "No.", "Maybe.", "Never."], 3) == ["Yes.", "No.", "Maybe."]
