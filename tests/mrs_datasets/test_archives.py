"""Archives as sources: what is unpacked is what was packed, and what could do harm is refused before it is written."""

import errno
import io
import json
import stat
import struct
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mrs_datasets.prepared import prepare as prepare_module
from mrs_datasets.readers import archives
from mrs_datasets.readers.archives import unpacked
from mrs_suggest.cli.main import main
from mrs_suggest.common.errors import InputError

Files = dict[str, bytes]
Members = Iterable[tuple[str, bytes]]
TARS = {"tar": "w", "tgz": "w:gz", "tar.xz": "w:xz", "tar.bz2": "w:bz2"}
KINDS = [*TARS, "zip"]
BOTH = ["tar", "zip"]
MIB = 1 << 20
FILES = {
    "mrs/train/en/a.tsv": b"Hi\tHello\n" * 2000,
    "mrs/train/ja/明日.tsv": "明日は?\tはい\n".encode(),
    "mrs/valid/en/größe é.tsv": bytes(range(256)),
    "mrs/empty.tsv": b"",
}
BULK = {"mrs/large.tsv": b"Hi\tHello\n" * 20_000} | {f"mrs/{n}.tsv": b"" for n in range(300)}  # many headers


def tar_member(name: str, data: bytes = b"", kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.type, member.linkname = len(data), kind, link
    return member


def tar_block(name: str, kind: bytes, size: int) -> bytes:
    """A header alone, whatever it announces."""
    member = tar_member(name, kind=kind)
    member.size = size
    return member.tobuf(tarfile.GNU_FORMAT)


def zip_member(name: str, mode: int = 0) -> zipfile.ZipInfo:
    member = zipfile.ZipInfo(name)
    member.compress_type, member.external_attr = zipfile.ZIP_DEFLATED, mode << 16
    return member


def pack(kind: str, members: Members) -> bytes:
    """An archive of files; a name that ends in `/` is a folder."""
    buffer = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, data in members:
                archive.writestr(zip_member(name), data)
    else:
        with tarfile.open(fileobj=buffer, mode=TARS[kind]) as tar:
            for name, data in members:
                is_folder = name.endswith("/")
                member = tar_member(name, data, tarfile.DIRTYPE if is_folder else tarfile.REGTYPE)
                tar.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def read(folder: Path) -> Files:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def beside(tmp_path: Path) -> Path:
    """Return the folder to unpack in, with a file that must survive."""
    folder = tmp_path / "beside"
    folder.mkdir()
    (folder / "mine.txt").write_text("mine")
    return folder


@pytest.fixture
def refusal(beside: Path) -> Callable[..., str]:
    """Return a function that returns the sentence about an archive, and looks that nothing else happened."""

    def look(data: bytes, **limits: Any) -> str:
        archive = beside.parent / "source.bin"  # the name tells nothing
        archive.write_bytes(data)
        with pytest.raises(InputError) as caught, unpacked(archive, beside, **limits):
            pytest.fail("it was unpacked")
        sentence = str(caught.value)
        assert sentence.startswith(f"{archive}: ")
        assert sentence.endswith(".")
        assert "\n" not in sentence
        assert read(beside.parent) == {"source.bin": data, "beside/mine.txt": b"mine"}
        assert [path.name for path in beside.iterdir()] == ["mine.txt"]
        return sentence

    return look


def forbid_writing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        pytest.fail("something is written")

    monkeypatch.setattr(archives, "_write", fail)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_was_packed_is_unpacked_and_goes_away(kind: str, beside: Path) -> None:
    archive = beside.parent / "source"
    folders = {"mrs/": b"", "mrs/none/": b""}
    archive.write_bytes(pack(kind, [*folders.items(), *FILES.items(), *BULK.items(), *folders.items()]))
    with unpacked(archive, beside) as folder:
        assert folder.parent == beside
        assert read(folder) == FILES | BULK
        assert (folder / "mrs" / "none").is_dir()
        (folder / "mrs" / "new.txt").write_text("a reader's own")
    assert [path.name for path in beside.iterdir()] == ["mine.txt"]


def test_archives_as_services_and_systems_make_them_are_read(beside: Path) -> None:
    archive = beside.parent / "source"
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT, pax_headers={"comment": "a commit"}) as tar:
        tar.addfile(tar_member("./", kind=tarfile.DIRTYPE))
        tar.addfile(tar_member("./" + "long/" * 40 + "name", b"x"), io.BytesIO(b"x"))
    with unpacked(archive, beside) as folder:
        assert read(folder) == {"long/" * 40 + "name": b"x"}
    with zipfile.ZipFile(archive, "w") as made:
        made.comment = b"a commit"
        made.writestr(zip_member("mrs\\train\\"), b"")
        made.writestr(zip_member("mrs\\train\\a.tsv", stat.S_IFREG | 0o444), b"x")
    with unpacked(archive, beside) as folder:
        assert read(folder) == {"mrs/train/a.tsv": b"x"}
    assert [path.name for path in beside.iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "name",
    ["/a", "\\a", "//server/a", "..", "../a", "m/../../a", "m/../a", "m\\..\\..\\a", "..\\a", "C:/a", "c:\\a", "m/D:a",
     "a/" * 64 + "a", "."],
)  # fmt: skip
def test_a_name_that_points_outside_is_refused(kind: str, name: str, refusal) -> None:
    sentence = refusal(pack(kind, [("good", b"x"), (name, b"evil")]))
    assert "unsafe" in sentence
    assert repr(name)[:90] in sentence


