"""Shards that are done once, whatever ends the process; and files between the stages, which reveal damage."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_datasets.builders.pipeline.stages import (
    Advance,
    Shard,
    Workers,
    ignore_sigint_in_children,
    read_pairs,
    run_stage,
    write_batches,
)
from mrs_datasets.builders.pipeline.work_folder import LOCK, MARKER, WorkFolder, remove_work, writing
from mrs_suggest.common.errors import InputError
from tests.cases import cases

IDENTITY = {"settings": {"min_score": 1, "clean": False}, "dumps": ["a"], "buckets": 4}


@pytest.fixture
def importable(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers find the functions of this file, which pytest imports without the path."""
    monkeypatch.syspath_prepend(str(repository))


def open_work(tmp_path: Path, resume: bool = False, overwrite: bool = False, **changes: Any) -> WorkFolder:
    changeable = changes.pop("changeable", None)
    return WorkFolder(tmp_path / "work", {**IDENTITY, **changes}, resume, overwrite, changeable)


def write(path: Path, text: str, log: Path, advance: Advance) -> dict[str, Any]:
    """The work of a shard: it leaves a line in a log, so that a test can see how often it was done."""
    with log.open("a") as file:
        file.write(f"{path.name}\n")
    path.write_text(text)
    advance(1)
    return {"text": text}


def break_off(error: BaseException, advance: Advance) -> dict[str, Any]:
    raise error


def end_itself(log: Path, advance: Advance) -> dict[str, Any]:
    """Die as a worker that the system kills, once the shards before have been begun."""
    deadline = time.monotonic() + 20
    while not (log.is_file() and {"a", "b"} <= set(log.read_text().split())) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(60)
    return {}


def make_shards(work: WorkFolder, names: str, log: Path) -> list[Shard]:
    folder = work.stage("stage")
    return [Shard(name, 1, folder / name, partial(write, folder / name, name * 2, log)) for name in names]


def run(work: WorkFolder, stage: str, shards: list[Shard], workers: int = 1) -> list[dict[str, Any]]:
    with Workers(workers) as processes:
        return run_stage(work, stage, shards, processes, "")


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("workers", [1, 2])
def test_a_shard_is_done_once_and_counts_come_in_order(tmp_path: Path, workers: int) -> None:
    work, log = open_work(tmp_path), tmp_path / "log"
    counts = run(work, "stage", make_shards(work, "ba", log), workers)
    assert counts == [{"text": "bb"}, {"text": "aa"}]
    again = open_work(tmp_path, resume=True)
    counts = run(again, "stage", make_shards(again, "cab", log), workers)
    assert counts == [{"text": "cc"}, {"text": "aa"}, {"text": "bb"}]
    assert sorted(log.read_text().split()) == ["a", "b", "c"]


@pytest.mark.parametrize(
    "harm",
    [
        lambda folder: (folder / "a").unlink(),
        lambda folder: (folder / "a.json").unlink(),
        lambda folder: (folder / "a.json").write_text('{"text": "a'),
    ],
)
def test_a_shard_without_output_or_counts_is_done_again(tmp_path: Path, harm: Callable[[Path], object]) -> None:
    work, log = open_work(tmp_path), tmp_path / "log"
    run(work, "stage", make_shards(work, "ab", log))
    harm(tmp_path / "work" / "stage")
    again = open_work(tmp_path, resume=True)
    assert run(again, "stage", make_shards(again, "ab", log)) == [{"text": "aa"}, {"text": "bb"}]
    assert log.read_text().split() == ["a", "b", "a"]


@pytest.mark.usefixtures("importable")
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("error", [InputError("a.zst: is broken; fetch it again."), ValueError("a bug")])
def test_what_was_done_before_an_error_stays(tmp_path: Path, workers: int, error: Exception) -> None:
    work, log = open_work(tmp_path), tmp_path / "log"
    shards = make_shards(work, "abcdef", log)
    shards.append(Shard("g", 1, tmp_path / "g", partial(break_off, error)))
    with pytest.raises(type(error), match=str(error)):
        run(work, "stage", shards, workers)
    done = [name for name in "abcdef" if work.done("stage", name)]
    assert done == list("abcdef") if workers == 1 else len(done) >= 4


@pytest.mark.usefixtures("importable")
def test_a_worker_that_is_killed_is_told(tmp_path: Path) -> None:
    work, log = open_work(tmp_path), tmp_path / "log"
    shards = [*make_shards(work, "ab", log), Shard("c", 1, tmp_path / "c", partial(end_itself, log))]
    told = rf"a worker was killed .*--resume, .* Finished work is kept in {re.escape(str(work.folder))}\.$"
    with pytest.raises(InputError, match=told), work.kept_after_errors():
        run(work, "stage", shards, 2)
    again = open_work(tmp_path, resume=True)
    assert run(again, "stage", make_shards(again, "ab", log), 2) == [{"text": "aa"}, {"text": "bb"}]


