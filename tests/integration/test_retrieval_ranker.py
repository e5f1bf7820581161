"""Runs of the retrieval trainer with a ranker, and what is made of them."""

import json
import re
from collections.abc import Callable

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import read_predictions
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases
from tests.command import Result, shown
from tests.integration.conftest import Train

pytestmark = pytest.mark.integration

BOTH = ("--languages", "en", "ja", "--ranker", "true", "--max_test_examples", 40)


def test_a_run_with_a_ranker_serves_and_explains_what_it_was_scored_by(
    train: Train, mrs_here: Callable[..., Result]
) -> None:
    folder = train("ranked", *BOTH)
    suggester = Suggester.from_pretrained(folder, guard=False)  # with an encoder of two steps, it takes any message
    assert isinstance(suggester.model, RetrievalSuggester)
    assert suggester.model.rankers
    for language in ("en", "ja"):
        rows = read_predictions(folder / f"predictions.{language}.tsv")
        served = suggester.suggest([row.message for row in rows], language)
        assert [tuple(s.reply for s in three) for three in served] == [row.suggestions for row in rows]
    record = json.loads((folder / "run.json").read_text())
    assert set(record["metrics"]["ranker"]["weights"]) == {"en", "ja"}
    assert list(record["metrics"]["systems"])[:3] == ["Model", "Model, top 3", "Model, direct scores"]
    assert {"ranker/ranker.json", "ranker/en.safetensors", "ranker/ja.safetensors"} <= set(record["files"])

    ask, parts = ["suggest", "--model", folder, "--language", "en", "--explain"], record["metrics"]["ranker"]["names"]
    (told,) = re.findall("^  1. en reply .*", shown(mrs_here(*ask, "en message 3")), re.MULTILINE)
    assert any(f"; {name} " in told.partition("(score ")[2] for name in parts)
    assert set(json.loads(shown(mrs_here(*ask, "--json", "en message 3")))["suggestions"][0]["parts"]) == set(parts)

    (folder / "ranker" / "ranker.json").write_text("{}")
    with pytest.raises(InputError, match=r"ranker\.json"):
        Suggester.from_pretrained(folder)


def test_a_model_is_ranked_without_training_and_a_run_starts_from_it(train: Train) -> None:
    first = train("first")
    again = train(
        "again", "--model_name_or_path", first, "--max_steps", 0, *BOTH, "--choice", "top", "--ranker_parts", "nearest"
    )
    record = json.loads((again / "run.json").read_text())
    assert record["metrics"]["ranker"]["names"] == ["nearest"]
    assert not list(again.glob("checkpoint-*"))
    name = "query_0_Transformer/model.safetensors"
    assert (first / name).read_bytes() == (again / name).read_bytes()  # nothing was trained


def test_given_weights_are_those_of_all_languages(train: Train) -> None:
    folder = train("given", "--max_steps", 0, *BOTH, "--ranker_parts", "votes=3", "direct=1")
    ranker = json.loads((folder / "run.json").read_text())["metrics"]["ranker"]
    assert ranker["weights"] == {code: {"direct": 0.25, "votes": 0.75} for code in ("en", "ja")}
    assert "the weights were given" in (folder / "README.md").read_text()


def test_zero_shot_languages_have_no_memory_and_are_answered_by_direct_scores(train: Train) -> None:
    folder = train("zero", *BOTH, "--train", "en", "--validation", "en")
    assert [path.name for path in sorted((folder / "ranker").glob("*.safetensors"))] == ["en.safetensors"]
    suggester = Suggester.from_pretrained(folder)
    assert suggester.suggest(["ja message 3"], "ja")[0][0].parts == {}
    assert suggester.suggest(["en message 3"], "en")[0][0].parts


@pytest.mark.parametrize(("options", "sentence"), cases(__file__, "test_options_that_do_not_fit_are_refused"))
def test_options_that_do_not_fit_are_refused(refused: Callable[..., str], options: list[str], sentence: str) -> None:
    assert sentence in refused(*options)
