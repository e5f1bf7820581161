"""`mrs.tgz` cut off or with a flipped bit, at many places: refused in a sentence, or read without any difference."""

import gzip
import io
import lzma
import random
import shutil
import tarfile
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from mrs_suggest.cli.main import main

pytestmark = pytest.mark.faults

TRIALS = 50
Rows = dict[str, list[dict[str, object]]]


def text_of(language: str, split: str, rows: int) -> str:
    rng = random.Random(f"{language}{split}")
    words = ["yes", "no", "thanks", "tomorrow", "dinner", "niño", "Größe", "why", "see", "you", "later", "fine"]
    return "".join(
        f"{' '.join(rng.choices(words, k=rng.randint(1, 9)))} {n}\t{' '.join(rng.choices(words, k=3))}\n"
        for n in range(rows)
    )


@pytest.fixture(scope="module", params=["tgz", "tar.xz"])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid archive in the official layout: two languages with response sets, some members compressed themselves."""
    files: dict[str, bytes] = {}
    for language in ("en", "es"):
        for split, rows in (("train", 200), ("valid", 40), ("test", 40)):
            data = text_of(language, split, rows).encode("utf-8")
            name = f"mrs/{split}/{language}/{split}.tsv"
            if split == "valid":
                name, data = name + ".gz", gzip.compress(data)
            if split == "test":
                name, data = name + ".xz", lzma.compress(data)
            files[name] = data
        responses = "".join(f"{-1 - n / 8}\treply number {n}\t{n // 2}\n" for n in range(60))
        files[f"mrs/rsp_set/{language}/response_lm_cluster.txt"] = responses.encode("utf-8")
    path = tmp_path_factory.mktemp("archive") / f"mrs.{request.param}"
    mode = {"tgz": "w:gz", "tar.xz": "w:xz"}[request.param]
    with tarfile.open(path, mode) as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return path


def rows_of(folder: Path) -> Rows:
    """Everything in a prepared folder, by config and split."""
    return {
        str(path.relative_to(folder)): pq.read_table(path).to_pylist() for path in sorted(folder.rglob("*.parquet"))
    }


def prepare(source: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit code and standard error; a bug's traceback fails the test by itself."""
    code = main(["data", "prepare", "mrs", "--source", str(source), "--out", str(out)])
    return code, capsys.readouterr().err


@pytest.fixture
def expected(archive: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Rows:
    """The rows of the undamaged archive."""
    assert prepare(archive, tmp_path / "whole", capsys)[0] == 0
    rows = rows_of(tmp_path / "whole")
    assert len(rows) == 8
    return rows


def judge(
    data: bytes, original: Path, expected: Rows, folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[bool, str]:
    """Read damaged data: whether they were refused, and what was wrong with that (empty: nothing)."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    source = folder / original.name
    source.write_bytes(data)
    try:
        code, err = prepare(source, out / "data", capsys)
    except Exception as error:
        shutil.rmtree(out)
        return True, f"{type(error).__name__}: {error}"
    if code == 0:
        same = rows_of(out / "data") == expected
        shutil.rmtree(out)
        return False, "" if same else "accepted, but other rows were read"
    left = [path.name for path in out.iterdir()]
    shutil.rmtree(out)
    if left:
        return True, f"left {left}"
    one = code == 2 and err.startswith("mrs data: ") and len(err.strip().splitlines()) == 1
    return True, "" if one else f"exit {code}: {err}"


def test_cut_off_anywhere(archive: Path, expected: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = archive.read_bytes()
    rng = random.Random(1)
    sizes = sorted({0, 1, 10, 18, len(whole) - 9, len(whole) - 8, *rng.sample(range(len(whole) - 20), TRIALS)})
    faults, refusals = [], 0
    for size in sizes:
        refused, wrong = judge(whole[:size], archive, expected, tmp_path, capsys)
        refusals += refused
        if wrong:
            faults.append(f"cut at {size} of {len(whole)}: {wrong}")
    assert not faults, "\n".join(faults)
    assert refusals >= TRIALS  # a cut within the last bytes may cost a check sum alone


def test_a_flipped_bit_anywhere(
    archive: Path, expected: Rows, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = archive.read_bytes()
    rng = random.Random(2)
    faults, refusals = [], 0
    for place in sorted(rng.sample(range(len(whole)), TRIALS)):
        data = bytearray(whole)
        data[place] ^= 1 << rng.randrange(8)
        refused, wrong = judge(bytes(data), archive, expected, tmp_path, capsys)
        refusals += refused
        if wrong:
            faults.append(f"flipped at {place} of {len(whole)}: {wrong}")
    assert not faults, "\n".join(faults)
    assert refusals > TRIALS // 2


def test_what_is_no_archive(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = random.Random(3)
    for data in (b"", b"\0" * 10_240, rng.randbytes(20_000), gzip.compress(b"hello"), b"PK\x03\x04" + bytes(100)):
        source = tmp_path / "mrs.tgz"
        source.write_bytes(data)
        code, err = prepare(source, tmp_path / "data", capsys)
        assert code == 2
        assert len(err.strip().splitlines()) == 1
        assert [path.name for path in tmp_path.iterdir()] == ["mrs.tgz"]
