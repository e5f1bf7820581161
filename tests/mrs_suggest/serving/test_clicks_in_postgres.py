"""Clicks in PostgreSQL, with a real server."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("psycopg")

from mrs_suggest.common.errors import InputError
from mrs_suggest.serving.clicks import SCHEMA, ClickStore, read_answers
from mrs_suggest.serving.client import AsyncClient, ServerError
from tests.command import refused, shown
from tests.conftest import Mrs
from tests.mrs_suggest.serving.test_clicks import BOTH, told
from tests.postgres import Postgres, has_postgres, postgres

pytestmark = pytest.mark.skipif(not has_postgres(), reason="no PostgreSQL on this machine")


@pytest.fixture(scope="module")
def database() -> Iterator[Postgres]:
    with postgres() as server:
        yield server


def test_answers_and_clicks(database: Postgres, tmp_path: Path, mrs: Mrs) -> None:
    none = mrs("feedback", "report", database.url, cwd=tmp_path)
    assert "no answers yet" in refused((none.returncode, none.stdout, none.stderr))

    async def ask(client: AsyncClient) -> None:
        first, second = await client.suggest(["meet me at noon", "garden"], session="anna@example.org")
        await client.feedback(first, 1, edited=True, typed=4)
        await client.feedback(second.id or "", None)
        await client.feedback(second, 1, shown=[1], text="see\0 you")
        with pytest.raises(ServerError, match="no answer has this id"):
            await client.feedback("0" * 32, 1)

    settings = replace(BOTH, feedback=database.url, feedback_texts=True)
    told(ask, settings)
    told(lambda client: client.suggest(["again"]), settings)  # a second server, with the same tables
    rows = read_answers(database.url)
    assert [(row[2], row[6], row[7:10]) for row in rows[:2]] == [
        ("old", "[15]", (1, 1, 4)),
        ("old", "[6]", (1, 0, None)),
    ]
    assert rows[2][7:10] == (None, None, None)
    assert [json.loads(row[10]) for row in rows[:2]] == [[{"direct": 0.5}], [{"direct": 0.5}]]
    assert [row[11] for row in rows] == [None, "[1]", None]
    import psycopg

    with psycopg.connect(database.url) as connection:
        found = connection.execute(f"SELECT chosen, typed, text FROM {SCHEMA}.feedback ORDER BY number").fetchall()
    assert found == [(1, 4, None), (None, None, None), (1, None, "see you")], "no report replaces another"
    assert not any(text in str(rows) for text in ("noon", "anna"))
    done = mrs("feedback", "report", database.url, "--json", cwd=tmp_path)
    found: list[dict[str, Any]] = json.loads(shown((done.returncode, done.stdout, done.stderr)))
    assert sum(one["answers"] for one in found if one["language"] == "all") == 3


def test_a_database_that_is_down_keeps_nobody_from_an_answer(database: Postgres) -> None:
    async def ask(client: AsyncClient) -> list[str | None]:
        (before,) = await client.suggest(["hi"])
        database.stop()
        ids = [before.id, (await client.suggest(["hi"]))[0].id]
        with pytest.raises(ServerError, match="could not be kept"):
            await client.feedback(before, 1)
        database.start()
        return [*ids, (await client.suggest(["hi"]))[0].id]

    before, meanwhile, after = told(ask, replace(BOTH, feedback=database.url))
    assert before
    assert meanwhile is None
    assert after
    assert {before, after} <= {row[0] for row in read_answers(database.url)}


def test_a_database_that_is_not_there_is_one_sentence() -> None:
    url = "postgresql://someone:hidden@127.0.0.1:9/clicks"
    for open_it in (ClickStore, read_answers):
        with pytest.raises(InputError, match=r"postgresql://127\.0\.0\.1:9/clicks: .*PGPASSWORD") as refusal:
            open_it(url)
        assert "hidden" not in str(refusal.value)
        assert "\n" not in str(refusal.value)
