"""A build that translates and is killed: it goes on with the same bytes in the end, and translates no text twice."""

from __future__ import annotations

import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tests.dumps import SMALL, leftovers, parquet_bytes, write_months
from tests.faults.conftest import Start

pytestmark = pytest.mark.faults

# The command, with a translator that logs each call and ends its process (SIGKILL) in the call of the number given.
# A call is logged before it is answered; so those that a kill cut off are known.
COMMAND = """
import os, signal, sys
from mrs_datasets.builders import translation
from mrs_datasets.texts import dictionary_texts
log, killed = sys.argv.pop(1), int(sys.argv.pop(1))
translation.BLOCK = 16
plain = dictionary_texts.DictionaryTranslator.translate
calls = 0

def translate(self, texts, source, target):
    global calls
    calls += 1
    found = plain(self, texts, source, target)
    with open(log, "a", encoding="utf-8") as file:
        file.write("".join(f"{target} {text!r}\\n" for text in texts) if calls != killed else "")
        file.flush()
        os.fsync(file.fileno())
    if calls == killed:
        os.kill(os.getpid(), signal.SIGKILL)
    return found

dictionary_texts.DictionaryTranslator.translate = translate
from mrs_suggest.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory, repository: Path, lid_model: Path) -> list[object]:
    dumps = write_months(tmp_path_factory.mktemp("dumps") / "months", 6000)
    words = repository / "examples/words.en-es.tsv"
    start = ["data", "build", "--dumps", dumps / "RC_*.zst", "--language-model", lid_model, "--buckets", 4, *SMALL]
    return [*start, "--workers", 1, "--out", "out", "--translate-to", "es", "it", "--translator", f"dictionary:{words}"]


def run(start: Start, python: Path, folder: Path, command: list[object], killed: int, *more: object) -> tuple[int, str]:
    process = start(python, "-c", COMMAND, folder / "log", killed, *command, *more, cwd=folder)
    _, err = process.communicate(timeout=120)
    return process.returncode, err.decode()


def texts(folder: Path) -> Counter[str]:
    return Counter((folder / "log").read_text(encoding="utf-8").splitlines())


def test_killed_in_the_middle_of_translating(
    start: Start, bin_folder: Path, command: list[object], tmp_path: Path
) -> None:
    python = bin_folder / "python"
    (tmp_path / "whole").mkdir()
    code, err = run(start, python, tmp_path / "whole", command, -1)
    assert code == 0, err
    whole = texts(tmp_path / "whole")
    assert set(whole.values()) == {1}
    (tmp_path / "killed").mkdir()
    for place in (1, 2, 30, 5, 17):
        code, err = run(start, python, tmp_path / "killed", command, place, "--resume")
        assert code == -signal.SIGKILL, err
        assert leftovers(tmp_path / "killed", "log") == [".out.build"]
    code, err = run(start, python, tmp_path / "killed", command, -1, "--resume")
    assert code == 0, err
    assert parquet_bytes(tmp_path / "killed/out") == parquet_bytes(tmp_path / "whole/out")
    for name in ("README.md",):
        assert (tmp_path / "killed/out" / name).read_bytes() == (tmp_path / "whole/out" / name).read_bytes()
    assert texts(tmp_path / "killed") == whole
    assert leftovers(tmp_path / "killed", "log") == ["out"]


def test_another_language_or_dictionary_is_translated_anew_and_the_rest_stays(
    start: Start, bin_folder: Path, command: list[object], tmp_path: Path
) -> None:
    python = bin_folder / "python"
    code, err = run(start, python, tmp_path, command, 40)
    assert code == -signal.SIGKILL, err
    before = texts(tmp_path)
    other = [part for part in command if part != "it"]
    code, err = run(start, python, tmp_path, other, -1, "--resume")
    assert code == 0, err
    assert [config.name for config in (tmp_path / "out/data").iterdir() if config.name.startswith("mt-")] == ["mt-es"]
    after = texts(tmp_path)
    assert {text: count for text, count in after.items() if text.startswith("es")} == dict.fromkeys(
        (text for text in after if text.startswith("es")), 1
    )
    assert sum(before.values()) > 100


def test_an_interrupt_ends_with_one_sentence(
    start: Start, bin_folder: Path, command: list[object], tmp_path: Path
) -> None:
    code = COMMAND.replace("signal.SIGKILL", "signal.SIGINT")
    process = start(bin_folder / "python", "-c", code, tmp_path / "log", 5, *command)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130, err
    assert b"Traceback" not in err
    assert isinstance(process, subprocess.Popen)
    assert leftovers(tmp_path, "log") == [".out.build"]
