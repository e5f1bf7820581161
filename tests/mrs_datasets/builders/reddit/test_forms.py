"""Files of another form than a dump are refused by name, before a build begins."""

import bz2
import gzip
import json
import lzma
import os
from pathlib import Path

import pytest
import zstandard

from mrs_datasets.builders.reddit.forms import check_form
from mrs_suggest.common.errors import InputError

COMMENT = {"id": "a", "link_id": "t3_p", "parent_id": "t1_b", "body": "Sure!", "created_utc": 1514764800, "score": 1}
LINE = json.dumps(COMMENT)
POST = json.dumps({"id": "p", "title": "A post", "selftext": "", "created_utc": 1514764800})
PACK = {"plain": bytes, "zst": zstandard.compress, "xz": lzma.compress, "bz2": bz2.compress, "gz": gzip.compress}
POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 12345\n"
OTHER = {
    "array": (f"[{LINE}, {LINE}]", "is one JSON array; a dump has one comment per line, as `jq -c` writes with '.[]'"),
    "array on lines": (f"[\n{LINE},\n{LINE}\n]\n", "is one JSON array"),
    "array with a mark": (f"\ufeff\n [ {LINE}]\n", "is one JSON array"),
    "empty array": ("[]", "is one JSON array"),
    "pointer": (POINTER, "is a pointer of Git LFS in place of the file; run `git lfs pull`"),
    "listing": (f'{{"kind": "Listing", "data": {{"children": [{LINE}]}}}}', "is an answer of an API"),
    "things": (f'{{"kind": "t1", "data": {LINE}}}\n' * 3, "is an answer of an API"),
    "Pushshift": (f'{{"data": [{LINE},\n{LINE}], "error": null}}', "is an answer of an API"),
    "submissions": (f"{POST}\n{POST}\n", "has submissions, not comments; pass the dumps of comments (RC_*)"),
}


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize(("text", "words"), OTHER.values(), ids=OTHER)
def test_other_forms_are_refused_by_name_in_any_packing(tmp_path: Path, packing: str, text: str, words: str) -> None:
    path = tmp_path / "RC_2018-01"
    path.write_bytes(PACK[packing](text.encode()))
    with pytest.raises(InputError) as caught:
        check_form(path)
    assert str(caught.value).startswith(f"{path}: {words}")
    assert "\n" not in str(caught.value)


def test_blocks_of_zstd_are_refused_by_name_or_contents(tmp_path: Path) -> None:
    frame = zstandard.compress(LINE.encode())
    for name, content in (("RC_1.zst_blocks", bytes(99)), ("RC_1.zst", len(frame).to_bytes(4, "little") + frame)):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=f"{name}: has the format zst_blocks, which is not read"):
            check_form(tmp_path / name)


@pytest.mark.parametrize("packing", PACK)
@pytest.mark.parametrize(
    "text",
    [
        LINE,
        f"{LINE}\r{LINE}\r",
        f"garbage\n{LINE}\n",
        f"{POST}\n{LINE}\n",
        json.dumps({"data": 3} | COMMENT),
        json.dumps({"kind": "comment"} | COMMENT),
        json.dumps(COMMENT | {"body": '"title": "a"'}),
        json.dumps({"title": "of the post"} | COMMENT),
        "",
    ],
)
def test_dumps_and_what_reading_reports_pass(tmp_path: Path, packing: str, text: str) -> None:
    path = tmp_path / "RC_2018-01"
    path.write_bytes(PACK[packing](text.encode()))
    assert (check_form(path) > 0) == (packing == "zst" and len(text) > 0)
    if POST not in text and "title" not in text:
        os.truncate(path, path.stat().st_size // 2)
        check_form(path)
