"""A build through both passes with tiny checkpoints, killed at five places: the same bytes, no text asked for twice."""

import json
import random
import signal
from collections import Counter
from pathlib import Path

import pytest

from mrs_suggest.common.text.language_id import LanguageIdentifier
from tests.classifiers import write_classifier
from tests.dumps import all_bytes, leftovers, read_report
from tests.faults.conftest import Start
from tests.translation_models import cipher, sentence, write_marian

pytestmark = pytest.mark.faults

JANUARY = 1514764800
PAIRS = 900
# The command, with a scorer and a translator that log each text that they answered, and end the process (SIGKILL)
# instead of answering the call of the number given.
COMMAND = """
import os, signal, sys
from mrs_datasets.builders import translation
from mrs_suggest.services.scorers.classifier import ClassifierScorer
from mrs_suggest.services.translators.seq2seq import Seq2SeqTranslator
log, killed = sys.argv.pop(1), int(sys.argv.pop(1))
translation.BLOCK = 16
calls = 0

def logging(kind, name):
    plain = getattr(kind, name)
    def call(self, texts, *languages):
        global calls
        calls += 1
        found = plain(self, texts, *languages)
        if calls == killed:
            os.kill(os.getpid(), signal.SIGKILL)
        with open(log, "a", encoding="utf-8") as file:
            file.write("".join(f"{name} {languages} {text!r}\\n" for text in texts))
        return found
    setattr(kind, name, call)

logging(ClassifierScorer, "score")
logging(Seq2SeqTranslator, "translate")
from mrs_suggest.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def write_month(path: Path) -> None:
    """A month of one-answer threads in the words that the translator knows."""
    draw = random.Random(0)
    lines = []
    for number in range(PAIRS):
        comment = {"link_id": f"t3_p{number}", "score": 1, "created_utc": JANUARY, "author": "somebody"}
        first = {"id": f"a{number}", "parent_id": f"t3_p{number}", "body": sentence(draw)}
        second = {"id": f"b{number}", "parent_id": f"t1_a{number}", "body": sentence(draw, 2)}
        lines += [json.dumps({**comment, **first}), json.dumps({**comment, **second})]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.fixture(scope="module")
def target(lid_model: Path) -> str:
    """The language of MRS that the cipher looks like to the language model."""
    draw = random.Random(1)
    found = LanguageIdentifier.open(lid_model).identify([cipher(sentence(draw)) for _ in range(200)])
    return next(code for code, _ in Counter(code for code, _ in found).most_common() if code != "en")


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory, lid_model: Path, target: str) -> list[object]:
    folder = tmp_path_factory.mktemp("inputs")
    translator = write_marian(folder / "translator", target=target)
    write_month(folder / "RC_2018-01")
    draw = random.Random(2)
    scorer = write_classifier(folder / "classifier", [sentence(draw) for _ in range(99)])
    return [
        "data", "build", "--dumps", folder / "RC_2018-01", "--language-model", lid_model,
        "--profile", "paper", "--min-examples", 300, "--min-reply-count", 2, "--buckets", 4, "--workers", 1,
        "--toxicity", scorer, "--toxicity-threshold", 0.999, "--toxicity-batch", 32, "--toxicity-english", scorer,
        "--translate-to", target, "--translator", translator, "--out", "out",
    ]  # fmt: skip


def run(start: Start, python: Path, folder: Path, command: list[object], killed: int) -> tuple[int, str]:
    process = start(python, "-c", COMMAND, folder / "log", killed, *command, "--resume", cwd=folder)
    _, err = process.communicate(timeout=300)
    return process.returncode, err.decode()


def asked(folder: Path) -> Counter[str]:
    return Counter((folder / "log").read_text(encoding="utf-8").splitlines())


def test_killed_at_five_places(
    start: Start, bin_folder: Path, command: list[object], target: str, tmp_path: Path
) -> None:
    python = bin_folder / "python"
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    code, err = run(start, python, whole, command, -1)
    assert code == 0, err
    once = asked(whole)
    assert set(once.values()) == {1}
    assert {line.split()[0] for line in once} == {"score", "translate"}
    passes = {entry["name"]: entry for entry in read_report(whole / "out")["passes"]}
    assert 0 < passes["toxicity"]["out"] < passes["toxicity"]["in"], passes
    assert passes["translation"]["about"]["counts"][f"mt-{target}"]["kept"] > 50, passes
    for place in (1, 3, 2, 5, 4):
        code, err = run(start, python, killed, command, place)
        assert code == -signal.SIGKILL, err
        assert leftovers(killed, "log") == [".out.build"]
    assert {line.split()[0] for line in asked(killed)} == {"score", "translate"}  # the last kills were in the second
    code, err = run(start, python, killed, command, -1)
    assert code == 0, err
    assert all_bytes(killed / "out") == all_bytes(whole / "out")
    assert asked(killed) == once
    assert leftovers(killed, "log") == ["out"]
