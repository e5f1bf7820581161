"""Several models behind one server, and what people did with their answers."""

import asyncio
import json
import re
import sqlite3
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.serving import clicks
from mrs_suggest.serving.clicks import ClickStore, read_answers
from mrs_suggest.serving.client import AsyncClient, ServerError
from mrs_suggest.serving.served import ServedModels, ServedSuggester
from mrs_suggest.serving.settings import Settings
from mrs_suggest.suggest.answering import Suggestion
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.reply_tags import ReplyTags, TagsByLanguage
from mrs_suggest.suggest.retrieval_suggester import RetrievalSuggester
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases
from tests.mrs_suggest.serving.test_app import Echo, application, asked

BOTH = Settings(("old=a", "new=b"), traffic=("old=90", "new=10"))


def told(ask: Callable[[AsyncClient], Awaitable[Any]], settings: Settings) -> Any:
    async def run() -> Any:
        async with (
            application(settings) as (_, _, transport),
            AsyncClient("http://server", tries=1, transport=transport) as client,
        ):
            return await ask(client)

    return asyncio.run(run())


def test_sessions_are_divided_among_models_and_stay_with_theirs() -> None:
    async def ask(client: AsyncClient) -> tuple[list[str], list[str], list[str]]:
        first = [(await client.suggest(["hi"], session=f"chat {n}"))[0].model for n in range(300)]
        again = [(await client.suggest(["hi"], session=f"chat {n}"))[0].model for n in range(300)]
        named = [(await client.suggest(["hi"], model="new", session="chat 0"))[0].model]
        return first, again, named

    first, again, named = told(ask, BOTH)
    assert first == again
    assert 12 <= Counter(first)["new"] <= 52  # 30 of 300; the draws are hashes, the same every time
    assert named == ["new"]
    assert set(told(ask, replace(BOTH, traffic=()))[0]) == {"old"}


def test_an_unknown_model_is_refused_and_all_are_listed() -> None:
    async def ask(client: AsyncClient) -> list[dict[str, Any]]:
        with pytest.raises(ServerError, match="pass one of old new"):
            await client.suggest(["hi"], model="next")
        return await client.models()

    assert [(one["name"], one["share"]) for one in told(ask, BOTH)] == [("old", 0.9), ("new", 0.1)]


