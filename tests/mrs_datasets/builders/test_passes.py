"""Passes over a prepared folder: one after the other, resumed at every shard, the same files in the end."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from mrs_datasets.builders import passes as running
from mrs_datasets.builders.passes import Rows, ranges, run_passes
from mrs_datasets.builders.pipeline.stages import Advance, Shard, ShardCounts, read_codes, write_array
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.prepared.report import PassEntry, PreparedReport
from mrs_datasets.prepared.writer import rewrite
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location
from tests.dumps import all_bytes, leftovers

LOG: list[str] = []


@dataclass(frozen=True)
class Without:
    """Drops the pairs of Spanish whose message has a letter."""

    name: str
    letter: str
    fails_at: str = ""

    def identity(self) -> dict[str, object]:
        return {"letter": self.letter}

    def require(self, data: PreparedData) -> None:
        if "es" not in data.configs():
            raise InputError(f"{data.name}: no Spanish.")

    def shards(self, data: PreparedData, folder: Location, cache: Path) -> list[Shard]:
        return [
            Shard(rows.name, rows.count, folder / f"{rows.name}.npy", partial(self._do, rows, folder))
            for rows in ranges(data, [("es", "train"), ("es", "test")])
        ]

    def _do(self, rows: Rows, folder: Location, advance: Advance) -> ShardCounts:
        if rows.name == self.fails_at:
            raise KeyboardInterrupt
        LOG.append(f"{self.letter}: {rows.name}")
        held = pc.match_substring(rows.read()["message"], self.letter).to_numpy().astype(np.uint8)
        write_array(folder / f"{rows.name}.npy", held)
        advance(rows.count)
        return {"rows": rows.count, "dropped": int(held.sum())}

    def write(
        self, data: PreparedData, shards: Sequence[Shard], counts: Sequence[ShardCounts], target: Path
    ) -> tuple[PreparedReport, PassEntry]:
        def kept(split: str) -> list[pa.Table]:
            found = []
            for rows, shard in zip(ranges(data, [("es", "train"), ("es", "test")]), shards, strict=True):
                if rows.split == split:
                    codes = read_codes(shard.output, rows.count)
                    found.append(rows.read().filter(pa.array(codes == 0)))
            return found

        changed = {("es", split): partial(kept, split) for split in ("train", "test")}
        report = rewrite(data.folder, target, data.report(), data.record(), changed)  # type: ignore[arg-type]
        came, dropped = (sum(int(found[key]) for found in counts) for key in ("rows", "dropped"))  # type: ignore[call-overload]
        return report, {
            "name": self.name, "in": came, "out": came - dropped, "dropped": {"letter": dropped}, "about": {},
        }  # fmt: skip


@pytest.fixture(autouse=True)
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "ROWS", 37)
    LOG.clear()


def texts(folder: Path, config: str, split: str) -> list[dict[str, str]]:
    rows = [pq.read_table(path) for path in open_prepared(str(folder)).files(config, split)]
    return [] if not rows else list(pa.concat_tables(rows).to_pylist())


def test_passes_run_one_after_the_other_and_leave_the_rest_alone(prepared_sample: Path, tmp_path: Path) -> None:
    report = run_passes(str(prepared_sample), [Without("one", "ñ"), Without("two", "q")], tmp_path / "out")
    for split in ("train", "validation", "test"):
        wanted = texts(prepared_sample, "es", split)
        if split != "validation":
            wanted = [row for row in wanted if not set("ñq") & set(row["message"])]
        assert texts(tmp_path / "out", "es", split) == wanted
    assert texts(tmp_path / "out", "de", "test") == texts(prepared_sample, "de", "test")
    first, second = report["passes"]
    assert first["out"] == second["in"]
    assert second["out"] == sum(len(texts(tmp_path / "out", "es", split)) for split in ("train", "test"))
    written = json.loads((tmp_path / "out/report.json").read_text())
    assert written["passes"][0]["about"]["identity"] == {"letter": "ñ"}
    assert leftovers(tmp_path) == ["out"]


def test_an_interrupted_run_continues_and_does_no_shard_twice(prepared_sample: Path, tmp_path: Path) -> None:
    run_passes(str(prepared_sample), [Without("one", "ñ"), Without("two", "q")], tmp_path / "whole")
    whole = sorted(LOG)
    LOG.clear()
    for first, second in [("es.train.00003", ""), ("", "es.test.00000")]:
        with pytest.raises(KeyboardInterrupt):
            run_passes(
                str(prepared_sample),
                [Without("one", "ñ", first), Without("two", "q", second)],
                tmp_path / "out",
                resume=True,
            )
        assert not (tmp_path / "out").exists()
    with pytest.raises(InputError, match="--resume"):
        run_passes(str(prepared_sample), [Without("one", "ñ"), Without("two", "q")], tmp_path / "out")
    run_passes(str(prepared_sample), [Without("one", "ñ"), Without("two", "q")], tmp_path / "out", resume=True)
    assert all_bytes(tmp_path / "out") == all_bytes(tmp_path / "whole")
    assert sorted(LOG) == whole


def test_a_resumed_run_with_another_setting_or_source_does_not_mix_them(prepared_sample: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        run_passes(str(prepared_sample), [Without("one", "ñ"), Without("two", "q", "es.test.00000")], tmp_path / "out")
    run_passes(str(prepared_sample), [Without("one", "z"), Without("two", "q")], tmp_path / "out", resume=True)
    run_passes(str(prepared_sample), [Without("one", "z"), Without("two", "q")], tmp_path / "whole")
    assert all_bytes(tmp_path / "out") == all_bytes(tmp_path / "whole")
