"""`mrs data prepare` of a large folder that is interrupted or killed: whole output or none."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.faults

ROWS = 1_000_000


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("large")
    with (folder / "en.tsv").open("w", encoding="utf-8") as file:
        for begin in range(0, ROWS, 100_000):
            numbers = range(begin, begin + 100_000)
            file.write("".join(f"message number {n} of many\treply {n % 9973}\n" for n in numbers))
    return folder


@pytest.fixture
def small(tmp_path: Path) -> Path:
    (tmp_path / "small").mkdir()
    (tmp_path / "small" / "en.tsv").write_text("".join(f"message {n}\treply\n" for n in range(50)))
    return tmp_path / "small"


def partials(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if ".partial" in path.name]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
@pytest.mark.parametrize("seconds", [0.1, 1.0])
def test_nothing_half_under_the_final_name(
    tmp_path: Path, large: Path, small: Path, bin_folder: Path, start: Callable[..., subprocess.Popen[bytes]],
    wait_for: Callable[..., None], number: signal.Signals, seconds: float,
) -> None:  # fmt: skip
    out = tmp_path / "out"
    out.mkdir()
    command = [bin_folder / "mrs", "data", "prepare", "mrs", "--out", out / "data"]
    process = start(*command, "--source", large)
    wait_for(lambda: [path for path in partials(out) if list(path.rglob("*.parquet"))], process)
    time.sleep(seconds)
    assert process.poll() is None, "the source is too small for this machine: nothing was interrupted"
    os.killpg(process.pid, number)
    _, err = process.communicate(timeout=60)
    assert not (out / "data").exists()
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert err == b"mrs data: interrupted.\n"
        assert list(out.iterdir()) == []
    else:
        assert process.returncode == -signal.SIGKILL
        assert all(path.name.startswith(".") for path in out.iterdir())

    # What is left must not stand in the way of the next run, nor be taken for data.
    again = start(*command, "--source", small)
    printed, err = again.communicate(timeout=60)
    assert again.returncode == 0, err
    assert b"wrote" in printed
    assert (out / "data" / "README.md").is_file()


def test_an_old_folder_survives_the_interruption_of_its_replacement(
    tmp_path: Path, large: Path, small: Path, bin_folder: Path, start: Callable[..., subprocess.Popen[bytes]],
    wait_for: Callable[..., None],
) -> None:  # fmt: skip
    command = [bin_folder / "mrs", "data", "prepare", "mrs", "--out", tmp_path / "data", "--overwrite"]
    first = start(*command, "--source", small)
    assert first.communicate(timeout=60)
    assert first.returncode == 0
    before = {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()}
    process = start(*command, "--source", large)
    wait_for(lambda: [path for path in partials(tmp_path) if list(path.rglob("*.parquet"))], process)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert {path: path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file()} == before
    assert not partials(tmp_path)
