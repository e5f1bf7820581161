"""The review of a generated folder: what the page posts is what its data become."""

import json
import re
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.check.check import check
from mrs_datasets.generated.generate import ANSWERS, generate
from mrs_datasets.generated.review import open_generated, review_server
from mrs_datasets.prepared.prepared import open_prepared
from mrs_suggest.cli.data.generate import _teacher as reader
from mrs_suggest.common.errors import InputError
from tests.mrs_datasets.generated.test_generate import MESSAGES, TASK, teaching, texts


class Page:
    """The page of a running server."""

    def __init__(self, address: str) -> None:
        self.address = address
        with urllib.request.urlopen(address, timeout=30) as answer:
            self.html = answer.read().decode()
        found = re.search(r'<script type="application/json" id="data">(.*?)</script>', self.html)
        assert found
        self.data: dict[str, Any] = json.loads(found[1])
        sides = self.data["review"]["sides"]
        self.items = {row[sides[str(row["item"])]]: row["item"] for row in self.data["items"]}

    def post(self, content: object) -> tuple[int, str]:
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        try:
            with urllib.request.urlopen(urllib.request.Request(self.address, body), timeout=60) as answer:
                return answer.status, json.load(answer)["said"]
        except urllib.error.HTTPError as error:
            with error:
                return error.code, json.load(error)["said"]

    def decide(self, text: str, decision: str, comment: str = "") -> tuple[int, str]:
        return self.post({"item": self.items[text], "decision": decision, "comment": comment})


@pytest.fixture
def out(tmp_path: Path) -> Path:
    generate(TASK, teaching(), tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def address(out: Path) -> Iterator[str]:
    server, found = review_server(out, *open_generated(out, reader))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield found
    server.shutdown()
    thread.join()
    server.server_close()


def test_decisions_are_written_back(out: Path, address: str) -> None:
    page = Page(address)
    assert len(page.items) == 8
    assert page.decide("Sorry, I can't make it.", "drop") == (200, "")
    assert page.decide("Where are you going?", "edit", " Where  shall we meet? ") == (200, "")
    assert page.decide(MESSAGES[0], "drop") == (200, "")
    assert page.decide(MESSAGES[1], "edit", MESSAGES[1] + "!!") == (200, ""), "only its punctuation changes"
    assert page.decide("Sure, I'd love to!", "drop") == page.decide("Sure, I'd love to!", "accept") == (200, "")
    assert texts(out, "message") == set(MESSAGES), "nothing changes before the decisions are applied"
    status, said = page.post({"apply": True})
    assert status == 200
    assert "Texts that a person reviewed: drop 2, edit 2, accept 1." in said
    assert texts(out, "reply") == {"Sure, I'd love to!", "Where shall we meet?"}
    assert texts(out, "message") == {MESSAGES[1] + "!!", *MESSAGES[2:]}
    report = open_prepared(str(out)).report()
    assert report["dropped"] == {f"en/{step}": {"dropped by a reviewer": 1} for step in ("messages", "replies")}
    assert not [found for found in check(open_prepared(str(out))) if found.level == "error"]
    again = Page(address)
    assert again.data["review"]["judged"][str(page.items[MESSAGES[1]])]["comment"] == MESSAGES[1] + "!!"
    generate(TASK, teaching(), out)
    assert texts(out, "reply") == {"Sure, I'd love to!", "Where shall we meet?"}, "decisions outlive another run"


def test_a_decision_can_be_taken_back(out: Path, address: str) -> None:
    page = Page(address)
    for decision in ("drop", ""):
        assert page.decide("Sorry, I can't make it.", decision) == (200, "")
    assert "none so far" in page.post({"apply": True})[1]
    assert "Sorry, I can't make it." in texts(out, "reply")


@pytest.mark.parametrize(
    "sent",
    [
        b"no JSON", b"[]", b"3", {}, {"item": 0, "decision": "drop"}, {"item": 99, "decision": "drop"},
        {"item": [1], "decision": "drop"}, {"item": 1, "decision": "burn"}, {"item": 1, "decision": ["drop"]},
        {"item": 1, "decision": "edit", "comment": " "}, {"item": 1, "decision": "edit", "comment": "x" * 301},
        {"item": 1, "decision": "edit", "comment": None}, {"item": 1, "decision": "edit"},
    ],
)  # fmt: skip
def test_other_posts_are_refused(out: Path, address: str, sent: object) -> None:
    status, said = Page(address).post(sent)
    assert status == 400
    assert said.startswith("Not saved: ")
    assert not (out / "review.jsonl").exists()


def test_another_address_gets_nothing(out: Path, address: str) -> None:
    root = address[: address.index("/", len("http://")) + 1]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(root, timeout=30)
    with pytest.raises(urllib.error.HTTPError):
        urllib.request.urlopen(urllib.request.Request(root, b'{"item": 1, "decision": "drop"}'), timeout=30)
    assert not (out / "review.jsonl").exists()


def test_the_page_loads_nothing_and_posts_to_its_own_address_alone(address: str) -> None:
    page = Page(address)
    assert "default-src 'none'" in page.html.replace("&#x27;", "'")
    assert "connect-src 'self'" in page.html.replace("&#x27;", "'")
    assert page.data["answers"] == ["accept", "edit", "drop"]


def test_only_a_generated_folder_is_reviewed(out: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a folder that `mrs data generate` wrote"):
        open_generated(tmp_path, reader)
    report = json.loads((out / "report.json").read_text("utf-8"))
    (out / "report.json").write_text(json.dumps(report | {"settings": {"task": {}}}), encoding="utf-8")
    with pytest.raises(InputError, match="not a folder"):
        open_generated(out, reader)
    assert (out / ANSWERS).is_file()
