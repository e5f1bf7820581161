"""`mrs data corpus` that is killed again and again: it goes on, and ends with the bytes of an uninterrupted one."""

import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.corpus_texts import contents, write_texts

pytestmark = pytest.mark.faults

KILLED_AFTER = (0, 1, 4, 13, 18, 22)  # shards of 25, in all stages
COPIES = 60  # of each text, all but the first dropped as duplicates


@pytest.mark.parametrize("workers", [1, 2])
def test_killed_in_every_stage(
    workers: int, tmp_path: Path, bin_folder: Path, start: Callable[..., subprocess.Popen[bytes]],
    wait_for: Callable[..., None],
) -> None:  # fmt: skip
    texts = write_texts(tmp_path / "texts")
    first = (tmp_path / "texts" / "ru.txt").read_bytes()
    for number in range(6):
        (tmp_path / "texts" / f"ru{number}.txt").write_bytes(first * COPIES)
    more = [f"ru={tmp_path / 'texts'}/ru{number}.txt" for number in range(6)]
    command = [bin_folder / "mrs", "data", "corpus", *texts.options, "--text", *more, "--workers", workers, "--out"]
    whole = start(*command, tmp_path / "whole")
    _, err = whole.communicate(timeout=120)
    assert whole.returncode == 0, err
    for shards in KILLED_AFTER:
        process = start(*command, tmp_path / "out", "--resume")
        wait_for(lambda shards=shards: len(list((tmp_path / ".out.build").glob("*/*.json"))) >= shards, process)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
        assert not (tmp_path / "out").exists()
    last = start(*command, tmp_path / "out", "--resume")
    _, err = last.communicate(timeout=120)
    assert last.returncode == 0, err
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "texts", "whole"]
