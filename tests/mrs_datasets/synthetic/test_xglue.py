"""The miniatures of XGLUE's tasks: known rules, the same rows in every language, learnable from words in English."""

from collections import Counter, defaultdict
from functools import cache
from typing import Any

import pytest

from mrs_datasets.check.check import check
from mrs_datasets.prepared.prepare import prepare
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.synthetic.xglue import PAGES, RECORD, SIZES, draw_task

Row = dict[str, Any]


@cache
def drawn(task: str) -> dict[str, dict[str, list[Row]]]:
    return draw_task(task, 7)


@pytest.mark.parametrize("task", RECORD.kinds)
def test_rows_are_as_many_as_stated_different_and_parallel(task: str) -> None:
    kind = RECORD.kinds[task]
    answer = kind.hidden[0]
    seen: dict[str, set[str]] = defaultdict(set)
    for split, by_language in drawn(task).items():
        assert tuple(by_language) == kind.languages
        for language, rows in by_language.items():
            assert len(rows) == SIZES[split]
            for row in rows:
                text = repr({name: held for name, held in row.items() if name not in (answer, "id")})
                assert text not in seen[language], (language, split)
                seen[language].add(text)
            if answer == "label":
                assert [row["label"] for row in rows] == [row["label"] for row in by_language["en"]]
            if answer == "label" and task != "wpr":
                counts = Counter(row["label"] for row in rows)
                assert max(counts.values()) - min(counts.values()) <= 1, "labels are balanced"
            if task == "wpr":
                pages = [{row["query"] for row in rows[start : start + PAGES]} for start in range(0, len(rows), PAGES)]
                assert all(len(queries) == 1 for queries in pages), "a query has its pages together"


def test_answers_and_tags_fit_their_texts() -> None:
    for split in drawn("mlqa").values():
        for rows in split.values():
            for row in rows:
                ((text, start),) = [(one["text"], one["start"]) for one in row["answers"]]
                assert row["context"][start : start + len(text)] == text
                assert row["context"].count(text) == 1
    for task in ("ner", "pos"):
        for rows in drawn(task)["test"].values():
            assert all(len(row["words"]) == len(row["tags"]) for row in rows)
    for rows in drawn("ner")["test"].values():
        for row in rows:
            previous = "O"
            for tag in row["tags"]:
                assert not tag.startswith("I-") or previous[2:] == tag[2:]
                previous = tag


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> PreparedData:
    out = tmp_path_factory.mktemp("synthetic") / "out"
    prepare("synthetic-xglue", ["synthetic:7"], out)
    return open_prepared(str(out))


def test_it_is_prepared_checked_and_loaded_like_xglue(folder: PreparedData) -> None:
    assert list(check(folder)) == []
    assert draw_task("qam", 8) != drawn("qam") == draw_task("qam", 7)
    assert folder.report()["settings"] == {"seed": 7}
    assert folder.splits("ner-en") == ["train", "validation", "test"]
    assert folder.splits("ner-de") == ["validation", "test"]
    assert folder.load("wpr-fr", "test").to_list() == drawn("wpr")["test"]["fr"]
    assert set(folder.configs()) == {config for config, _, _ in RECORD.configs()}
