"""Which examples a run takes, whether the checkpoint's choice is zero-shot, and what is refused."""

import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from mrs_metrics.xglue_tasks import TASKS
from mrs_suggest.common.errors import InputError
from mrs_suggest.training.understanding.data import Part, UnderstandingData, load_understanding_data
from mrs_suggest.training.understanding.options import UnderstandingArguments
from mrs_suggest.training.understanding.tasks import UNDERSTANDING_TASKS
from tests.cases import cases

ANSWERS = pa.list_(pa.struct([("text", pa.string()), ("start", pa.int64())]))


def load(folder: Path, seed: int = 1, **options: Any) -> UnderstandingData:
    return load_understanding_data(UnderstandingArguments(data=str(folder), **options), seed)


def replaced(folder: Path, tmp_path: Path, config: str, split: str, table: pa.Table) -> Path:
    """A copy of the folder with another table in one place."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    for path in (copy / "data" / config).glob(f"{split}-*.parquet"):
        pq.write_table(table, path)
    return copy


def table_of(folder: Path, config: str, split: str) -> pa.Table:
    return pq.read_table(next((folder / "data" / config).glob(f"{split}-*.parquet")))


@pytest.mark.parametrize("task", UNDERSTANDING_TASKS)
def test_each_task_trains_on_english_and_is_tested_in_all_languages(tasks_folder: Path, task: str) -> None:
    data = load(tasks_folder, task=task.lower(), max_train_examples=20, max_test_examples=20)
    assert list(data.train[task]) == list(data.validation[task]) == ["en"]
    assert set(data.test[task]) == {code for code in TASKS[task].languages if code in ("en", "de", "es", "fr")}
    assert data.zero_shot[task] == [code for code in data.test[task] if code != "en"]
    assert list(data.texts())
    facts = data.facts()
    assert facts["data"]["rows"][f"{task.lower()}-en"]["train"] == len(data.train[task]["en"]) <= 20
    assert facts["data"]["content_hash"]


def test_validation_on_all_languages_is_not_zero_shot(tasks_folder: Path) -> None:
    data = load(tasks_folder, task="xnli", validation="all", max_validation_examples=5, languages=["en", "de"])
    assert list(data.validation["XNLI"]) == ["de", "en"]
    assert data.zero_shot == {"XNLI": []}
    assert data.facts()["plan"]["validation_by"] == "all"
    data = load(tasks_folder, mode="multitask", tasks=["xnli", "PAWS-X", "ner", "xnli"], languages=["es", "fr"])
    assert {task: list(of) for task, of in data.test.items()} == {
        "XNLI": ["es", "fr"],
        "PAWSX": ["es", "fr"],
        "NER": ["es"],
    }
    assert all(list(of) == ["en"] for of in data.train.values())


def test_own_training_data_stand_beside_those_of_the_folder(tasks_folder: Path, tmp_path: Path) -> None:
    german = table_of(tasks_folder, "pawsx-de", "validation")
    pq.write_table(german, tmp_path / "de.parquet")
    lines = "".join('{"sentence1": "a", "sentence2": "b", "label": "1"}\n' for _ in range(3))
    (tmp_path / "es.jsonl").write_text(lines, encoding="utf-8")
    own = [f"de={tmp_path / 'de.parquet'}", f"es={tmp_path / 'es.jsonl'}"]
    data = load(tasks_folder, task="pawsx", mode="multilanguage", train=own)
    assert {code: len(part) for code, part in data.train["PAWSX"].items()} == {"en": 600, "de": len(german), "es": 3}
    assert data.zero_shot == {"PAWSX": ["fr"]}
    pivot = load(tasks_folder, task="pawsx", pivot="de", train=own[:1])
    assert list(pivot.train["PAWSX"]) == list(pivot.validation["PAWSX"]) == ["de"]
    assert "en" in pivot.zero_shot["PAWSX"]
    folder = load(tasks_folder, task="pawsx", train=[f"en={tasks_folder}"])
    assert folder.train["PAWSX"]["en"].columns == load(tasks_folder, task="pawsx").train["PAWSX"]["en"].columns
    assert folder.origin["train"]["en"]["content_hash"]


def test_a_sample_of_pages_has_whole_queries(tasks_folder: Path) -> None:
    data = load(tasks_folder, task="wpr", max_test_examples=17, languages=["en"])
    queries = data.test["WPR"]["en"].columns["query"]
    whole = table_of(tasks_folder, "wpr-en", "test")["query"].to_pylist()
    assert 5 <= len(queries) <= 17
    assert all(queries.count(query) == whole.count(query) for query in queries)


def test_hidden_answers_of_a_test_split_are_left_out(tasks_folder: Path, tmp_path: Path) -> None:
    table = table_of(tasks_folder, "xnli-de", "test")
    labels = pa.array([None] * len(table), pa.string())
    hidden = table.set_column(table.schema.get_field_index("label"), "label", labels)
    folder = replaced(tasks_folder, tmp_path, "xnli-de", "test", hidden)
    part: Part = load(folder, task="xnli", languages=["de"]).test["XNLI"]["de"]
    assert part.gold is None
    assert len(part) == len(table)


def words(tags: list[Any], texts: list[Any] | None = None) -> pa.Table:
    kinds = {"words": pa.list_(pa.string()), "tags": pa.list_(pa.string())}
    columns = {"words": texts or [["a", "b"]], "tags": tags}
    return pa.table({name: pa.array(values, kinds[name]) for name, values in columns.items()})


def question(text: str, start: int) -> pa.Table:
    answers = pa.array([[{"text": text, "start": start}]], ANSWERS)
    return pa.table({"id": ["1"], "context": ["Ann is in Rome."], "question": ["Where?"], "answers": answers})


def pair(label: str | None) -> pa.Table:
    return pa.table({"premise": ["a"], "hypothesis": ["b"], "label": pa.array([label], pa.string())})


@pytest.mark.parametrize(
    ("task", "table", "told"),
    [
        ("ner", words([["O"]]), r"ner-en/train, row 1: expected a tag for each of 2 words, found \['O'\]"),
        ("ner", words([["O", "B-CAR"]]), r"row 1 must be labelled with one of B-LOC, .* not 'B-CAR'"),
        ("ner", words([[]], [[]]), r"row 1: expected one word or more, found \[\]"),
        ("ner", words([None]), "row 1: has no tags; only a whole test split may hide them"),
        ("xnli", pair("maybe"), "xnli-en/train, row 1 must be labelled with one of neutral, .* not 'maybe'"),
        ("xnli", pair(None), "xnli-en/train, row 1: has no label; only a whole test split may hide them"),
        ("xnli", pair("neutral").slice(0, 0), "xnli-en/train: is empty"),
        ("xnli", question("Rome", 10), "has no column 'premise', only id, context, question, answers"),
        ("mlqa", question("Rome", 9), "row 1: the context has no 'Rome' at character 9; prepare the data again"),
        ("mlqa", question("Rome", 10).set_column(3, "answers", pa.array([[]], ANSWERS)), "expected answers with text"),
        ("mlqa", question("Rome", -5), "row 1: the context has no 'Rome' at character -5"),
    ],
)
def test_a_damaged_example_is_refused(
    tasks_folder: Path, tmp_path: Path, task: str, table: pa.Table, told: str
) -> None:
    folder = replaced(tasks_folder, tmp_path, f"{task}-en", "train", table)
    with pytest.raises((InputError, ValueError), match=told) as caught:
        load(folder, task=task)
    assert isinstance(caught.value, InputError)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("options", "told"), cases(__file__, "test_a_wrong_choice_gets_one_sentence"))
def test_a_wrong_choice_gets_one_sentence(tasks_folder: Path, options: dict[str, Any], told: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tasks_folder, **options)
    assert str(caught.value).startswith(told)


def test_other_data_are_refused(tasks_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "plain" / "data" / "en").mkdir(parents=True)
    with pytest.raises(InputError, match=r"^plain: has no test split of XNLI in any language; pass the folder"):
        load(tmp_path / "plain", task="xnli")
    (tmp_path / "x.parquet").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"x\.parquet: cannot be read as Parquet"):
        load(tasks_folder, task="xnli", train=[f"en={tmp_path / 'x.parquet'}"])
    (tmp_path / "x.csv").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"x\.csv: expected a file \*\.parquet or \*\.jsonl"):
        load(tasks_folder, task="xnli", train=[f"en={tmp_path / 'x.csv'}"])
