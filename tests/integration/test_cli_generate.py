"""`mrs data generate` and `mrs data review`: from a task file to a checked data set, with a teacher over HTTP."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mrs_datasets.generated.generate import ANSWERS
from mrs_datasets.prepared.prepared import open_prepared
from tests.cases import cases
from tests.causal_model import make_causal_model
from tests.chat_server import ChatServer, Failure, chat_server
from tests.command import Result, refused, shown

pytestmark = pytest.mark.integration

Run = Callable[..., Result]
ROOT = Path(__file__).resolve().parents[2]
EXAMPLES, CONFIG = ROOT / "examples", ROOT / "trainers" / "configs" / "retrieval" / "quickstart.yaml"
WHEN = {"en": ["today", "tomorrow", "tonight", "later", "now", "next week"],
        "de": ["heute", "morgen", "heute Abend", "später", "jetzt", "nächste Woche"]}  # fmt: skip
ASKED = {"en": "Do you want to have lunch with us {}?", "de": "Möchtest du {} mit uns zu Mittag essen?"}
REPLIES = {
    "en": ["[yes] Sure, I'd love to!", "[no] Sorry, I can't make it.", "[ask] Where are you going?"],
    "de": ["[yes] Ja, sehr gerne!", "[no] Das schaffe ich leider nicht.", "[ask] Wohin geht ihr denn?"],
}


def taught(request: dict[str, Any]) -> str:
    """The answer of a good teacher: messages that differ by intent and register."""
    asked = json.loads(request["messages"][-1]["content"])
    if asked["step"] == "intents":
        return json.dumps({"intents": ["lunch: invites to lunch", "coffee: invites to a coffee"]})
    code = {"English": "en", "German": "de"}[asked["language"]]
    if asked["step"] == "replies":
        return json.dumps({"replies": REPLIES[code]})
    end = {"informal": "", "formal": " please", "neutral": " then"}[asked["register"]] + " " + asked["intent"]
    return json.dumps({"messages": [ASKED[code].format(when) + end for when in WHEN[code]]})


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server(taught) as found:
        yield found


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "task.yaml").write_text(
        "name: canteen\ndomain: colleagues who have lunch\nlanguages: [en]\nmessages: 6\nreplies: 3\n", encoding="utf-8"
    )
    return tmp_path / "task.yaml"


def words(server: ChatServer, task: Path, out: Path) -> list[object]:
    return ["data", "generate", "--task", task, "--teacher", f"openai:{server.url}#some-model", "--out", out]


def test_from_a_task_to_a_checked_data_set(mrs_here: Run, server: ChatServer, task: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = shown(mrs_here(*words(server, task, out), "--languages", "en", "de", "--licence", "mit"))
    assert "canteen: written by some-model; licence of its answers, as stated by the user: mit." in said
    assert "de: intents without messages or replies: none; tags of replies: yes, no, ask." in said
    assert len(server.requests) == 1 + 2 * 2 * (3 + 1)
    system, user = (turn["content"] for turn in server.requests[0]["messages"])
    assert "colleagues who have lunch" in system
    assert json.loads(user) == {"step": "intents", "count": 20}
    assert server.requests[0]["response_format"]["json_schema"]["schema"]["required"] == ["intents"]
    assert server.requests[0]["max_tokens"] == 4000
    data = open_prepared(str(out))
    assert data.languages() == ["en", "de"]
    assert {split for code in ("en", "de") for split in data.splits(code)} >= {"train", "validation"}
    assert "0 errors" in shown(mrs_here("data", "check", out))
    assert shown(mrs_here(*words(server, task, out), "--languages", "en", "de", "--licence", "mit")) == said
    assert len(server.requests) == 17, "nothing is asked for twice"


def test_a_failing_server_is_one_sentence_and_the_next_run_goes_on(
    mrs_here: Run, server: ChatServer, task: Path, tmp_path: Path
) -> None:
    server.planned = [taught_intents(), Failure(status=401)]
    sentence = refused(mrs_here(*words(server, task, tmp_path / "out")))
    assert "refuses requests without a key" in sentence
    before = 0
    while before < len(server.requests):  # requests that were on their way
        before = len(server.requests)
        time.sleep(0.5)
    done = (tmp_path / "out" / "answers.jsonl").read_text("utf-8").count("\n")
    shown(mrs_here(*words(server, task, tmp_path / "out")))
    assert len(server.requests) - before == 9 - done


def taught_intents() -> str:
    return json.dumps({"intents": ["lunch: invites to lunch", "coffee: invites to a coffee"]})


def test_a_killed_run_asks_nothing_twice(mrs_here: Run, server: ChatServer, task: Path, tmp_path: Path) -> None:
    server.seconds = 0.2
    out = tmp_path / "out"
    run = subprocess.Popen([sys.executable, "-m", "mrs_suggest.cli.main", *map(str, words(server, task, out))])
    while len(server.requests) < 4 and run.poll() is None:
        pass
    run.send_signal(signal.SIGKILL)
    run.wait()
    done = {(line["system"], line["user"]) for line in map(json.loads, whole_lines(out / "answers.jsonl"))}
    assert done
    server.requests.clear()
    shown(mrs_here(*words(server, task, out)))
    asked = {tuple(turn["content"] for turn in request["messages"]) for request in server.requests}
    assert not done & asked
    assert len(done) + len(asked) == 9


def whole_lines(path: Path) -> list[str]:
    return path.read_text("utf-8").split("\n")[:-1]


@pytest.mark.parametrize(("change", "problem"), cases(__file__, "test_wrong_options"))
def test_wrong_options(
    mrs_here: Run, server: ChatServer, task: Path, tmp_path: Path, change: dict[str, str], problem: str
) -> None:
    options = words(server, task, tmp_path / "out") + [part for pair in change.items() for part in pair]
    assert problem in refused(mrs_here(*options))
    assert not server.requests
    assert not (tmp_path / "out").exists()


def test_a_review_ends_with_ctrl_c(mrs_here: Run, server: ChatServer, task: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shown(mrs_here(*words(server, task, out)))
    assert "not a folder that `mrs data generate` wrote" in refused(mrs_here("data", "review", tmp_path))
    command = [sys.executable, "-m", "mrs_suggest.cli.main", "data", "review", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as review:
        assert review.stdout is not None
        (address,) = re.findall(r"http://127\S+", review.stdout.readline())
        with urllib.request.urlopen(address, timeout=30) as page:
            data = json.loads(re.findall(r'id="data">(.*?)</script>', page.read().decode())[0])
        item = next(row["item"] for row in data["items"] if data["review"]["sides"][str(row["item"])] == "reply")
        sent = json.dumps({"item": item, "decision": "drop"}).encode()
        with urllib.request.urlopen(urllib.request.Request(address, sent), timeout=30) as answer:
            assert json.load(answer) == {"said": ""}
        review.send_signal(signal.SIGINT)
        said = review.stdout.read()
    assert review.returncode == 0
    assert "en/replies: dropped 1 (dropped by a reviewer)" in said
    assert "Texts that a person reviewed: drop 1." in said


def test_the_scripted_teacher_s_product_is_learned(mrs_here: Run, tmp_path: Path) -> None:
    """The steps of `make demo-product`, with fewer training steps."""
    data = tmp_path / "data"
    mrs = [sys.executable, "-m", "mrs_suggest.cli.main", "data", "generate", "--task", EXAMPLES / "bike_shop.yaml"]
    command = [sys.executable, EXAMPLES / "scripted_teacher.py", EXAMPLES / "bike_shop_answers.yaml", *mrs]
    command += ["--teacher", "{url}#scripted", "--licence", "apache-2.0", "--out", data]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    dropped = open_prepared(str(data)).report()["dropped"]
    for code, reason in (("en", "link"), ("de", "in another language")):
        assert dropped[f"{code}/replies"] == dict.fromkeys(
            sorted({reason, "must not be said", "no known tag", "repeated"}), 1
        )
    options = ["--config", CONFIG, "--data", data, "--max_steps", 2, "--output_dir", tmp_path / "assistant"]
    few = ["--max_validation_examples", 10, "--max_test_examples", 20, "--disable_tqdm", "true"]
    shown(mrs_here("train", "retrieval", *options, *few))
    table = shown(mrs_here("compare", tmp_path / "assistant"))
    assert all(name in table for name in ("assistant", "TF-IDF"))


def test_a_model_in_a_folder_is_a_teacher(
    mrs_here: Run, task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An untrained one, which writes no intents; what it was asked and wrote is kept."""
    monkeypatch.setattr("mrs_suggest.cli.data.generate.TOKENS", 12)
    folder = make_causal_model(tmp_path / "speaker", ["Lunch is at noon.", "See you there!", "No, sorry."])
    capsys.readouterr()  # of writing the model
    sentence = refused(mrs_here("data", "generate", "--task", task, "--teacher", folder, "--out", tmp_path / "out"))
    (line,) = (tmp_path / "out" / ANSWERS).read_text(encoding="utf-8").splitlines()
    kept = json.loads(line)
    assert kept["teacher"] == "speaker"
    assert "colleagues who have lunch" in kept["system"]
    assert kept["answer"].strip()
    assert f"the teacher's answer {kept['answer'][:60]!r} names no intents" in sentence
