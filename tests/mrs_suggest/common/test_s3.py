"""S3 as a storage: what it refuses is one sentence with its reason, and no secret; a changed object is refused."""

from collections.abc import Callable
from pathlib import Path

import pytest

from mrs_suggest.common.errors import InputError, RemoteError
from mrs_suggest.common.io.remote import RemotePath
from mrs_suggest.common.io.storage import find_files, location, open_arrow, open_stream, require_writable, write_text
from tests.cases import cases
from tests.s3_server import S3, SECRET, refusing

ASKING: list[Callable[[], object]] = [
    lambda: find_files("s3://texts/dumps/RC_2018-01.zst"),
    lambda: find_files("s3://texts/dumps/RC_*"),
    lambda: location("s3://texts/dumps/RC_1").read_text(),
    lambda: open_stream(location("s3://texts/dumps/RC_1")),
    lambda: write_text(location("s3://texts/mrs/report.json"), "{}"),
]


@pytest.mark.parametrize(("status", "code", "words"), cases(__file__, "test_a_refusal_is_told_in_words"))
def test_a_refusal_is_told_in_words(monkeypatch: pytest.MonkeyPatch, status: int, code: str, words: str) -> None:
    with refusing(monkeypatch, status, code):
        for ask in ASKING:
            with pytest.raises((InputError, RemoteError), match=words) as told:
                ask()
            assert SECRET not in f"{told.value} {getattr(told.value, 'filename', '')}"


def test_no_credentials_are_told_of(s3: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for ask in ASKING:
        with pytest.raises((InputError, RemoteError), match="credentials .* are missing or incomplete"):
            ask()
    with pytest.raises(InputError, match="missing or incomplete"):
        require_writable(location("s3://texts/mrs"))
    with refusing(monkeypatch, 403, "AccessDenied"):
        require_writable(location("s3://texts/mrs"))  # only writing can tell


def test_an_object_that_changed_is_refused(s3: S3, tmp_path: Path) -> None:
    s3.files.pipe_file("texts/RC_1", bytes(12 << 20))
    path = location("s3://texts/RC_1", tmp_path)
    assert isinstance(path, RemotePath)
    with open_stream(path) as file, open_arrow(path) as places:
        assert file.read(10) == places.read(10) == bytes(10)
        s3.files.pipe_file("texts/RC_1", b"\1" * (12 << 20))
        with pytest.raises(RemoteError, match="the file changed while it was read"):
            file.read()
        places.seek(9 << 20)
        with pytest.raises(RemoteError, match="the file changed while it was read"):
            places.read(10)
    with open_stream(path) as file:
        assert file.read() == b"\1" * (12 << 20)
