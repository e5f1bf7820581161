"""`benchmarks/golden.py` and `benchmarks/reading_path.py`: what they compare and what they count."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _benchmarks(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(repository / "benchmarks")


def test_a_record_equals_itself_and_each_difference_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden = importlib.import_module("golden")
    run = {"seed": 1, "seconds": 2.5, "commit": "0123456789ab", "metrics": {"en": {"n": 3, "interval": [0.25, 1]}}}
    record = golden.flat("run", run)
    assert record == {"run.seed": 1, "run.metrics.en.n": 3, "run.metrics.en.interval": "[0.25, 1]"}
    readme = golden.readme_lines(
        "# Model\n4 steps in 6 s on 2 cores (x86_64), torch 2.1, commit `0123456789ab`.",
        {"commit": "0123456789ab", "versions": {"torch": "2.1"}},
    )
    assert readme == ["# Model", "4 steps in <time> s on <machine>, torch <version>, commit `<commit>`."]
    other = {**record, "run.seed": 2, "card": ["a", "b"]}
    for name, content in {"before": {**record, "card": ["a", "c"]}, "after": other}.items():
        (tmp_path / name).write_text(json.dumps(content), encoding="utf-8")
    paths = [str(tmp_path / name) for name in ("before", "after")]
    assert golden.main(["compare", paths[0], paths[0]]) == 0
    capsys.readouterr()
    assert golden.main(["compare", *paths]) == 1
    assert capsys.readouterr().out.splitlines() == ["run.seed: 1 -> 2", "card: -c", "card: +b"]
    assert golden.main(["compare", *paths, "--skip", "card|seed"]) == 0


def test_a_walk_counts_what_is_called(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reading_path = importlib.import_module("reading_path")
    (tmp_path / "walked.py").write_text(
        "import unwalked\n"
        "class Reader:\n"
        "    def lines(self):\n"
        "        yield from (line for line in 'ab')\n"
        "def outer():\n"
        "    return sorted(Reader().lines(), key=lambda line: inner(line))\n"
        "def inner(line):\n"
        "    return line\n"
    )
    (tmp_path / "unwalked.py").write_text("def never(): ...\nvalue = [n for n in range(3)]\n")
    monkeypatch.syspath_prepend(tmp_path)
    walk = reading_path.Walk([tmp_path])
    sys.setprofile(walk.profile)
    try:
        importlib.import_module("walked").outer()
    finally:
        sys.setprofile(None)
    figures = walk.figures()
    assert [Path(path).name for path in figures["paths"]] == ["walked.py"]
    assert {name: figures[name] for name in ("functions", "classes", "deepest")} == {
        "functions": 3, "classes": 1, "deepest": 2
    }  # fmt: skip
    limits = reading_path.LIMITS["train"]
    assert reading_path.over_limits({"train": limits}) == []
    assert len(reading_path.over_limits({"train": {name: limit + 1 for name, limit in limits.items()}})) == 2
