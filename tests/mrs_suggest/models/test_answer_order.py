"""The order of suggestions is that of their scores, or the answer names it."""

import pytest

from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.suggest.answer_json import answer_json
from mrs_suggest.suggest.answering import Answer, Suggestion
from mrs_suggest.suggest.suggester import Suggester


def test_every_answer_of_the_sample_has_descending_scores_or_names_its_order() -> None:
    messages = list(dict.fromkeys(open_prepared("sample").load("en", "test")["message"]))
    suggester = Suggester.from_pretrained("everyday-retriever")
    orders = set()
    for message, answer in zip(messages, suggester.suggest(messages, "en"), strict=True):
        shown = answer_json(message, "en", "everyday-retriever", answer)
        scores = [suggestion["score"] for suggestion in shown["suggestions"]]
        assert [suggestion["reply"] for suggestion in shown["suggestions"]] == [found.reply for found in answer]
        assert (scores == sorted(scores, reverse=True)) == ("order" not in shown)
        orders.add(shown.get("order"))
    assert orders == {None, "choice"}


@pytest.mark.parametrize(
    ("scores", "order"), [([0.3, 0.2], None), ([0.2, 0.3], "choice"), ([0.2, 0.2], None), ([], None)]
)
def test_the_order_of_an_answer(scores: list[float], order: str | None) -> None:
    answer = Answer(Suggestion(str(score), score) for score in scores)
    assert answer_json("?", "en", "model", answer).get("order") == order
