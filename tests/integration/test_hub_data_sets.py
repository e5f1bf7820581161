"""XCOPA and STAPLE through the loopback hub: published by the command, loaded by `datasets` in a fresh process."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.hub.server import LoopbackHub
from tests.integration.test_hub_walk import MRS, Walk

pytestmark = pytest.mark.integration

LOAD = """
import json, sys
from datasets import load_dataset
name, config, split = sys.argv[1:]
rows = load_dataset(name, config, split=split)
streamed = load_dataset(name, config, split=split, streaming=True)
print(json.dumps([rows.to_list(), list(streamed)]))
"""


class Client(Walk):
    """A walk that loads rows, too."""

    def mrs(self, *arguments: object, code: int = 0) -> str:
        done = self.run(*MRS, *arguments, code=code)
        return done.stderr if code else done.stdout

    def load(self, *arguments: str) -> list[Any]:
        rows, streamed = self.answer(LOAD, *arguments)
        assert rows == streamed
        return list(rows)


@pytest.fixture
def client(hub: LoopbackHub, tmp_path: Path) -> Client:
    return Client(hub, tmp_path)


def test_xcopa_comes_back_row_for_row(client: Client, shared_data: Path) -> None:
    source = shared_data / "xcopa"
    client.mrs("data", "prepare", "xcopa", "--source", source, "--source", shared_data / "copa", "--out", "x")
    client.mrs("data", "publish", "x", "--repo", "org/xcopa")
    for config, path in (("qu", "data/qu/test.qu.jsonl"), ("translation-th", "data-gmt/th/test.th.jsonl")):
        rows = [json.loads(line) for line in (source / path).read_text(encoding="utf-8").splitlines()]
        found = client.load("org/xcopa", config, "test")
        assert [{name: row[name] for name in row if name != "question_corrected"} for row in found] == rows
    stats = json.loads(client.mrs("data", "stats", "org/xcopa", "--language", "qu", "--json"))
    assert [row["agreement"] for row in stats["splits"]] == pytest.approx([98, 94.8])


def test_staple_comes_back_row_for_row(client: Client, tmp_path: Path) -> None:
    task = tmp_path / "task" / "en_pt"
    task.mkdir(parents=True)
    (task / "dev.en_pt.2020.gold.txt").write_text("prompt_a|yes\nsim|0.75\nclaro|0.25\n", encoding="utf-8")
    client.mrs("data", "prepare", "staple", "--source", "task", "--out", "s")
    refused = client.mrs("data", "publish", "s", "--repo", "org/staple", code=2)
    assert "--i-have-the-right-to-publish" in refused
    client.mrs("data", "publish", "s", "--repo", "org/staple", "--i-have-the-right-to-publish")
    translations = [{"text": "sim", "weight": 0.75}, {"text": "claro", "weight": 0.25}]
    row = {"id": "prompt_a", "prompt": "yes", "reference": None, "translations": translations}
    assert client.load("org/staple", "pt", "validation") == [row]


def test_user_pairs_are_read_from_the_hub(client: Client, tmp_path: Path) -> None:
    """Published and prepared again, by a language that MRS does not have; with the commit in the report."""
    (tmp_path / "src").mkdir()
    lines = ("Message 1\tda", "Message 2\tda", "Message 3\tnu", "Message 0\tpoate")
    (tmp_path / "src" / "ro.tsv").write_text("\n".join(lines), encoding="utf-8")
    client.mrs("data", "prepare", "mrs", "--source", "src", "--out", "a")
    client.mrs("data", "publish", "a", "--repo", "org/pairs")
    named = ("--language", "ro", "--message-column", "reply", "--reply-column", "message")
    client.mrs("data", "prepare", "mrs", "--source", "org/pairs", *named, "--out", "b")
    report = json.loads((tmp_path / "b" / "report.json").read_text(encoding="utf-8"))
    assert {split: facts["rows"] for split, facts in report["configs"]["ro"].items()} == {
        "train": 2,
        "validation": 1,
        "test": 1,
    }
    assert len(report["settings"]["revision"]) == 40
    assert client.load(str(tmp_path / "b"), "ro", "test") == [{"message": "poate", "reply": "Message 0"}]
    refused = client.mrs("data", "prepare", "mrs", "--source", "org/none", "--language", "ro", "--out", "c", code=2)
    assert "org/none" in refused
    assert "Traceback" not in refused
