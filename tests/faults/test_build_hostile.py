"""`mrs data build` on a full disk, from broken months, with a wrong model, and resumed with other settings."""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from mrs_datasets.builders.pipeline.work_folder import WorkFolder
from mrs_datasets.builders.reddit import months as module
from mrs_datasets.prepared.prepare import prepare, prepare_mrs
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError
from tests.dumps import SMALL, leftovers, parquet_bytes, read_report, write_months

pytestmark = pytest.mark.faults

COMMENTS = 5000
Call = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def months(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_months(tmp_path_factory.mktemp("dumps") / "months", COMMENTS)


@pytest.fixture
def dumps(months: Path, tmp_path: Path) -> Path:
    """Return a folder of months that a test may damage."""
    folder = tmp_path / "dumps"
    folder.mkdir()
    for path in months.glob("RC_*"):
        shutil.copy(path, folder)
    return folder


@pytest.fixture
def build(dumps: Path, lid_model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Call:
    """Return a function that builds the months of `dumps` to `tmp_path/out`; it returns the code and the last line."""

    def call(*options: object, out: Path = tmp_path / "out") -> tuple[int, str]:
        start = ["data", "build", "--dumps", dumps / "RC_*", "--out", out, "--language-model", lid_model]
        code = main([str(part) for part in [*start, "--workers", 1, "--buckets", 8, *SMALL, *options]])
        return code, capsys.readouterr().err.splitlines()[-1]

    return call


@pytest.fixture(scope="module")
def expected(months: Path, lid_model: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the Parquet files of an undisturbed build."""
    out = tmp_path_factory.mktemp("expected") / "out"
    start = ["data", "build", "--dumps", months / "RC_*", "--out", out, "--language-model", lid_model, "--workers", 1]
    assert main([str(part) for part in [*start, "--buckets", 8, *SMALL]]) == 0
    return parquet_bytes(out)


def assert_refused(answer: tuple[int, str], *words: str) -> None:
    code, line = answer
    assert code == 2, line
    assert line.startswith("mrs data: ")
    assert [word for word in words if word not in line] == [], line


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Callable[[int], Path]]:
    """Return a function that makes a file system of so many KiB, or changes its size."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = False

    def size(kib: int) -> Path:
        nonlocal mounted
        options = f"remount,size={kib}k" if mounted else f"size={kib}k"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True)
        if done.returncode:
            pytest.skip("file systems cannot be mounted here")
        mounted = True
        return place

    try:
        yield size
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=True)


# The plan would refuse such a disk before anything is read, which is another test.
WITHOUT_RESERVE = """
import sys
from mrs_datasets.builders.reddit import plan
plan.RESERVE = 0.0
from mrs_suggest.cli.main import main
from mrs_datasets.builders.reddit import build as module
sys.exit(main(sys.argv[1:]))
"""


def test_a_disk_that_fills_up_again_and_again(
    months: Path, lid_model: Path, small_disk: Callable[[int], Path], expected: dict[str, bytes]
) -> None:
    """A little more room each time: every stop is a sentence, and the end is what it is on a large disk."""
    places = ("/.out.build/months", "/.out.build/pairs", "/.out.build/write", "/out")
    stops = []
    for kib in range(200, 6000, 200):
        place = small_disk(kib)
        options = ["data", "build", "--dumps", months / "RC_*", "--out", place / "out", "--language-model", lid_model]
        options += ["--workers", 1, "--buckets", 8, *SMALL, "--resume"]
        command = [sys.executable, "-c", WITHOUT_RESERVE, *map(str, options)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode == 0:
            break
        assert done.returncode == 2, done.stderr
        before, _, sentence = done.stderr.partition("\nmrs data: ")
        assert "Traceback" not in before
        assert sentence.startswith(f"{place}/")
        assert "No space left on device" in sentence
        assert sentence.count("\n") == 1
        assert leftovers(place, ".out.build") == []
        assert [path for path in place.rglob("*") if ".partial-" in path.name] == []
        stops.append(next(name for name in places if name in sentence))
    assert done.returncode == 0, done.stderr
    assert stops == sorted(stops), "what was done is not done again"
    assert set(places[:3]) <= set(stops), stops
    assert parquet_bytes(place / "out") == expected
    assert leftovers(place, "out") == []


def repack(path: Path, change: Callable[[bytes], bytes]) -> None:
    with zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(path.open("rb")) as stream:
        lines = stream.read()
    path.write_bytes(zstandard.ZstdCompressor().compress(change(lines)))


def damaged(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 2000] = bytes(2000)
    path.write_bytes(content)


USABLE = {
    "cut off": (lambda path: os.truncate(path, path.stat().st_size * 3 // 4), "the file ends early"),
    "damaged": (damaged, "damaged zstd data"),
    "cut off before it was packed": (lambda path: repack(path, lambda lines: lines[:-100]), "middle of a line"),
}


@pytest.mark.parametrize(("harm", "words"), USABLE.values(), ids=USABLE)
def test_what_is_whole_of_a_broken_month_is_used(
    build: Call, dumps: Path, tmp_path: Path, harm: Callable[[Path], None], words: str
) -> None:
    harm(dumps / "RC_2018-02.zst")
    assert_refused(build(), "RC_2018-02.zst (", words, "--resume", "--no-strict")
    assert leftovers(tmp_path, "dumps") == [".out.build"]
    code, line = build("--resume", "--no-strict")
    assert code == 0, line
    report = read_report(tmp_path / "out")
    assert [words in (dump["lossy"] or "") for dump in report["pipeline"]["dumps"]] == [False, True]
    assert f"in part: {report['pipeline']['dumps'][1]['lossy']}" in (tmp_path / "out" / "README.md").read_text()
    (warning,) = report["pipeline"]["warnings"]
    assert warning.startswith("RC_2018-02.zst: ")
    assert words in warning
    assert warning in report["notes"]
    assert "RC_2018-02.zst" in (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert COMMENTS < report["pipeline"]["stages"][0]["in"] <= 2 * COMMENTS


def test_other_profiles_use_what_can_be_read_unless_strict(build: Call, dumps: Path, tmp_path: Path) -> None:
    USABLE["cut off"][0](dumps / "RC_2018-02.zst")
    options = ("--profile", "clean", "--min-examples", 1000)
    assert_refused(build(*options, "--strict"), "RC_2018-02.zst (the file ends early)")
    assert build("--resume", *options)[0] == 0
    assert_refused(build("--resume", *options, "--strict"), "RC_2018-02.zst (the file ends early)")


def hashes(folder: Path) -> list[str]:
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("RC_*"))]


def test_a_repaired_month_of_equal_size_is_read_again(
    build: Call, dumps: Path, months: Path, tmp_path: Path, expected: dict[str, bytes]
) -> None:
    """Even with the old modification time, as a download may set it."""
    path = dumps / "RC_2018-02.zst"
    damaged(path)
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    assert_refused(build("--no-strict", "--min-examples", 99_999), "--min-examples")
    path.write_bytes((months / path.name).read_bytes())
    os.utime(path, ns=times)
    code, line = build("--resume")
    assert code == 0, line
    assert parquet_bytes(tmp_path / "out") == expected
    assert [dump["sha256"] for dump in read_report(tmp_path / "out")["pipeline"]["dumps"]] == hashes(dumps)
    assert all(digest in (tmp_path / "out" / "README.md").read_text() for digest in hashes(dumps))
    damaged(path)
    assert_refused(build("--resume"), "out exists already")


def test_the_same_month_in_another_file_is_not_read_again(
    build: Call, dumps: Path, months: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(build, tmp_path)
    pairs = {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.build" / "pairs").iterdir()}
    (dumps / "RC_2018-02.zst").unlink()
    shutil.copyfile(months / "RC_2018-02.zst", dumps / "RC_2018-02.zst")
    monkeypatch.setattr(module, "month_shard", pytest.fail)
    monkeypatch.setattr(WorkFolder, "remove", lambda _: None)
    assert build("--resume")[0] == 0
    assert {path: path.stat().st_mtime_ns for path in pairs} == pairs


def test_a_pipe_is_refused_and_not_waited_for(build: Call, dumps: Path, tmp_path: Path) -> None:
    os.mkfifo(dumps / "RC_2018-03.zst")
    assert_refused(build(), "RC_2018-03.zst: is a pipe, device or socket")
    assert leftovers(tmp_path, "dumps") == []
    for source in (dumps, dumps / "RC_2018-03.zst"):
        sentence = "RC_2018-03.zst: is a pipe, device or socket"
        with pytest.raises(InputError, match=sentence):
            prepare_mrs(str(source), tmp_path / "prepared")
        with pytest.raises(InputError, match=sentence):
            prepare("xcopa", [str(source)], tmp_path / "prepared")


UNUSABLE = {
    "empty": (lambda path: path.write_bytes(b""), "is empty"),
    "a picture": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(999)), "expected a dump"),
    "other lines": (lambda path: path.write_bytes(b'{"name": "a post"}\n' * 99), "none of its 99 lines is a comment"),
    "nothing whole": (lambda path: os.truncate(path, 300), "no complete line could be read"),
    "no line": (lambda path: repack(path, lambda _: b""), "has no lines"),
}


@pytest.mark.parametrize(("harm", "words"), UNUSABLE.values(), ids=UNUSABLE)
def test_a_month_that_cannot_be_used_stops_the_build_and_can_be_replaced(
    build: Call, dumps: Path, months: Path, tmp_path: Path, expected: dict[str, bytes], harm: Callable[[Path], None],
    words: str,
) -> None:  # fmt: skip
    """The other month, which was read already, is not read again."""
    harm(dumps / "RC_2018-02.zst")
    assert_refused(build(), "RC_2018-02.zst", words)
    assert leftovers(tmp_path, "dumps") == [".out.build"]
    assert [path for path in (tmp_path / ".out.build").rglob("*") if ".partial-" in path.name] == []
    shutil.copy(months / "RC_2018-02.zst", dumps)
    seen: list[str] = []
    real = module.month_shard
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "month_shard", lambda path, *rest: seen.append(path.name) or real(path, *rest))
        code, line = build("--resume")
    assert code == 0, line
    assert seen == ["RC_2018-02.zst"]
    assert parquet_bytes(tmp_path / "out") == expected
    assert leftovers(tmp_path, "dumps", "out") == []


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="needs /proc")
def test_a_month_that_the_disk_does_not_give(build: Call, dumps: Path) -> None:
    (dumps / "RC_2018-03.zst").symlink_to("/proc/self/mem")  # its first byte cannot be read
    assert_refused(build(), "RC_2018-03.zst", "cannot be read", "Input/output error")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_month_without_the_right_to_read_it(build: Call, dumps: Path) -> None:
    (dumps / "RC_2018-02.zst").chmod(0)
    assert_refused(build(), "RC_2018-02.zst", "Permission denied")


def test_a_line_of_a_gigabyte(dumps: Path, lid_model: Path, tmp_path: Path) -> None:
    """It is skipped and counted, without being held."""
    before = (dumps / "RC_2018-02.zst").read_bytes()
    compressor = zstandard.ZstdCompressor(level=1).compressobj()
    parts = [compressor.compress(b'{"id": "a", "body": "')]
    parts += [compressor.compress(bytes(1 << 20)) for _ in range(1 << 10)]
    parts += [compressor.compress(b'"}\n'), compressor.flush()]
    (dumps / "RC_2018-02.zst").write_bytes(b"".join(parts) + before)
    # Its own peak: what wait4 tells begins with that of the process that was forked.
    tell = "import sys; from mrs_suggest.cli.main import main; code = main(sys.argv[1:]); "
    tell += "print(*(line for line in open('/proc/self/status') if line.startswith('VmHWM'))); sys.exit(code)"
    command = [sys.executable, "-c", tell, "data", "build", "--dumps", dumps / "RC_*", "--out", "out"]
    command += ["--language-model", lid_model, "--workers", 1, "--buckets", 8, *SMALL]
    log = tmp_path / "log"
    with log.open("wb") as file:
        done = subprocess.run([str(part) for part in command], cwd=tmp_path, stdout=file, stderr=file, timeout=240)
    assert done.returncode == 0, log.read_text()[-2000:]
    read = read_report(tmp_path / "out")["pipeline"]["stages"][0]
    assert (read["in"], read["dropped"]["too long"]) == (2 * COMMENTS + 1, 1)
    peak = int(log.read_text().rpartition("VmHWM:")[2].split()[0])  # kB
    assert peak < 500 << 10


def test_a_wrong_model_is_refused_before_anything_is_read(
    build: Call, dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = tmp_path / "wrong.bin"
    for content, words in ((b"", "but the file is not one"), (b"no model at all", "expected a fastText model")):
        wrong.write_bytes(content)
        assert_refused(build("--language-model", wrong), "wrong.bin", words)
    assert_refused(build("--language-model", dumps), "no such file")
    monkeypatch.setattr("mrs_suggest.cli.data.build.LANGUAGES", ("eng_Latn", "swe_Latn"))
    assert_refused(build(), "lid.bin: knows none of MRS's languages (eng_Latn swe_Latn)")
    assert leftovers(tmp_path, "dumps", "wrong.bin") == []


def stopped(build: Call, tmp_path: Path) -> None:
    """A build that stops before its last stage, with all of its work done."""
    assert_refused(build("--min-examples", 99_999), "--min-examples")
    assert not (tmp_path / "out").exists()


def test_resume_with_other_settings_names_them(
    build: Call, dumps: Path, tmp_path: Path, expected: dict[str, bytes], lid_model: Path
) -> None:
    stopped(build, tmp_path)
    for options, words in (
        (["--min-score", 3, "--drop-bots"], "min_score, drop_bots"),
        (["--buckets", 9], "buckets"),
        (["--profile", "clean"], "drop_bots"),
    ):
        assert_refused(build("--resume", *options), "--resume", f"with other {words};", "--overwrite")
    assert_refused(build(), ".out.build", "--resume", "--overwrite")
    code, line = build("--resume")
    assert code == 0, line
    assert parquet_bytes(tmp_path / "out") == expected
    code, line = build("--resume")  # whole already: nothing to do, and nothing wrong
    assert code == 0, line
    assert parquet_bytes(tmp_path / "out") == expected
    assert_refused(build("--resume", "--min-reply-count", 3), "exists already")


def test_a_month_more_and_another_model_keep_the_months_that_are_done(
    build: Call, dumps: Path, tmp_path: Path, lid_model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped(build, tmp_path)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.build" / "months").glob("*.arrow")}
    assert before
    shutil.copy(lid_model, tmp_path / "other.bin")
    shutil.copy(dumps / "RC_2018-01.zst", dumps / "RC_2018-03.zst")
    monkeypatch.setattr(WorkFolder, "remove", lambda _: None)
    code, line = build("--resume", "--language-model", tmp_path / "other.bin")
    assert code == 0, line
    assert before.items() <= {path: path.stat().st_mtime_ns for path in (tmp_path / ".out.build").rglob("*")}.items()
    monkeypatch.undo()
    code, line = build(out=tmp_path / "whole")
    assert code == 0, line
    assert parquet_bytes(tmp_path / "out") == parquet_bytes(tmp_path / "whole")