@pytest.mark.parametrize(
    ("kind", "mode", "words"),
    [
        (tarfile.SYMTYPE, stat.S_IFLNK, "symbolic link"),
        (tarfile.LNKTYPE, None, "hard link"),
        (tarfile.CHRTYPE, stat.S_IFCHR, "device"),
        (tarfile.BLKTYPE, stat.S_IFBLK, "device"),
        (tarfile.FIFOTYPE, stat.S_IFIFO, "pipe"),
        (b"V", None, "not a file or folder"),
    ],
)
def test_a_member_that_is_not_a_file_is_refused(kind: bytes, mode: int | None, words: str, refusal) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        tar.addfile(tar_member("good", b"x"), io.BytesIO(b"x"))
        tar.addfile(tar_member("odd", kind=kind, link="good"))
    archives_with_it = [buffer.getvalue()]
    if mode is not None:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            archive.writestr(zip_member("odd", mode | 0o777), b"../../secret")
        archives_with_it.append(buffer.getvalue())
    for data in archives_with_it:
        assert "the member 'odd' is unsafe (" in (sentence := refusal(data))
        assert words in sentence


@pytest.mark.parametrize(
    ("headers", "words"), [({"path": "a\0é"}, "null character"), ({"path": "../é"}, "parent folder")]
)
def test_what_a_pax_header_says_is_checked_too(headers: dict[str, str], words: str, refusal) -> None:
    member = tar_member("a")
    member.pax_headers = headers
    assert words in refusal(member.tobuf(tarfile.PAX_FORMAT) + bytes(1024))


