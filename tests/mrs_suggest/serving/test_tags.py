"""Requests that allow or deny replies by their tags."""

import asyncio
import json
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.serving import AsyncClient, Client
from mrs_suggest.serving.served import Question, ServedModels, ServedSuggester
from mrs_suggest.serving.settings import Settings
from mrs_suggest.suggest.conversation import read_conversations
from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes
from mrs_suggest.suggest.reply_tags import ReplyTags, TagsByLanguage
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.suggester import Suggester
from tests.mrs_suggest.serving.test_app import application

REPLIES = ["Sure!", "With pleasure.", "Buy now!"]
SETTINGS = Settings(("some-model",))


def vectors(texts: list[str]) -> np.ndarray:
    return np.array([[1.0, 1 / (1 + REPLIES.index(text)) if text in REPLIES else 1.0] for text in texts], np.float32)


@pytest.fixture
def served(tmp_path: Path) -> ServedSuggester:
    index = ResponseIndex.build(vectors, REPLIES)
    index.save(tmp_path / ResponseIndexes.FOLDER / "en")
    ReplyTags.of([["casual"], ["formal"], ["sales"]]).save(tmp_path / ResponseIndexes.FOLDER / "en")
    tags = TagsByLanguage(tmp_path / ResponseIndexes.FOLDER, {"en": index})
    return ServedSuggester(Suggester(RetrievalSuggester(vectors, {"en": index}, tags), guard=False), SETTINGS)


def test_requests_of_one_batch_get_what_each_allows(served: ServedSuggester) -> None:
    questions = [
        Question(*read_conversations(["Tea?"]), "en", 3, False, *tags)
        for tags in [((), ()), (("formal",), ()), ((), ("sales",)), (("spam",), ()), (("formal",), ())]
    ]
    answers = served.answer(questions)
    found = [[row["reply"] for row in answer["suggestions"]] for answer in answers]
    assert found == [REPLIES, ["With pleasure."], REPLIES[:2], [], ["With pleasure."]]
    assert [answer.get("error", {}).get("code") for answer in answers] == [None, None, None, "invalid_argument", None]
    assert "the tags are casual formal sales" in answers[3]["error"]["message"]


def test_tags_by_http(served: ServedSuggester) -> None:
    async def ask() -> tuple[list[str], list[str], int, dict[str, list[str]]]:
        async with (
            application(SETTINGS, ServedModels([served], SETTINGS)) as (_, http, transport),
            AsyncClient("http://server", transport=transport) as client,
        ):
            (allowed,) = await client.suggest(["Tea?"], "en", allow=["casual", "sales"], deny=["sales"])
            (denied,) = await client.suggest(["Tea?"], "en", deny=["casual"])
            (model,) = await client.models()
            body = json.dumps({"messages": ["Tea?"], "allow": ["x"] * 33})
            refused = await http.post("/v1/suggest", content=body)
        return allowed.replies, denied.replies, refused.status_code, model["tags"]

    assert asyncio.run(ask()) == (["Sure!"], REPLIES[1:], 422, {"en": ["casual", "formal", "sales"]})
    with Client("http://127.0.0.1:9") as client, pytest.raises(TypeError, match=r"allow: .* pass \[text\]"):
        client.suggest(["Tea?"], "en", allow="casual")