@pytest.mark.parametrize(("change", "said"), cases(__file__, "test_settings_that_make_no_sense"))
def test_settings_that_make_no_sense(change: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        replace(BOTH, **change)


def test_a_shadow_is_asked_but_never_shown(tmp_path: Path) -> None:
    settings = replace(BOTH, traffic=("old=1", "new=shadow"), feedback=str(tmp_path / "clicks.sqlite"))

    class Other(Echo):
        def suggest(self, messages: Any, language: str, k: int = 3) -> list[list[Suggestion]]:
            if "break" in messages:
                raise RuntimeError("a bug of the new model")
            found = super().suggest(messages, language, k)
            return [[] if row[0].reply == "HO" else row for row in found]

    models = [ServedSuggester(Suggester(model), settings, name) for name, model in (("old", Echo()), ("new", Other()))]

    async def ask() -> tuple[list[str], str]:
        async with (
            application(settings, ServedModels(models, settings)) as (worker, _, transport),
            AsyncClient("http://server", tries=1, transport=transport) as client,
        ):
            shown = []
            for text in ("hi", "ho", "break", "again"):
                shown += await client.suggest([text], session=text)
                while worker.tasks:
                    await asyncio.sleep(0.01)
            named = await client.suggest(["hi"], model="new")  # whoever asks for it sees it
            page = worker.metrics.page().decode()
            return [one.model or "" for one in (*shown, *named)], page

    asked, page = asyncio.run(ask())
    assert asked == ["old"] * 4 + ["new"]
    counts = dict(re.findall(r'mrs_shadow_answers_total\{model="new",outcome="(\w+)",version=""\} (\d+)', page))
    assert counts == {"same": "2", "different": "1", "failed": "1"}
    assert {row[2] for row in read_answers(str(tmp_path / "clicks.sqlite"))} == {"old", "new"}
    assert len(read_answers(str(tmp_path / "clicks.sqlite"))) == 5, "what a shadow says is not kept"


def test_clicks_are_kept_without_texts(tmp_path: Path) -> None:
    path = tmp_path / "clicks.sqlite"

    async def ask(client: AsyncClient) -> None:
        first, second = await client.suggest(["meet me at noon", "secret garden"[7:]], session="anna@example.org")
        (empty,) = await client.suggest([" "])
        assert empty.id is None
        await client.feedback(first, 1, edited=True, typed=4)
        await client.feedback(second.id or "", None)
        await client.feedback(second, 1, shown=[1], text="a secret reply")  # counts more than what was told before
        for answer, chosen, said in ((second, 2, "had 1 suggestions"), ("0" * 32, 1, "no answer has this id")):
            with pytest.raises(ServerError, match=said):
                await client.feedback(answer, chosen)
        for shown, said in (([1, 2], "shown=2: the answer had 1"), ([1, 1], "given twice"), ([], "must be one of")):
            with pytest.raises(ServerError, match=said):
                await client.feedback(second, 1, shown=shown)
        with pytest.raises(ServerError, match="chosen: input should be greater than or equal to 1"):
            await client.feedback(first, 0)

    settings = replace(BOTH, feedback=str(path))
    told(ask, settings)
    told(lambda client: client.suggest(["again"]), settings)  # a server that starts anew goes on in the same file
    rows = read_answers(str(path))
    kept = [(row[2], row[6], row[7:10]) for row in rows[:2]]
    assert kept == [("old", "[15]", (1, 1, 4)), ("old", "[6]", (1, 0, None))]
    assert rows[0][1] == rows[1][1] != rows[2][1]
    assert rows[2][7:10] == (None, None, None)
    assert [row[11] for row in rows] == [None, "[1]", None]
    assert [json.loads(row[10]) for row in rows[:2]] == [[{"direct": 0.5}], [{"direct": 0.5}]]
    assert [row[2:] for row in all_reports(path)] == [(1, 1, 4, None), (None, 0, None, None), (1, 0, None, None)]
    stored = b"".join(one.read_bytes() for one in tmp_path.iterdir()).lower()
    assert not any(text in stored for text in (b"noon", b"garden", b"anna", b"reply"))


def all_reports(path: Path) -> list[tuple[Any, ...]]:
    """The rows of the feedback of an SQLite file in their order: none is ever changed."""
    with sqlite3.connect(path) as file:
        return file.execute("SELECT id, shown, chosen, edited, typed, text FROM feedback ORDER BY number").fetchall()


def test_texts_are_kept_only_if_the_operator_allows_it(tmp_path: Path) -> None:
    path = tmp_path / "clicks.sqlite"

    async def ask(client: AsyncClient) -> None:
        (answer,) = await client.suggest(["hi"])
        await client.feedback(answer, None, typed=7, text="see\0 you")
        with pytest.raises(ServerError, match="at most 10000"):
            await client.feedback(answer, None, text="x" * 10_001)

    told(ask, replace(BOTH, feedback=str(path), feedback_texts=True))
    assert [row[5] for row in all_reports(path)] == ["see you"]
    with pytest.raises(InputError, match="--feedback-texts: pass --feedback PLACE"):
        replace(BOTH, feedback_texts=True)


def test_tags_of_suggestions_are_kept_and_not_sent(tmp_path: Path) -> None:
    index = ResponseIndex.build(lambda texts: np.eye(3, dtype=np.float32), ["Yes", "No", "Why?"])
    (tmp_path / "index" / "en").mkdir(parents=True)
    ReplyTags.of([["agree"], ["refuse", "short"], []]).save(tmp_path / "index" / "en")
    tags = TagsByLanguage(tmp_path / "index", {"en": index})
    settings = replace(BOTH, feedback=str(tmp_path / "clicks.sqlite"))
    model = RetrievalSuggester(lambda texts: np.array([[3, 2, 1]] * len(texts), np.float32), {"en": index}, tags)
    models = [ServedSuggester(Suggester(model, guard=False), settings, name) for name in ("old", "new")]

    async def ask(http: httpx.AsyncClient) -> list[dict[str, Any]]:
        body = {"messages": ["hi"], "language": "en"}
        return [
            (await http.post("/v1/suggest", json=body | extra)).json()["answers"][0]
            for extra in ({}, {"explain": True})
        ]

    plain, explained = asked(ask, settings, ServedModels(models, settings))
    assert list(plain["suggestions"][0]) == ["reply", "score"]
    assert "tags" not in explained["suggestions"][0]
    kept = [json.loads(row[12]) for row in read_answers(settings.feedback or "")]
    assert kept == [[["agree"], ["refuse", "short"], []]] * 2


def test_without_the_option_nothing_is_kept() -> None:
    async def ask(client: AsyncClient) -> str | None:
        (answer,) = await client.suggest(["hi"])
        with pytest.raises(ServerError, match="not_found"):
            await client.feedback("0" * 32, 1)
        return answer.id

    assert told(ask, BOTH) is None


def test_a_full_disk_keeps_nobody_from_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(clicks, "_transaction", full)
    settings = replace(BOTH, feedback=str(tmp_path / "clicks.sqlite"))
    (answer,) = told(lambda client: client.suggest(["hi"]), settings)
    assert (answer.replies, answer.id) == (["HI"], None)


def test_another_file_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "notes.sqlite"
    with sqlite3.connect(path) as file:
        file.execute("CREATE TABLE notes (text)")
    before = path.read_bytes()
    (tmp_path / "text").write_text("no data base, " * 100)
    for open_it in (ClickStore, read_answers):
        with pytest.raises(InputError, match="not a file of `mrs serve --feedback`"):
            open_it(str(path))
        with pytest.raises(InputError, match="file is not a database"):
            open_it(str(tmp_path / "text"))
    assert path.read_bytes() == before
    with pytest.raises(InputError, match="no such file"):
        read_answers(str(tmp_path / "none"))
    with pytest.raises(InputError, match=r"none does not exist; make it"):
        ClickStore(str(tmp_path / "none" / "new"))
    ClickStore(str(tmp_path / "new")).close()
    with pytest.raises(InputError, match="no answers yet"):
        read_answers(str(tmp_path / "new"))