def test_a_sparse_file_is_refused(refusal) -> None:
    header = bytearray(tar_block("holes", tarfile.GNUTYPE_SPARSE, 0))
    header[386:410] = b"00000000000\0" * 2  # offset and length of the first part
    header[483:495] = b"00000000010\0"  # the size with the holes
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    assert "'holes' is unsafe (a sparse file)" in refusal(bytes(header) + bytes(1024))


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize(
    "names", [("a", "a"), ("m/a", "m//a"), ("m/a", "./m/a"), ("m/a", "m\\a"), ("a", "a/b"), ("a/b", "a"), ("a/", "a")]
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_members_that_overwrite_each_other_are_refused(kind: str, names: tuple[str, str], refusal) -> None:
    sentence = refusal(pack(kind, [(name, b"") for name in names]))
    assert f"{names[1]!r} is unsafe (another member has its path)" in sentence


@example("tar", ["a/\0"])
@example("zip", ["a/\0"])
@given(st.sampled_from(BOTH), st.lists(st.text("ab/.\\:é\n\0", max_size=8), min_size=1, max_size=4))
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_any_names_are_refused_or_every_file_is_there(kind: str, names: list[str]) -> None:
    data = [b"%d" % n for n in range(len(names))]
    if kind == "tar":  # the header has a field for what a member is
        is_folder = [name.endswith("/") for name in names]
    else:  # the end of its name tells; a null character ends it
        is_folder = [name.split("\0")[0].endswith(("/", "\\")) for name in names]
    with tempfile.TemporaryDirectory() as root:
        beside, archive = Path(root, "beside"), Path(root, "source")
        beside.mkdir()
        archive.write_bytes(pack(kind, zip(names, data, strict=True)))
        with suppress(InputError), unpacked(archive, beside) as folder:
            files = [text for text, skip in zip(data, is_folder, strict=True) if not skip]
            assert sorted(read(folder).values()) == files
            assert [path.name for path in beside.iterdir()] == ["unpacked"]
        assert sorted(Path(root).rglob("*")) == [beside, archive]


def patched(data: bytes, **fields: int) -> bytes:
    """A zip archive of one member, with other values in both its headers (APPNOTE 4.3.7 and 4.3.12)."""
    places = {"flags": (6, 8, "<H"), "method": (8, 10, "<H"), "crc": (14, 16, "<L"), "size": (22, 24, "<L")}
    changed = bytearray(data)
    starts = 0, data.rindex(b"PK\x01\x02")
    for field, value in fields.items():
        for start, place in zip(starts, places[field][:2], strict=True):
            struct.pack_into(places[field][2], changed, start + place, value)
    return bytes(changed)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"flags": 0x1}, "encrypted (member 'a.tsv')"),
        ({"flags": 0x41}, "encrypted (member 'a.tsv')"),
        *(({"method": method}, f"'a.tsv' is compressed by method {method}") for method in (9, 12, 14)),
    ],
)
def test_a_zip_that_is_encrypted_or_packed_by_another_method_is_refused(fields, words: str, refusal) -> None:
    assert words in refusal(patched(pack("zip", [("a.tsv", b"x")]), **fields))


@pytest.mark.parametrize("size", [0, 99, 101, 5000])
@pytest.mark.parametrize("held", [-1, 0, 1], ids=["crc of the whole", "crc of the declared", "crc of one more"])
def test_a_zip_member_is_as_long_as_declared_and_has_its_checksum(size: int, held: int, refusal) -> None:
    data = bytes(range(100))
    crc = zlib.crc32(data if held < 0 else data[: size + held])
    sentence = refusal(patched(pack("zip", [("a.tsv", data)]), size=size, crc=crc))
    assert "damaged" in sentence
    assert "'a.tsv'" in sentence


def test_a_zip_that_lists_fewer_members_than_it_announces_is_refused(refusal) -> None:
    data = bytearray(pack("zip", [("a", b"1"), ("b", b"2"), ("c", b"3")]))
    at = data.index(b"PK\x01\x02")
    struct.pack_into("<H", data, at + 32, 47)  # the first entry's comment takes in the second entry
    assert "declares 3" in refusal(bytes(data))


@pytest.mark.parametrize("kind", KINDS)
def test_a_bomb_is_refused_before_anything_is_written(kind: str, refusal, monkeypatch) -> None:
    forbid_writing(monkeypatch)
    data = pack(kind, [("small", b"x"), ("zeros", bytes(50 * MIB)), ("more", b"x")])
    assert "unpacks to more than 1 MiB, the limit for this data set; unpack it yourself" in refusal(data, max_bytes=MIB)
    parts = pack(kind, [(f"part{n}", bytes(300 * 1024)) for n in range(4)])
    assert "more than 1 MiB" in refusal(parts, max_bytes=MIB)


