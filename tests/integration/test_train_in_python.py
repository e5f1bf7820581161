"""`RetrievalTrainer` and its like: from rows in memory to a suggester, as the command line trains."""

import json
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset, DatasetDict, load_dataset

from mrs_suggest import CausalTrainer, GenerationTrainer, RetrievalTrainer, TrainingArguments
from mrs_suggest.cli.main import main
from mrs_suggest.common.arguments import words_of
from mrs_suggest.common.errors import InputError

pytestmark = pytest.mark.integration

PLACES = ("dinner", "party", "meeting", "lunch", "game", "concert", "show", "wedding", "course", "walk")
DAYS = ("today", "tomorrow", "on Friday")
REPLIES = ("Yes, see you there.", "Sorry, I can't.", "What time does it start?")


def chats(**more: str) -> Dataset:
    rows = [
        {"question": f"Are you coming to the {place} {day}?", "answer": reply, **more}
        for place in PLACES
        for day in DAYS
        for reply in REPLIES
    ]
    return Dataset.from_list(rows)


NAMES = {"question": "message", "answer": "reply"}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> RetrievalTrainer:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path_factory.mktemp("home")))
        trainer = RetrievalTrainer(
            "tiny",
            args=TrainingArguments(output_dir=str(tmp_path_factory.mktemp("run") / "model"), max_steps=2, eval_steps=1,
                                   save_steps=1, per_device_train_batch_size=8, settings={"vocabulary": 150}),
            train_dataset=chats(),
            column_mapping=NAMES,
        )  # fmt: skip
        trainer.train()
    return trainer


def without_times(record: Any) -> Any:
    """A record without what differs from run to run."""
    skipped = ("seconds", "milliseconds", "output_dir", "logging_dir", "files", "command", "run_name", "memory")
    if isinstance(record, dict):
        return {key: without_times(value) for key, value in record.items() if not key.startswith(skipped)}
    return record


def test_the_command_line_gives_the_same_run(trained: RetrievalTrainer, tmp_path: Path) -> None:
    options = {"data": trained.data, "max_steps": 2, "eval_steps": 1, "save_steps": 1, "vocabulary": 150,
               "per_device_train_batch_size": 8, "output_dir": tmp_path / "again"}  # fmt: skip
    assert main(["train", "retrieval", *words_of(options)]) == 0
    again = json.loads((tmp_path / "again" / "run.json").read_text(encoding="utf-8"))
    assert trained.record is not None
    assert without_times(again["metrics"]) == without_times(trained.record["metrics"])
    assert again["data"] == trained.record["data"]
    hashes = [{name: entry["sha256"] for name, entry in one["files"].items()} for one in (again, trained.record)]
    assert hashes[0] == hashes[1]


def test_a_trained_model_answers_and_is_evaluated(trained: RetrievalTrainer) -> None:
    answer = trained.suggester().suggest("Are you coming to the concert tomorrow?")
    assert sorted(answer.replies) == sorted(REPLIES)
    figures = trained.evaluate()
    assert figures["en"]["n"] == figures["pooled"]["n"] > 0


def test_own_splits_and_languages_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    rows = chats(language="en").rename_columns(NAMES)
    german = Dataset.from_dict(
        {"message": [f"Kommst du {day}?" for day in DAYS], "reply": ["Ja, gern!"] * 3, "language": ["de"] * 3}
    )
    splits = DatasetDict(train=Dataset.from_list([*rows.to_list(), *german.to_list()]), test=rows.select(range(4)))
    trainer = RetrievalTrainer("tiny", train_dataset=splits)
    report = json.loads((Path(trainer.data) / "report.json").read_text(encoding="utf-8"))
    counts = {config: {split: facts["rows"] for split, facts in of.items()} for config, of in report["configs"].items()}
    assert counts["en"]["test"] == 4
    assert counts["en"]["train"] + counts["en"]["validation"] == len(rows)
    assert sum(counts["de"].values()) == 3
    assert RetrievalTrainer("tiny", train_dataset=splits).data == trainer.data


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"args": {"epochs": 3}}, "'epochs'"),
        ({"args": {"max_steps": "few"}}, "max_steps"),
        ({"args": {"data": "sample"}}, "data: pass it to the trainer instead"),
        ({"args": TrainingArguments(seed=1, settings={"seed": 2})}, "'seed' is given twice"),
        ({"train_dataset": chats()}, "expected the column 'message'"),
        ({"train_dataset": chats(), "column_mapping": {"prompt": "message"}}, "has no column 'prompt'"),
        ({"train_dataset": chats(), "column_mapping": {"question": "text"}}, "expected message, reply, language"),
        ({"train_dataset": chats(), "column_mapping": NAMES, "language": "xx-no"}, "xx-no"),
        ({"train_dataset": chats(language="klingon!"), "column_mapping": NAMES}, "klingon!"),
        ({"train_dataset": Dataset.from_dict({"message": ["1 2 3"], "reply": ["4"]})}, "language is not clear"),
        ({"train_dataset": "no", "language": "en"}, "train_dataset='no': prepared data bring their splits"),
        (
            {"train_dataset": [{"message": "hi", "reply": "hello"}]},
            "train: expected a Dataset, found list; see ",
        ),
        ({"train_dataset": "no/such--folder"}, "no/such--folder"),
        ({"model": "tinny"}, "model tinny: no such folder"),
        ({"args": {"output_dir": "build/x", "languages": ["xx"]}}, "languages: unknown language 'xx'"),
    ],
)
def test_a_wrong_argument_is_named(
    arguments: dict[str, Any], told: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    with pytest.raises(InputError) as error:
        RetrievalTrainer(**{"args": {"output_dir": str(tmp_path / "run")}, **arguments}).train()
    assert told in str(error.value)
    assert not str(error.value).startswith("--")
    assert not (tmp_path / "run").exists()
    assert not list(tmp_path.glob("mrs-suggest/pairs/*"))


@pytest.mark.parametrize(("kind", "name"), [(GenerationTrainer, "generation"), (CausalTrainer, "causal")])
def test_other_families_are_trained_alike(
    kind: type[GenerationTrainer | CausalTrainer], name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("huggingface_hub.constants.HF_HOME", str(tmp_path))
    args = {"output_dir": str(tmp_path / "run"), "max_steps": 1, "eval_steps": 1, "save_steps": 1, "vocabulary": 150}
    trainer = kind("tiny", args, train_dataset=chats(), column_mapping=NAMES, language="en")
    assert trainer.train()["trainer"] == name
    assert trainer.suggester().languages == ["en"]


def test_other_rows_are_evaluated_as_the_test_split(trained: RetrievalTrainer) -> None:
    test = load_dataset(trained.data, "en", split="test")
    ours, own = trained.evaluate(test)["en"], trained.evaluate()["en"]
    assert {name: value for name, value in ours.items() if name != "signature"} == {
        name: own[name] for name in ("n", "weighted", "weighted_interval", "ceiling", "dist1", "dist2")
    }
    with pytest.raises(InputError, match="expected the column 'reply'"):
        trained.evaluate(test.remove_columns("reply"))
    with pytest.raises(InputError, match="the model answers en"):
        trained.evaluate(test.add_column("language", ["de"] * len(test)))
