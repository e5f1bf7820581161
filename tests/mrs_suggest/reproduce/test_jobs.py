"""How many cells run at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.reproduce import jobs
from mrs_suggest.reproduce.jobs import Jobs, available_memory


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "", "²"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(InputError, match=r"--jobs .*: expected a whole number from 1, or auto\."):
        Jobs.parse(text)


def test_cores_are_not_given_out_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "cores", lambda: 8)
    monkeypatch.setattr(jobs.torch.accelerator, "is_available", lambda: False)
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert Jobs.parse("1").environment() == {}
    assert Jobs.parse("3").environment() == {"OMP_NUM_THREADS": "2"}
    assert Jobs.parse("20").environment() == {"OMP_NUM_THREADS": "1"}
    assert (Jobs.parse("auto"), Jobs.parse("auto").environment()) == (Jobs(2, auto=True), {})
    monkeypatch.delenv("OMP_NUM_THREADS")
    assert Jobs.parse("auto") == Jobs(8, auto=True), "a cell has one thread unless the user says more"
    assert Jobs.parse("8").environment() == {}
    monkeypatch.setattr(jobs.torch.accelerator, "is_available", lambda: True)
    assert Jobs.parse("auto").number == 1, "the memory of an accelerator is not looked at"


@pytest.mark.parametrize(
    ("peak", "running", "allowed"),
    [
        (None, [], True),
        (None, [(10, 5)], False),
        (10, [(None, 5)], False),
        (50, [(60, 30)], True),
        (50, [(60, 20)], False),
        (1, [(1, 1)] * 4, False),
    ],
)
def test_memory_decides_with_what_the_others_will_still_take(
    monkeypatch: pytest.MonkeyPatch, peak: int | None, running: list[tuple[int | None, int]], allowed: bool
) -> None:
    monkeypatch.setattr(jobs, "available_memory", lambda: 100)
    assert Jobs(4, auto=True).allow(peak, running) is allowed
    assert Jobs(4).allow(peak, running) is (len(running) < 4)


def test_the_limit_of_a_container_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "CGROUP", tmp_path)
    whole = available_memory()
    assert whole > 1 << 20
    (tmp_path / "memory.current").write_text("600\n")
    (tmp_path / "memory.stat").write_text("anon 400\ninactive_file 150\n")
    (tmp_path / "memory.max").write_text("1000\n")
    assert available_memory() == 550
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory() > 1 << 20