def gzipped(*parts: bytes) -> bytes:
    compressor = zlib.compressobj(1, wbits=31)
    return b"".join(compressor.compress(part) for part in parts) + compressor.flush()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (gzipped(tar_block("a", tarfile.REGTYPE, 0), bytes(1024), *repeat(bytes(MIB), 50)), "more than 1 MiB"),
        (gzipped(tar_block("a", tarfile.XHDTYPE, 50 * MIB), *repeat(bytes(MIB), 50)), "header is longer"),
        (gzipped(tar_block("a", tarfile.GNUTYPE_LONGNAME, 50 * MIB), *repeat(bytes(MIB), 50)), "header is longer"),
        (gzipped(*repeat(tar_block("a", tarfile.GNUTYPE_LONGNAME, 0), 5000)), "header is longer"),
        (gzipped(tar_block("a", tarfile.REGTYPE, -512), bytes(1024)), "negative"),
        (gzipped(tar_block("a", tarfile.DIRTYPE, -512), bytes(1024)), "negative"),
        (gzipped(tar_block("a", tarfile.GNUTYPE_LONGNAME, -1024), *repeat(bytes(MIB), 50)), "header is longer"),
    ],
)
def test_a_bomb_outside_the_files_is_refused(data: bytes, words: str, refusal, monkeypatch) -> None:
    forbid_writing(monkeypatch)
    assert words in refusal(data, max_bytes=MIB)


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_too_many_members_are_refused(kind: str, beside: Path, refusal, monkeypatch) -> None:
    monkeypatch.setattr(archives, "MAX_MEMBERS", 10)
    for good in ([(f"{n}", b"") for n in range(10)], [("a/b/c/d/", b""), ("a/b/c/d/e/f/g/h/i/j", b"")]):
        (beside.parent / "source.bin").write_bytes(pack(kind, good))
        with unpacked(beside.parent / "source.bin", beside):
            pass
    for bad in ([(f"{n}", b"") for n in range(11)], [("a/", b"")] * 11, [("a/b/c/d/e/f/g/h/i/j/k", b"")]):
        assert "more than 10 files and folders" in refusal(pack(kind, bad))


