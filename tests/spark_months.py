"""What the tests of a build on Spark share: months with every kind of dirt, and what two data sets have in common."""

import json
import os
import shutil
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests.dumps import parquet_bytes, read_report, write_months

MONTHS = ("2018-01", "2018-02", "2018-03", "2018-04")
SETTINGS = ("spark.ui.enabled=false",)
BUCKETS = 5


def require_spark() -> None:
    """Skip the test where Spark cannot run."""
    pytest.importorskip("pyspark")
    if not shutil.which(
        "java", path=os.path.join(os.environ["JAVA_HOME"], "bin") if "JAVA_HOME" in os.environ else None
    ):
        pytest.skip("needs Java (Debian: default-jre-headless)")


def write_dirty_months(folder: Path, comments: int) -> Path:
    """The generator's months, which have its kinds of dirt; then one that ends early, one with a frame that does not
    match its checksum, one with a frame of copies (the same ids, and others in other threads, with small changes), and
    one with answers in a circle.
    """
    write_months(folder, comments, months=MONTHS)
    ends_early, altered, copied, circular = (folder / f"RC_{month}.zst" for month in MONTHS)
    ends_early.write_bytes(ends_early.read_bytes()[:-2000])
    lines = _lines(copied)
    _add_frame(altered, lines[:200], break_checksum=True)
    _add_frame(altered, [{**line, "id": f"w{line['id']}"} for line in lines[200:400]])
    _add_frame(copied, [*lines[:50], *_copies(lines)])
    circle = [
        {**line, "id": f"c{place}", "parent_id": f"t1_c{(place + 1) % 6}"} for place, line in enumerate(lines[:6])
    ]
    _add_frame(circular, [{**line, "link_id": "t3_circle"} for line in circle])
    return folder


def _lines(path: Path) -> list[dict[str, Any]]:
    content = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(path.read_bytes()).read()
    found = []
    for line in content.decode("utf-8", "replace").splitlines():
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return [line for line in found if isinstance(line, dict) and isinstance(line.get("body"), str) and "id" in line]


def _copies(lines: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Long pairs again, in threads of their own: equal, with other punctuation, and with a letter more."""
    by_id = {line["id"]: line for line in lines}
    pairs = [
        (by_id[parent], line)
        for line in lines
        if (parent := str(line.get("parent_id")).removeprefix("t1_")) in by_id
        and min(len(line["body"]), len(by_id[parent]["body"])) > 80
    ]
    copies = []
    for number, (message, reply) in enumerate(islice(pairs, 60)):
        for copy, end in enumerate(("", "!!", "x", "xy")):
            own, thread = f"d{number}x{copy}", f"t3_d{number}x{copy}"
            copies.append({**message, "id": own, "link_id": thread, "parent_id": thread, "body": message["body"] + end})
            answer = {"id": f"{own}r", "link_id": thread, "parent_id": f"t1_{own}", "body": reply["body"] + end}
            copies.append({**reply, **answer})
    assert len(copies) > 200
    return copies


def _add_frame(path: Path, lines: list[dict[str, Any]], break_checksum: bool = False) -> None:
    content = "".join(json.dumps(line) + "\n" for line in lines).encode()
    frame = bytearray(zstandard.ZstdCompressor(level=3, write_checksum=True).compress(content))
    if break_checksum:
        frame[-1] ^= 1
    with path.open("ab") as file:
        file.write(frame)


def assert_equal(folder: Path, local: Path) -> None:
    """The same data set: the same bytes, but for the engine that the report names."""
    assert parquet_bytes(folder) == parquet_bytes(local)
    report = read_report(folder)
    assert report["pipeline"].pop("engine").keys() == {"spark", "pyspark", "java"}
    assert report == read_report(local)
    assert (folder / "README.md").read_bytes() == (local / "README.md").read_bytes()
    assert {path.name for path in folder.iterdir()} == {path.name for path in local.iterdir()}
