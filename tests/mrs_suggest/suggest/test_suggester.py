"""Messages in, suggestions out: through a real small model saved to a folder."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.routes import encoders
from mrs_suggest.suggest.answering import Ranker, reply_texts
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester, Retriever
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases

REPLIES = {
    "en": ["Fine", "fine!", "Thanks", "thanks.", "a b", "c", "FINE", "how?"],
    "ja": ["はい", "はい。", "元気です"],
}

WRONG = [
    ((b"Hola", "en"), "messages: expected a list of texts, found one bytes; pass [message]."),
    ((["a", b"b"], "en"), "messages: expected texts, found bytes at index 1; pass str."),
    *cases(__file__, "WRONG"),
]


@pytest.fixture(scope="module")
def folder(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("retriever")
    model = build_dual_encoder(str(checkpoint), "mean")
    with torch.no_grad():
        for parameter in encoders(model)[0].parameters():  # messages and replies differ
            parameter.mul_(1.5)
    model.save_pretrained(str(target))
    for language, replies in REPLIES.items():
        index = ResponseIndex.build(lambda texts: encode_replies(model, texts), replies)
        index.save(target / ResponseIndexes.FOLDER / language)
    return target


@pytest.fixture(scope="module")
def suggester(folder: Path) -> Suggester:
    return Suggester.from_pretrained(folder)


@pytest.fixture(scope="module")
def model(folder: Path) -> SentenceTransformer:
    return load_dual_encoder(folder)


def test_three_different_suggestions_best_first(suggester: Suggester) -> None:
    answers = suggester.suggest(["how are you?", "d e f", "how are you?"], "en")
    assert len(answers) == 3
    assert [s.reply for s in answers[0]] == [s.reply for s in answers[2]]
    for answer in answers:
        assert len({normalise_reply(s.reply) for s in answer}) == 3
        assert [s.score for s in answer] == sorted((s.score for s in answer), reverse=True)


def test_answers_do_not_depend_on_the_batch(suggester: Suggester) -> None:
    messages = [" ".join("abcdefghij"[: 1 + n % 10]) + "?" * (n % 3) for n in range(70)]
    together = suggester.suggest(messages, "en", 1)
    alone = [suggester.suggest([message], "en", 1)[0] for message in messages]
    for one, other in zip(together, alone, strict=True):
        assert one[0].score == pytest.approx(other[0].score, rel=1e-4)
    odd = ["\0", "🧵🏽", "x" * 20_000, "\u202eمرحبا", "?!"]
    assert [len(answer) for answer in suggester.suggest(odd, "en")] == [3] * len(odd)


def test_a_blank_message_gets_no_reply_and_shifts_no_other(suggester: Suggester) -> None:
    assert suggester.suggest([""], "en") == [[]]
    first, second = suggester.suggest(["how are you?"], "en") + suggester.suggest(["d e f"], "en")
    answers = suggester.suggest(["", "how are you?", " \u3000\n", "d e f", ""], "en")
    assert [len(answer) for answer in answers] == [0, 3, 0, 3, 0]
    assert [[s.reply for s in answer] for answer in answers[1::2]] == [[s.reply for s in a] for a in (first, second)]
    expected = suggester.suggest(["a", "b c"], "en")
    for messages in (("a", "b c"), iter(["a", "b c"]), np.array(["a", "b c"]), {"a": 1, "b c": 2}.keys()):
        assert suggester.suggest(messages, "en", np.int64(3)) == expected


@pytest.mark.parametrize(("arguments", "sentence"), WRONG)
def test_what_cannot_be_answered_is_refused_in_a_sentence(
    suggester: Suggester, arguments: tuple[Any, ...], sentence: str
) -> None:
    with pytest.raises(ArgumentError) as caught:
        suggester.suggest(*arguments)
    assert str(caught.value) == sentence
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, InputError)


@pytest.fixture(scope="module")
def retriever(suggester: Suggester, model: SentenceTransformer) -> Retriever:
    assert isinstance(suggester.model, RetrievalSuggester)
    return Retriever(model, suggester.model.indexes)


def test_a_folder_without_a_model_or_response_set_is_refused(tmp_path: Path, checkpoint: Path) -> None:
    (tmp_path / "notes.json").write_text("{")  # not a model's, so it is not blamed
    for path in (tmp_path / "nothing", tmp_path, checkpoint):
        with pytest.raises(InputError, match=r"no trained model|no such folder"):
            Suggester.from_pretrained(path)
    build_dual_encoder(str(checkpoint), "mean").save_pretrained(str(tmp_path / "encoder"))
    with pytest.raises(InputError, match="no response_index/ folder"):
        Suggester.from_pretrained(tmp_path / "encoder")


def test_the_retriever_suggests_the_same_and_ranks_pools(
    suggester: Suggester, retriever: Retriever, model: SentenceTransformer
) -> None:
    messages, candidates = ["how are you?", "b"], ["Fine", "c", "a b", "zzz"]
    assert isinstance(retriever, Ranker)
    assert reply_texts(retriever.suggest(messages, "en", 3)) == reply_texts(suggester.suggest(messages, "en"))
    pools = torch.tensor([[0, 3, 2], [1, 0, 3]]).numpy()
    products = encode_messages(model, messages) @ encode_replies(model, candidates).T
    got = torch.from_numpy(retriever.score_pools(messages, candidates, pools))
    torch.testing.assert_close(got, products.gather(1, torch.from_numpy(pools)), rtol=1e-4, atol=1e-4)
    assert [len(answer) for answer in retriever.suggest(["", "a"], "en", 3)] == [3, 3]
