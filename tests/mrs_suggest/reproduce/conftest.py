"""A small table, and a stand-in for the `mrs` command that writes what a training run writes, in milliseconds."""

import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mrs_suggest.reproduce import runner
from mrs_suggest.reproduce.cells import Cell, Setup, chosen_cells
from tests.mrs_suggest.reproduce.checked_tables import parse_table

TABLE = Path(__file__).with_name("two_cells.yaml").read_text(encoding="utf-8")
# What a run writes; with `--estimate`, it gives times alone. Of its configuration, `fail: 1` fails, 2 is killed after
# a checkpoint the first time, 3 waits there until it is; `meet: N` waits until N runs have begun; `interrupt: 1` sends
# SIGINT to the runner. A run that starts from one that is not finished fails.
FAKE = """
import json, os, pathlib, signal, sys, time
words = sys.argv[1:]
folder = pathlib.Path(words[words.index("--output_dir") + 1])
seed = int(words[words.index("--seed") + 1])
given = dict(line.split(": ") for line in open(words[words.index("--config") + 1]).read().splitlines())
if "--estimate" in words:
    with open(os.environ["MRS_ESTIMATE"], "w") as times:
        json.dump({"steps": 1000, "training_seconds": 100, "seconds": 115}, times)
    print(given["learning_rate"])
    sys.exit(int(given.get("fail", 0)))
with open("calls.txt", "a") as calls:
    calls.write(" ".join(words) + chr(10))
folder.mkdir(parents=True, exist_ok=True)
print("step 1\\rstep 2", flush=True)
start = pathlib.Path(words[words.index("--model_name_or_path") + 1]) if "--model_name_or_path" in words else folder
if start.name == "run" and start != folder and not (start / "run.json").exists():
    sys.exit(3)
end = time.monotonic() + 60
while len(open("calls.txt").readlines()) < int(given.get("meet", 1)) and time.monotonic() < end:
    time.sleep(.01)
if given.get("fail") == "1":
    print("retrieval: no luck.")
    sys.exit(2)
if "interrupt" in given:
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)
if given.get("fail") in ("2", "3") and "--resume_from_checkpoint" not in words:
    (folder / "checkpoint-1").mkdir()
    (folder / "checkpoint-1" / "trainer_state.json").write_text("{}")
    if given["fail"] == "3":
        from mrs_suggest.common.launcher import end_with_launcher
        end_with_launcher()
        (folder / "process").write_text(str(os.getpid()))
        time.sleep(60)
    sys.exit(137)
value = .25 + (seed - 42) / 100
own = {"weighted": value, "weighted_interval": [value - .1, value + .1], "mrr": .5}
scopes = {"pooled": own, "en": own}
best = "yes of course" if "--ranker" in words else "no"
rows = ["hi\\tyes of course\\t" + best + "\\ta\\tb", "bye\\tsee you soon\\tyes\\tc\\td"]
(folder / "predictions.en.tsv").write_text(chr(10).join(rows) + chr(10))
full = {"ht": {"accuracy": .5, "interval": [.4, .6]}, "qu": {"accuracy": .75, "interval": [.7, .8]}}
metrics = {"systems": {"Model": scopes, "full": full, "TF-IDF": {"pooled": {"weighted": .125, "mrr": .25}}},
           "differences": {"TF-IDF": {"pooled": {"weighted": [.01, .03], "mrr": [-.1, .1]}}}, "signatures": {"en": {}}}
record = {"trainer": "retrieval", "seed": seed, "commit": "c0ffee", "metrics": metrics, "steps": 10, "seconds": 0.5}
(folder / "run.json").write_text(json.dumps(record))
"""

Ready = Callable[..., tuple[Setup, dict[str, Cell]]]


@pytest.fixture(autouse=True)
def heard() -> Iterator[None]:
    """No signal is ignored, as SIGINT is in a shell's background and SIGHUP after nohup."""
    usual = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: signal.SIG_DFL, signal.SIGHUP: signal.SIG_DFL}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def ready(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ready:
    """Return a function that gives the setup of the table and its cells; commands run the stand-in, in `tmp_path`."""
    script = tmp_path / "fake.py"
    script.write_text(FAKE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MRS_LAUNCHER", "")
    monkeypatch.setattr(runner, "_mrs", lambda: [sys.executable, str(script)])
    monkeypatch.setattr(runner, "INTERVAL", 0.02)
    (tmp_path / "configs").mkdir()

    def make(
        *only: str, config: str = "learning_rate: 0.5\n", text: str = TABLE, **changes: object
    ) -> tuple[Setup, dict[str, Cell]]:
        (tmp_path / "configs" / "a.yaml").write_text("model_name_or_path: org/base\n" + config)
        table = parse_table(text)
        setup = Setup(table, tmp_path / "out", tmp_path / "configs", **changes)  # type: ignore[arg-type]
        return setup, chosen_cells(table, list(only))

    return make


@pytest.fixture
def preparing(ready: Ready, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run a stand-in for `mrs data prepare`, which writes an empty prepared folder."""
    script = tmp_path / "prepare.py"
    script.write_text(
        "import pathlib, sys\nout = pathlib.Path(sys.argv[sys.argv.index('--out') + 1])\n"
        "(out / 'data').mkdir(parents=True, exist_ok=True)\n(out / 'report.json').write_text('{}')\n"
        "open('calls.txt', 'a').write(' '.join(sys.argv[1:]) + chr(10))\n"
    )
    monkeypatch.setattr(runner, "_mrs", lambda: [sys.executable, str(script)])
