"""Phrase books and the embedded sample that is built from them."""

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from mrs_datasets.prepared.card import dataset_card
from mrs_datasets.prepared.prepare import prepare_mrs
from mrs_datasets.prepared.schema import MRS, PAIR_SCHEMA, RESPONSE_SCHEMA
from mrs_datasets.readers.sample import SAMPLE
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.common.text.text import normalise_reply


@pytest.mark.parametrize("code", LANGUAGES)
def test_every_message_of_the_sample_has_two_to_four_replies_on_one_side(code: str) -> None:
    replies: dict[str, list[str]] = defaultdict(list)
    sides: dict[str, set[str]] = defaultdict(set)
    for path in (SAMPLE / "data" / code).glob("*.parquet"):
        for row in pq.read_table(path, schema=PAIR_SCHEMA).to_pylist():
            replies[row["message"]].append(row["reply"])
            sides[normalise_reply(row["message"])].add(path.name.split("-")[0])
    wrong = [message for message, found in replies.items() if not 2 <= len(set(found)) == len(found) <= 4]
    assert wrong == []
    assert [message for message, found in sides.items() if len(found) > 1] == []
    assert all(text == text.strip() and text and not set(text) & set("\t\n\r") for p in replies.items() for text in
               (p[0], *p[1]))  # fmt: skip


def without_files(report: dict[str, Any]) -> dict[str, Any]:
    """A report less what depends on the version of the project or of the Parquet writer."""
    configs = {
        config: {split: {"rows": facts["rows"], "bytes": facts["bytes"]} for split, facts in splits.items()}
        for config, splits in report["configs"].items()
    }
    return {**report, "version": None, "configs": configs}


def test_the_phrase_books_give_the_sample_that_ships(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    report = prepare_mrs("sample", tmp_path / "sample")
    stale = [
        f"{config}/{split}"
        for config, splits in report["configs"].items()
        for split in splits
        if not pq.read_table(tmp_path / "sample" / "data" / config).equals(pq.read_table(SAMPLE / "data" / config))
    ]
    assert sorted(set(stale)) == [], "run `make sample`"
    assert without_files(report) == without_files(json.loads((SAMPLE / "report.json").read_text(encoding="utf-8")))


def test_the_sample_that_ships_agrees_with_its_report_and_card() -> None:
    report = json.loads((SAMPLE / "report.json").read_text(encoding="utf-8"))
    assert (SAMPLE / "README.md").read_text(encoding="utf-8") == dataset_card(MRS, report), "run `make sample`"
    listed = {
        file["path"]: file["bytes"] for c in report["configs"].values() for s in c.values() for file in s["files"]
    }
    found = {p.relative_to(SAMPLE).as_posix(): p.stat().st_size for p in SAMPLE.rglob("*.parquet")}
    assert listed == found
    for config, splits in report["configs"].items():
        schema = RESPONSE_SCHEMA if config.endswith("-responses") else PAIR_SCHEMA
        for split, facts in splits.items():
            tables = [pq.read_table(SAMPLE / file["path"]) for file in facts["files"]]
            assert sum(table.num_rows for table in tables) == facts["rows"], f"{config}/{split}"
            assert all(table.schema.equals(schema) for table in tables)
