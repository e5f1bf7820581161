"""`mrs data build` with the toxicity stage, killed and resumed: the same files, and no text is scored twice."""

import os
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.classifiers import write_classifier
from tests.dumps import SMALL, all_bytes, leftovers, write_months
from tests.scoring_server import ScoringServer, scoring_server

pytestmark = pytest.mark.faults

COMMENTS = 5000
BATCH = 64
Start = Callable[..., "subprocess.Popen[bytes]"]


@pytest.fixture(scope="module")
def server() -> Iterator[ScoringServer]:
    with scoring_server() as running:
        yield running


@pytest.fixture(scope="module")
def command(
    tmp_path_factory: pytest.TempPathFactory, bin_folder: Path, lid_model: Path, server: ScoringServer
) -> list[object]:
    folder = tmp_path_factory.mktemp("inputs")
    dumps = write_months(folder / "months", COMMENTS)
    model = write_classifier(folder / "tiny", [f"some text {number}" for number in range(99)])
    return [
        bin_folder / "mrs", "data", "build", "--dumps", dumps / "RC_*.zst", "--language-model", lid_model,
        "--buckets", 4, "--profile", "paper", *SMALL, "--workers", 1, "--out", "out",
        "--toxicity", server.url, "--toxicity-batch", BATCH,
        "--toxicity-english", model, "--toxicity-english-threshold", 0.9,
    ]  # fmt: skip


def finish(process: subprocess.Popen[bytes]) -> None:
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, (out[-500:], err[-2000:])
    assert b"Traceback" not in err


def kill(process: subprocess.Popen[bytes]) -> None:
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=60)


@pytest.fixture(scope="module")
def uninterrupted(
    command: list[object], server: ScoringServer, tmp_path_factory: pytest.TempPathFactory
) -> tuple[dict[str, bytes], Counter[tuple[str, str]]]:
    """The files, and the texts that were scored for them."""
    folder = tmp_path_factory.mktemp("whole")
    subprocess.run([*map(str, command)], cwd=folder, check=True, capture_output=True, timeout=300)
    asked, server.answered = server.answered, Counter()
    server.requests.clear()
    assert set(asked.values()) == {1}
    assert asked.total() > 10 * BATCH
    return all_bytes(folder / "out"), asked


def test_killed_between_requests_and_while_writing(
    tmp_path: Path, command: list[object], server: ScoringServer,
    uninterrupted: tuple[dict[str, bytes], Counter[tuple[str, str]]], start: Start, wait_for: Callable[..., None],
) -> None:  # fmt: skip
    """Each time a request is held back, the process killed, and the build resumed; then killed as it writes."""
    whole, texts = uninterrupted
    for number in (2, 6, 10, 14):
        server.hold_at = len(server.requests) + number
        server.holding.clear()
        server.let_go.clear()
        process = start(*command, "--resume")
        wait_for(server.holding.is_set, process)
        kill(process)
        server.let_go.set()
        assert not (tmp_path / "out").exists()
    server.hold_at = None
    kill_while_writing(tmp_path, command, start)
    finish(start(*command, "--resume"))
    assert all_bytes(tmp_path / "out") == whole
    assert leftovers(tmp_path, "out") == []
    assert server.answered == texts  # each once: the requests in flight at the kills were not answered


def kill_while_writing(folder: Path, command: list[object], start: Start) -> None:
    process = start(*command, "--resume")
    while process.poll() is None:
        if any(folder.glob(".out.partial-*/data/*/*.parquet")):
            break
        time.sleep(0.001)
    assert process.poll() is None, "it was not seen writing"
    kill(process)
    assert not (folder / "out").exists()


def test_an_expired_key_stops_the_build_and_a_new_one_continues_it(
    tmp_path: Path, command: list[object], server: ScoringServer,
    uninterrupted: tuple[dict[str, bytes], Counter[tuple[str, str]]], start: Start, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    whole, texts = uninterrupted
    server.answered.clear()
    server.requests.clear()
    server.key = "first"

    def changed(text: str) -> float:
        if len(server.requests) > 8:
            server.key = "second"
        return given(text)

    given, server.score = server.score, changed
    command = ["/usr/bin/env", "MRS_TOXICITY_KEY=first", *command]
    process = start(*command)
    _, err = process.communicate(timeout=300)
    server.score = given
    assert process.returncode == 2, err[-2000:]
    last = err.splitlines()[-1].decode()
    assert "the key in MRS_TOXICITY_KEY (expired?); renew it (HTTP 401)." in last
    assert b"Traceback" not in err
    assert b"first" not in err
    command[1] = "MRS_TOXICITY_KEY=second"
    finish(start(*command, "--resume"))
    server.key = ""
    assert all_bytes(tmp_path / "out") == whole
    assert server.answered == texts