@pytest.mark.parametrize("kind", KINDS)
def test_a_cut_off_archive_is_refused_wherever_the_cut_is(kind: str, refusal) -> None:
    whole = pack(kind, FILES.items())
    for size in range(0, len(whole.rstrip(b"\0")), 1024 if kind == "tar" else max(1, len(whole) // 30)):
        assert "damaged or truncated" in refusal(whole[:size])


def test_a_broken_header_does_not_hide_the_members_after_it(refusal) -> None:
    whole = bytearray(pack("tar", [("a", b"1"), ("b", b"2"), ("c", b"3")]))
    whole[1024] ^= 1
    assert "damaged or truncated" in refusal(bytes(whole))


@pytest.mark.parametrize("kind", ["tgz", "tar.xz", "tar.bz2", "zip"])
def test_a_changed_bit_is_refused_or_changes_nothing(kind: str, beside: Path) -> None:
    whole = pack(kind, FILES.items())
    archive = beside.parent / "source"
    refused = 0
    step = max(1, len(whole) // 200)
    for place in range(0, len(whole), step):
        changed = bytearray(whole)
        changed[place] ^= 1 << place % 8
        archive.write_bytes(changed)
        try:
            with unpacked(archive, beside) as folder:
                assert read(folder) == FILES, f"byte {place} of {len(whole)}"
        except InputError:
            refused += 1
    assert refused > len(whole) // step // 2


@pytest.mark.parametrize(
    "data",
    [b"", b"P", b"Hi\tHello\n" * 200, gzipped(b"Hi\tHello\n" * 200), b"PK\x03\x04" + bytes(100), b"Rar!\x1a\x07\x01\0",
     b"BZh9" + bytes(50), b"\xfd7zXZ\0" + bytes(50), b"\x1f\x8b" + bytes(50), bytes(range(256)) * 8],
    ids=["empty", "a byte", "text", "compressed text", "zip", "rar", "bzip2", "xz", "gzip", "noise"],
)  # fmt: skip
def test_what_is_no_archive_is_refused(data: bytes, refusal) -> None:
    assert "not a tar or zip archive, or damaged or truncated (" in refusal(data)


@pytest.mark.parametrize("kind", BOTH)
def test_what_does_not_fit_is_refused(kind: str, refusal, monkeypatch) -> None:
    monkeypatch.setattr(archives.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 1999}))
    assert "needs 2,000 bytes of disk next to --out, 1,999 are free" in refusal(pack(kind, [("a", bytes(2000))]))


def test_a_folder_that_is_in_the_way_is_left_alone(beside: Path) -> None:
    archive = beside.parent / "source"
    archive.write_bytes(pack("zip", FILES.items()))
    (beside / "unpacked").mkdir()
    (beside / "unpacked" / "theirs").touch()
    with pytest.raises(InputError, match="cannot unpack the archive"), unpacked(archive, beside):
        pass
    assert (beside / "unpacked" / "theirs").exists()


@pytest.mark.parametrize("kind", BOTH)
def test_the_limit_itself_is_allowed_and_an_error_inside_the_block_passes(kind: str, beside: Path) -> None:
    archive = beside.parent / "source"
    archive.write_bytes(pack(kind, [("a", bytes(1000)), ("b", bytes(24))]))
    with pytest.raises(ValueError, match="a bug"), unpacked(archive, beside, max_bytes=1024) as folder:
        assert len(read(folder)) == 2
        raise ValueError("a bug")
    assert [path.name for path in beside.iterdir()] == ["mine.txt"]
    with pytest.raises(InputError, match="more than 1,023 bytes"), unpacked(archive, beside, max_bytes=1023):
        pass


@pytest.mark.parametrize("kind", BOTH)
def test_a_full_disk_leaves_nothing(kind: str, refusal, monkeypatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(archives, "_write", full)
    assert "cannot unpack the archive (No space left on device)" in refusal(pack(kind, FILES.items()))


# A data set from an archive, through the command.
ROW = {"premise": "P.", "choice1": "A.", "choice2": "B.", "question": "cause", "label": 1, "idx": 0, "changed": False}
VALIDATION = "xcopa-master/data/qu/val.qu.jsonl"
XCOPA = {VALIDATION: json.dumps(ROW) + "\n", VALIDATION.replace("val", "test"): json.dumps(ROW) + "\n"}


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({**XCOPA, VALIDATION: json.dumps({**ROW, "label": 2})}, f"x.zip/{VALIDATION}, line 1: expected 'label' to be"),
        ({**XCOPA, "a/../../above.txt": ""}, "a/../../above.txt"),
        ({**XCOPA, "zeros": "0" * ((1 << 20) + 1)}, "1 MiB"),
        ({"inner/data.tar.gz": "x"}, "contains another archive (inner/data.tar.gz)"),
        ({"a.txt": "x"}, "neither XCOPA's folder"),
    ],
    ids=["a broken row", "a path above", "a bomb", "an archive in an archive", "another data set"],
)
def test_a_bad_archive_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch, files: dict[str, str], words: str
) -> None:
    # a limit of 1 MiB in place of 1 GiB
    monkeypatch.setattr(prepare_module, "unpacked", lambda archive, place, size: unpacked(archive, place, size >> 10))
    source = tmp_path / "x.zip"
    source.write_bytes(pack("zip", [(name, text.encode()) for name, text in files.items()]))
    assert main(["data", "prepare", "xcopa", "--source", str(source), "--out", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert words in err
    assert [path.name for path in tmp_path.iterdir()] == ["x.zip"]
