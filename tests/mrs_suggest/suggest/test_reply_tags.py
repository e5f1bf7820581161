"""Tags of replies, and requests that allow or deny some."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.models.starting_points import TAGS
from mrs_suggest.suggest.answering import ServedModel, Suggestion
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker, RankerSettings
from mrs_suggest.suggest.ranking.memory import MessageMemory
from mrs_suggest.suggest.ranking.mixture import Mixture
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams
from mrs_suggest.suggest.reply_tags import ReplyTags, TagsByLanguage
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases

REPLIES = ["Yes, gladly!", "Yes, with pleasure.", "No, sorry.", "Buy now!", "Maybe later."]
OWN = [["casual"], ["formal"], ["casual", "formal"], ["sales"], []]


def vectors(texts: list[str]) -> np.ndarray:
    """A direction for each first letter, and a length that makes earlier replies better."""
    found = np.zeros((len(texts), 30), np.float32)
    for row, text in enumerate(texts):
        found[row, (ord(text[0].lower()) - ord("a")) % 30] = 1
        found[row, 29] = 0.1 / (1 + REPLIES.index(text)) if text in REPLIES else 1
    return found


@pytest.fixture
def suggester(tmp_path: Path) -> Suggester:
    """English replies with tags, Spanish ones without."""
    index = ResponseIndex.build(vectors, REPLIES, log_probs=[-1.0, -2.0, -3.0, -4.0, -5.0])
    indexes = {"en": index, "es": ResponseIndex.build(vectors, ["Sí.", "No."])}
    for language, own in indexes.items():
        own.save(tmp_path / ResponseIndexes.FOLDER / language)
    ReplyTags.of(OWN).save(tmp_path / ResponseIndexes.FOLDER / "en")
    tags = TagsByLanguage(tmp_path / ResponseIndexes.FOLDER, indexes)
    return Suggester(RetrievalSuggester(vectors, indexes, tags))


def asked(suggester: Suggester, language: str = "en", k: int = 9, **tags: list[str]) -> list[str]:
    return [suggestion.reply for suggestion in suggester.suggest(["yes?"], language, k, **tags)[0]]


def test_a_request_gets_only_what_it_allows(suggester: Suggester) -> None:
    assert suggester.tags == {"en": ["casual", "formal", "sales"]}
    assert sorted(asked(suggester)) == sorted(REPLIES)
    assert asked(suggester, allow=["formal"]) == ["Yes, with pleasure.", "No, sorry."]
    assert asked(suggester, allow=["formal", "sales"]) == ["Yes, with pleasure.", "No, sorry.", "Buy now!"]
    assert asked(suggester, deny=["sales", "formal"]) == ["Yes, gladly!", "Maybe later."]
    assert asked(suggester, allow=["casual"], deny=["formal"]) == ["Yes, gladly!"]
    assert asked(suggester, allow=["sales"], deny=["sales"]) == []
    assert asked(suggester, k=1, allow=["formal"]) == ["Yes, with pleasure."]
    assert asked(suggester, "es", allow=["formal"]) == []
    assert sorted(asked(suggester, "es", deny=["formal"])) == ["No.", "Sí."]


def test_unknown_tags_are_refused_by_name(suggester: Suggester) -> None:
    with pytest.raises(ArgumentError, match=r"deny='fromal': no reply has this tag; the tags are casual formal sales"):
        asked(suggester, deny=["fromal"])
    with pytest.raises(ArgumentError, match=r"allow='formal': expected a list of tags"):
        suggester.suggest(["yes?"], "en", 3, "formal")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="does the model answer|the model answers"):
        asked(suggester, "fr", allow=["formal"])


def test_a_model_that_writes_its_replies_has_no_tags() -> None:
    class Writes(ServedModel):
        languages = ["en"]  # type: ignore[assignment]  # noqa: RUF012

        def suggest(self, messages: object, language: str, k: int = 3) -> list[list[Suggestion]]:
            return [[]]

    assert Suggester(Writes()).tags == {}
    with pytest.raises(ArgumentError, match="writes its replies, which have no tags"):
        Suggester(Writes()).suggest(["a"], "en", 3, deny=["formal"])


def test_a_ranker_ranks_the_allowed_replies_by_its_memory(suggester: Suggester) -> None:
    model = suggester.model
    assert isinstance(model, RetrievalSuggester)
    index = model.indexes["en"]
    messages = ["yes?", "coming?", "will you buy?"]
    memory = MessageMemory.build(messages, vectors(messages), [2, 2, 3])
    ngrams = ReplyNgrams.build(index.replies, get_tokenizer("en"))
    ranker = LanguageRanker.build(index, memory, ngrams, RankerSettings(choice="top"))
    ranker = replace(ranker, mixture=Mixture({"votes": 0.7, "direct": 0.3}))
    ranked = Suggester(RetrievalSuggester(vectors, model.indexes, model.tags, {"en": ranker}))
    assert asked(ranked)[0] == "No, sorry."  # it got this message
    for allow, deny in (([], ["sales"]), (["formal", "sales"], []), (["casual"], [])):
        found = ranked.suggest(["yes?"], "en", 9, allow, deny)[0]
        rows = ReplyTags.of(OWN).chosen(allow, deny)
        assert sorted(s.reply for s in found) == sorted(REPLIES[row] for row in rows)
        assert found[0].reply == "No, sorry."
        assert found[0].parts["votes"] > 0
    part = ngrams.part(np.array([4, 0]))
    assert np.allclose(part.similarities([0, 1]), ngrams.similarities([4, 0]))


def test_a_part_of_an_index_keeps_clusters_and_log_probabilities() -> None:
    index = ResponseIndex.build(vectors, REPLIES, ["a", "a", "b", "c", "b"], [-1.0, -2.0, -3.0, -4.0, -5.0], 0.5)
    part = index.part(np.array([0, 1, 4]))
    assert part.replies == [REPLIES[0], REPLIES[1], REPLIES[4]]
    assert part.clusters.tolist() == [0, 0, 1]
    assert part.log_probs.tolist() == [-1, -2, -5]
    assert np.array_equal(part.vectors, index.vectors[[0, 1, 4]])
    assert part.alpha == 0.5


def test_tags_come_back_as_they_were_saved(tmp_path: Path) -> None:
    ReplyTags.of(OWN).save(tmp_path)
    loaded = ReplyTags.load(tmp_path, 5)
    assert loaded.by_reply() == [sorted(tags) for tags in OWN]
    ReplyTags.of([[], []]).save(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert ReplyTags.load(tmp_path / "none", 2).rows == {}


@pytest.mark.parametrize(("text", "sentence"), cases(__file__, "test_damaged_tags_are_told"))
def test_damaged_tags_are_told(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / TAGS).write_text(text)
    with pytest.raises(InputError, match=sentence):
        ReplyTags.load(tmp_path, 5)
