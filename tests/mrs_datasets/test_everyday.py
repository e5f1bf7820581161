"""The everyday exchanges: the texts that ship are whole, held-out situations are held out, broken files are refused."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mrs_datasets.everyday.situations import EMBEDDED, EVERYDAY, TEXTS, UNSEEN, read_plan, read_situations
from mrs_datasets.prepared.prepare import prepare
from mrs_suggest.common.text.text import normalise_reply

SHIPPED = sorted(path.stem for path in TEXTS.glob("*.txt"))
PLAN = "id\ttopic\tregister\tmessages\treplies\nhello\topeners\tinformal\tgreets\tgreet 1, ask 1\n"
BOOK = "## hello\n> hi\n> hey you\n< [greet] Hey!\n< [ask] What's up?\n"


@pytest.mark.parametrize("language", SHIPPED)
def test_every_situation_has_its_messages_and_replies(language: str) -> None:
    situations = read_situations(TEXTS / f"{language}.txt")
    assert [one.name for one in situations] == list(read_plan(TEXTS / "situations.tsv"))
    assert {len(one.messages) for one in situations} == {9}
    assert {len(one.replies) for one in situations} == {8}
    longest = 28 if language == "ja" else 62
    assert [text for one in situations for _, text in one.replies if len(text) > longest] == []


def test_splits_share_no_message_and_unseen_no_situation(tmp_path: Path) -> None:
    prepare(EVERYDAY, [EMBEDDED], tmp_path / "data")
    for language in SHIPPED:
        files = (tmp_path / "data/data" / language).iterdir()
        tables = {path.name.split("-")[0]: pq.read_table(path) for path in files}
        forms = [{normalise_reply(message) for message in table["message"].to_pylist()} for table in tables.values()]
        assert sum(map(len, forms)) == len(set().union(*forms))
        situations = {name: set(table["situation"].to_pylist()) for name, table in tables.items()}
        assert not situations[UNSEEN] & (situations["train"] | situations["validation"] | situations["test"])
        assert 10 < len(situations[UNSEEN]) < 30
        assert len(situations["train"]) > 320
        assert 10 < len(situations["validation"] - situations["train"] - situations["test"]) < 30
        assert sum(table.num_rows for table in tables.values()) >= 25_000


@pytest.mark.parametrize(
    ("plan", "book", "told"),
    [
        (PLAN, BOOK.replace("## hello", "## hallo"), "line 1: expected a situation"),
        (PLAN, BOOK + BOOK, "line 6: expected a situation"),
        (PLAN, "> hi\n" + BOOK, "line 1: expected `## situation`"),
        (PLAN, BOOK + "Bye\n", "line 6: expected"),
        (PLAN, BOOK.replace("[greet] ", ""), "line 4: expected"),
        (PLAN, BOOK + "> hi\n", "line 6: the message 'hi' is in line 2 already"),
        (PLAN, BOOK + "< [ask] You?\n", "hello needs different replies by stance: greet 1, ask 1"),
        (PLAN.replace("topic\t", ""), BOOK, "situations.tsv, line 1: expected the columns"),
        (PLAN + PLAN.splitlines()[1], BOOK, "situations.tsv, line 3: expected a new id"),
        (PLAN.replace("ask 1", "ask"), BOOK, "situations.tsv, line 2"),
    ],
)
def test_a_broken_line_is_named(plan: str, book: str, told: str, tmp_path: Path, write_tree, refused) -> None:
    source = write_tree(tmp_path / "source", {"situations.tsv": plan, "en.txt": book})
    assert told in refused(".", prepare, EVERYDAY, [str(source)])


def test_a_folder_of_ones_own_is_read(tmp_path: Path, write_tree) -> None:
    write_tree(tmp_path, {"situations.tsv": PLAN, "en.txt": BOOK})
    report = prepare(EVERYDAY, [str(tmp_path)], tmp_path / "data")
    assert sum(facts["rows"] for facts in report["configs"]["en"].values()) == 4
