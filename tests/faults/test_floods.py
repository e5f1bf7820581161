"""Much input, and odd input, through the real commands."""

import json
import os
import random
import subprocess
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.suggest.short_messages import kind_of
from tests.untrained import untrained_retriever

pytestmark = pytest.mark.faults

LINES = 5_000
ODD = [
    "a" * 100_000,
    "word " * 20_000,
    "\U0001f44d",
    "\U0001f469\u200d\U0001f467",
    "\0",
    "\0\x01\x02 x",
    "\x1b[31mred\x1b[0m",
    "\u0645\u0631\u062d\u0628\u0627",
    "\u202eabc",
    "\u05e9\u05dc\u05d5\u05dd",
    "\u200b",
    "\ufeff",
    "e\u0301" * 500,
    "x\u2028y\x85z\x0cw",
    "\ufdfa" * 300,
    "...",
    "\\n",
    '{"a": 1}',
    "\t\tx\t",
    "[UNK][PAD][CLS]",
    "\U0010ffff",
    "\ud7ff",
    "\u01c5",
    "\u0130" * 50,
    "\u660e\u65e5" * 200,
]
BLANK = ["", " ", "\t", "\u3000 ", "\x0c", "\x1c"]  # white space only: nothing to answer


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained retriever, saved as a run saves it."""
    replies = ["Yes", "No", "Maybe later", "Thanks!", "See you"]
    return untrained_retriever(tmp_path_factory.mktemp("flood"), replies, ["en"])


def test_a_flood_of_messages_one_answer_each(model: Path, bin_folder: Path) -> None:
    rng = random.Random(0)
    lines = [rng.choice(["how are you", "see you", "what"]) + f" {n}" for n in range(LINES - len(ODD) - len(BLANK))]
    lines += ODD + BLANK
    rng.shuffle(lines)
    done = subprocess.run(
        [str(bin_folder / "mrs"), "suggest", "--model", str(model), "--language", "en", "--interactive", "--json"],
        input="".join(line + "\n" for line in lines).encode("utf-8"),
        env={**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": "", "LC_ALL": "C.UTF-8"},
        capture_output=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stderr == b""
    answers = [json.loads(line) for line in done.stdout.decode("utf-8").split("\n")[:-1]]
    assert [answer["message"] for answer in answers] == lines  # an object per line, blank ones included
    for answer in answers:
        least = 1 if kind_of(answer["message"], "en") else 3  # a thumb up gets the replies that fit it
        distinct = len({suggestion["reply"] for suggestion in answer["suggestions"]})
        assert (least <= distinct <= 3) if answer["message"].strip() else distinct == 0, answer


def scored(bin_folder: Path, path: Path) -> dict[str, Any]:
    command = [str(bin_folder / "mrs"), "score", str(path), "--language", "en", "--json"]
    done = subprocess.run(command, capture_output=True, timeout=300)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def test_a_flood_of_predictions(tmp_path: Path, bin_folder: Path) -> None:
    """200,000 lines; a third right, a third wrong, a third without suggestions: the figures are known."""
    path = tmp_path / "predictions.tsv"
    kinds = ["\tso what\tno\tso what\tx\n", "hi\tso what\tno\tnever\tx\n", "hi\tso what\t\t\t\n"]
    rows = 200_000
    path.write_text("".join(kinds[n % 3] for n in range(rows)), encoding="utf-8")
    figures = scored(bin_folder, path)
    right = (rows + 2) // 3
    assert figures["n"] == rows
    assert figures["weighted"] == pytest.approx(right / rows / 2, abs=1e-6)
    assert figures["interval"][0] < figures["weighted"] < figures["interval"][1]


def test_long_lines_of_predictions(tmp_path: Path, bin_folder: Path) -> None:
    path = tmp_path / "predictions.tsv"
    long = "yes " * 50_000
    odd = [text.replace("\t", " ") for text in ODD]
    lines = [f"{long}\tyes\t{long}\tyes\t{text}" for text in odd] + [f"m\t{text}\tyes\t\t" for text in odd]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8", newline="\n")
    figures = scored(bin_folder, path)
    assert figures["n"] + sum(figures["skipped"].values()) == len(lines)