def test_an_error_leaves_work_that_may_be_finished_and_no_other(tmp_path: Path) -> None:
    """A resumed build with other dumps may fail before it looks at any finished shard."""
    error, log = InputError("b.zst: cannot be read."), tmp_path / "log"
    work = open_work(tmp_path)
    with pytest.raises(InputError, match=r"^b\.zst: cannot be read\.$"), work.kept_after_errors():
        raise error
    assert not work.folder.exists()
    work = open_work(tmp_path)
    run(work, "stage", make_shards(work, "a", log))
    again = open_work(tmp_path, resume=True, dumps=["b"], changeable={"dumps": ["other"]})
    kept = rf" Finished work is kept in {re.escape(str(work.folder))}; continue with --resume\.$"
    with pytest.raises(InputError, match=kept), again.kept_after_errors():
        raise error
    assert again.done("stage", "a")
    again = open_work(tmp_path, overwrite=True)
    with pytest.raises(InputError, match=r"read\.$"), again.kept_after_errors():
        raise error
    assert not again.folder.exists()


def test_work_of_an_earlier_build_is_not_touched_unasked(tmp_path: Path) -> None:
    work, log = open_work(tmp_path), tmp_path / "log"
    run(work, "stage", make_shards(work, "a", log))
    with pytest.raises(InputError, match=r"interrupted build; pass --resume to continue it, or --overwrite"):
        open_work(tmp_path)
    assert work.done("stage", "a")
    assert open_work(tmp_path, overwrite=True).done("stage", "a") is None


@pytest.mark.parametrize(("changes", "words"), cases(__file__, "test_work_of_another_build_is_not_taken_up"))
def test_work_of_another_build_is_not_taken_up(tmp_path: Path, changes: dict[str, Any], words: str) -> None:
    open_work(tmp_path)
    with pytest.raises(InputError, match=words):
        open_work(tmp_path, resume=True, **changes)
    assert open_work(tmp_path, resume=True), "it is still as it was"


def test_what_may_change_is_noted_and_done_again(tmp_path: Path) -> None:
    work, log = open_work(tmp_path), tmp_path / "log"
    for stage in ("stage", "other"):
        shard = Shard("a", 1, work.stage(stage) / "a", partial(write, work.stage(stage) / "a", "aa", log))
        run(work, stage, [shard])
    same = open_work(tmp_path, resume=True, changeable={"dumps": ["stage"]})
    assert (same.changed, same.done("stage", "a")) == ("", {"text": "aa"})
    other = open_work(tmp_path, resume=True, dumps=["b"], changeable={"dumps": ["stage"], "buckets": ["other"]})
    assert (other.changed, other.done("stage", "a"), other.done("other", "a")) == ("dumps", None, {"text": "aa"})
    open_work(tmp_path, resume=True, dumps=["b"])
    with pytest.raises(InputError, match="other dumps"):
        open_work(tmp_path, resume=True)


def test_a_broken_marker_is_refused(tmp_path: Path) -> None:
    for content in ("", "[1]", "{", "null"):
        open_work(tmp_path, overwrite=True)
        (tmp_path / "work" / MARKER).write_text(content)
        with pytest.raises(InputError, match="begun with other settings"):
            open_work(tmp_path, resume=True)


@pytest.mark.parametrize(("resume", "overwrite"), [(False, False), (True, False), (False, True), (True, True)])
def test_a_folder_or_file_that_is_not_ours_is_left_alone(tmp_path: Path, resume: bool, overwrite: bool) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="does not look like the work of a build"):
        open_work(tmp_path, resume, overwrite)
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["mine.txt"]
    (tmp_path / "work" / "mine.txt").unlink()
    (tmp_path / "work").rmdir()
    (tmp_path / "work").write_text("mine")
    with pytest.raises(InputError, match="does not look like the work of a build"):
        open_work(tmp_path, resume, overwrite)
    assert (tmp_path / "work").read_text() == "mine"


@pytest.mark.parametrize("left", [f".{MARKER}.partial-123", LOCK])
def test_a_build_that_was_killed_as_it_began_is_resumed(tmp_path: Path, left: str) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / left).write_text("{")
    open_work(tmp_path, resume=True)
    assert {path.name for path in (tmp_path / "work").iterdir()} == {MARKER, LOCK}


