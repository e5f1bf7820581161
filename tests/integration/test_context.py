"""A retriever trained on conversations: replies that only the turn before the message decides, told apart by it."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import response_table
from mrs_datasets.prepared.schema import MRS
from mrs_datasets.prepared.writer import write_prepared
from mrs_suggest.cli.main import main
from mrs_suggest.common.arguments import words_of
from mrs_suggest.suggest.suggester import Suggester
from tests.cases import cases

pytestmark = pytest.mark.integration

# turn before the message -> the reply; the messages are the same for all
REPLIES = {
    "I made soup for dinner": "With bread, please",
    "The train is late again": "Take the bus instead",
    "My dog ran into the woods": "Call his name loudly",
    "The exam was very hard": "You surely passed it",
}
MESSAGES = [f"{start} {what}?" for start in ("so", "well", "now", "hm", "ok then") for what in ("what now", "and me")]
OPTIONS: dict[str, Any] = {
    "max_steps": 80, "eval_steps": 40, "save_steps": 40, "per_device_train_batch_size": 8, "vocabulary": 200,
    "learning_rate": 3e-3, "use_cpu": True, "languages": ["en"],
}  # fmt: skip


def write_data(folder: Path, context: bool) -> Path:
    """Dialogues as a prepared folder, with or without the column."""
    rows = [
        {"message": message, "reply": reply, **({"context": f"hello there\n{turn}"} if context else {})}
        for message in MESSAGES
        for turn, reply in REPLIES.items()
    ]
    record = MRS.with_context(context)
    parts = {"train": rows[:24], "validation": rows[24:32], "test": rows[32:]}
    chunks = [("en", split, pa.Table.from_pylist(some, record.schema("en"))) for split, some in parts.items()]
    responses = response_table([(reply, 6) for reply in sorted(REPLIES.values())], 24, 4)
    report = Report("pairs", {"context": 2} if context else {}, partial=True)
    write_prepared(folder, [*chunks, ("en-responses", "train", responses)], report, record, "these dialogues")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_data(tmp_path_factory.mktemp("data") / "chats", True)


def train(data: Path, out: Path, **options: Any) -> int:
    return main(["train", "retrieval", *words_of({**OPTIONS, "data": data, "output_dir": out, **options})])


@pytest.fixture(scope="module")
def trained(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("run") / "model"
    assert train(data, out, context_turns=1, ranker=True) == 0
    return out


def best(suggester: Suggester, *turns: str) -> str:
    chat = [{"from": "me" if number % 2 else "them", "text": turn} for number, turn in enumerate(turns, len(turns) % 2)]
    chat[-1]["from"] = "them"
    if len(chat) > 1:
        chat[-2]["from"] = "me"
    return suggester.suggest(chat, "en", k=1).replies[0]


def test_the_turn_before_decides(trained: Path) -> None:
    suggester = Suggester.from_pretrained(trained, guard=False)
    for turn, reply in REPLIES.items():
        assert best(suggester, "hello there", turn, MESSAGES[-1]) == reply
        assert best(suggester, turn, MESSAGES[-1]) == reply
    assert json.loads((trained / "config.json").read_text())["context"] == {"turns": 1, "tokens": 70}


def test_a_suggester_asks_as_training_did(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A message without turns is asked as it is; with turns, the text is that of the test split's predictions."""
    suggester = Suggester.from_pretrained(trained, guard=False)
    asked: list[str] = []
    suggest = type(suggester.model).suggest
    monkeypatch.setattr(
        type(suggester.model), "suggest", lambda self, texts, *more: asked.extend(texts) or suggest(self, texts, *more)
    )
    best(suggester, MESSAGES[0])
    assert asked == [MESSAGES[0]]
    suggester.suggest(MESSAGES[0], "en")
    assert set(asked) == {MESSAGES[0]}
    asked.clear()
    best(suggester, "hello there", "My dog ran\ninto the woods", MESSAGES[-1])
    (text,) = set(asked)
    read = {line.split("\t")[0] for line in (trained / "predictions.en.tsv").read_text().splitlines()}
    assert text in read
    assert text.startswith("My dog ran into the woods")
    assert text.endswith(MESSAGES[-1])


def test_data_with_the_column_train_as_those_without_it(data: Path, tmp_path: Path) -> None:
    few = {"max_steps": 2, "eval_steps": 1, "save_steps": 1}
    assert train(data, tmp_path / "with", **few) == 0
    assert train(write_data(tmp_path / "chats", False), tmp_path / "without", **few) == 0
    records = [json.loads((tmp_path / name / "run.json").read_text()) for name in ("with", "without")]
    assert records[0]["metrics"] == records[1]["metrics"]
    assert json.loads((tmp_path / "with" / "config.json").read_text()) == {"model_type": "mrs-retriever"}


@pytest.mark.parametrize(("options", "sentence"), cases(__file__, "test_refusals_are_one_sentence"))
def test_refusals_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: dict[str, Any], sentence: str
) -> None:
    assert train(write_data(tmp_path / "chats", False), tmp_path / "out", **options) == 2
    assert sentence in capsys.readouterr().err.splitlines()[-1]
    assert not (tmp_path / "out" / "run.json").exists()