HOLD = """
import sys
from pathlib import Path
from mrs_datasets.builders.pipeline.work_folder import WorkFolder
work = WorkFolder(Path(sys.argv[1]), {}, resume=False, overwrite=False)
print("held", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize(("resume", "overwrite"), [(True, False), (False, True)])
def test_a_second_build_is_kept_out_until_the_first_ends(tmp_path: Path, resume: bool, overwrite: bool) -> None:
    command = [sys.executable, "-c", HOLD, str(tmp_path / "work")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(InputError, match="another build is running there"):
            WorkFolder(tmp_path / "work", {}, resume, overwrite)
        assert (tmp_path / "work" / MARKER).is_file()
        holder.kill()
    WorkFolder(tmp_path / "work", {}, resume, overwrite).remove()
    assert not (tmp_path / "work").exists()


def test_partial_files_are_removed_when_the_build_is_resumed(tmp_path: Path) -> None:
    work = open_work(tmp_path)
    for name in (".a.arrow.partial-0", ".a.json.partial-77", "a.arrow"):
        (work.stage("stage") / name).write_text("x")
    open_work(tmp_path, resume=True)
    assert [path.name for path in (tmp_path / "work" / "stage").iterdir()] == ["a.arrow"]


def test_a_removal_that_is_cut_off_can_be_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At whatever file: the rest is still a work folder."""
    real = os.unlink
    for survive in range(5):
        work = open_work(tmp_path, overwrite=True)
        for name in "abcd":
            (work.stage("stage") / name).write_text("x")
        removed = 0

        def unlink(*arguments: Any, survive: int = survive, **options: Any) -> None:
            nonlocal removed
            if removed == survive:
                raise KeyboardInterrupt
            removed += 1
            real(*arguments, **options)

        with monkeypatch.context() as patch:
            patch.setattr(os, "unlink", unlink)
            with pytest.raises(KeyboardInterrupt):
                remove_work(work.folder)
        assert (work.folder / MARKER).is_file()
        open_work(tmp_path, resume=True).remove()
        assert not work.folder.exists()


def test_what_the_disk_refuses_is_a_sentence(tmp_path: Path) -> None:
    with (
        pytest.raises(InputError, match=r"x: cannot be written \(No space left on device\); free space .*--resume"),
        writing(tmp_path / "x"),
    ):
        raise OSError(28, "No space left on device")
    work = open_work(tmp_path)
    with pytest.raises(InputError, match="cannot be written"):
        work.finish("no such stage", "a", {})
    work.stage("stage")
    work.finish("stage", "a", {"Zürich": 1})
    assert json.loads((tmp_path / "work" / "stage" / "a.json").read_text(encoding="utf-8")) == {"Zürich": 1}


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C is heard, also where the tests were started in a shell's background."""
    assert threading.current_thread() is threading.main_thread()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
@pytest.mark.parametrize("hearer", ["this thread", "another"])
def test_processes_are_begun_whole_before_an_interruption_is_heard(hearer: str) -> None:
    """Any thread may take the signal; Python then interrupts the first, whatever that one's mask is."""
    done, over = [], threading.Event()
    other = threading.Thread(target=over.wait, args=(20,))
    other.start()
    try:
        with pytest.raises(KeyboardInterrupt), ignore_sigint_in_children():
            target = threading.get_ident() if hearer == "this thread" else other.ident
            assert target is not None
            signal.pthread_kill(target, signal.SIGINT)
            time.sleep(0.05)
            done.append("all")
    finally:
        over.set()
        other.join()
    assert done == ["all"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


# --- Files between the stages ---------------------------------------------------------------------------------------


def table(languages: list[str]) -> pa.Table:
    languages = sorted(languages)
    numbers = pa.array(range(len(languages)), pa.uint64())
    return pa.table({"order": numbers, "language": pa.array(languages, pa.string()), "reply": ["yes"] * len(languages)})


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(["de", "en", "pt-BR", "sv"]), max_size=12), st.integers(1, 5))
def test_a_language_is_read_whatever_the_batches(
    tmp_path_factory: pytest.TempPathFactory, languages: list[str], rows: int
) -> None:
    path = tmp_path_factory.mktemp("pairs") / "bucket.arrow"
    pairs = table(languages)
    write_batches(path, pairs.schema, pairs.to_batches(rows))
    for language in ("de", "en", "ja", "pt-BR", "sv"):
        expected = [n for n, found in enumerate(sorted(languages)) if found == language]
        found, first = read_pairs(path, language, ["reply", "order"])
        assert found.column_names == ["reply", "order"]
        assert found["order"].to_pylist() == expected
        assert not expected or first == expected[0]


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 7))
def test_one_changed_bit_is_an_error_or_changes_nothing(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    path = tmp_path_factory.mktemp("pairs") / "bucket.arrow"
    pairs = table(["en", "en", "sv"] * 20)
    write_batches(path, pairs.schema, pairs.to_batches())
    expected = read_pairs(path, "en", ["order", "reply"])
    content = bytearray(path.read_bytes())
    footer = int.from_bytes(content[-10:-6], "little") + 10  # Arrow's own, without a checksum
    content[place % (len(content) - footer)] ^= 1 << bit
    path.write_bytes(content)
    with suppress(InputError):
        assert read_pairs(path, "en", ["order", "reply"]) == expected


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bucket.arrow"
    pairs = table(["en"] * 1000)
    write_batches(path, pairs.schema, pairs.to_batches())
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(InputError, match=r"bucket\.arrow: is damaged \(.*--resume"):
        read_pairs(path, "en", ["order"])
    with pytest.raises(InputError, match=r"none\.arrow: is damaged \("):
        read_pairs(tmp_path / "none.arrow", "en", ["order"])
