"""`mrs data build` without language identification against a DuckDB build of the same rules; masks and cleaning.

Workload: synthetic dumps (`mrs data synth`): 2 months of 400,000 lines of about 1 KB, seeded. Profile `paper`, one
worker, 8 buckets. DuckDB reads copies of the dumps that were recompressed outside of the time, since it refuses the
window of the published ones; it runs on one thread in one process, with all of the memory that it asks for. The runs
take turns, each in a process of its own with imports outside of the time; ratios are of the medians of CPU-seconds,
user and system, of the process and its children.

build      dumps to Parquet: splits and response set. Language identification is replaced by "en" for every text; all
           else of the build is there: checks of lines, masks, order, checksums, files to resume from, report. DuckDB:
           `read_json`, filters, repeated ids, the join, splits by a hash and the response set in SQL; no checks, no
           order; once with the masks' usual cases as nine `regexp_replace` (which mask less, and other things too),
           once without masks. Without them the pairs must be the same, after masking them outside of the time; with
           them, as many.
masks      microseconds a pair to mask both texts of a table of pairs, and to clean them (`clean_pairs`), beside the
           functions for one text that define both, called text by text: their results must be equal. The texts: pairs
           of the synthetic dumps, and files of `message, tab, reply` in the folder that is named (`\\n`: a line break).

Run: python benchmarks/bench_build_rivals.py [--comments N] [--runs N] [--folder DIR] [--texts DIR]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import statistics
import tempfile
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from bench_build import BUCKETS, MB, _load_libraries, fresh, measured, prepare, zstandard_alone

RESULT = Path(__file__).resolve().parent / "results" / "bench_build_rivals.json"
MOST_PAIRS = 20_000  # of a file of texts
TARGETS = {"build": 1.5, "masks, us a pair": 15.0, "cleaning, us a pair": 40.0}

DUCKDB = """
CREATE TABLE comments AS
SELECT id, parent_id, link_id, body, to_timestamp(created_utc)::TIMESTAMP AS created
FROM read_json($dumps, format = 'newline_delimited', ignore_errors = true, maximum_object_size = 16777216, columns = {
    id: 'VARCHAR', parent_id: 'VARCHAR', link_id: 'VARCHAR', body: 'VARCHAR', score: 'DOUBLE', created_utc: 'DOUBLE',
    _meta: 'STRUCT(was_deleted_later BOOLEAN)'})
WHERE id IS NOT NULL AND link_id IS NOT NULL AND body IS NOT NULL AND created_utc IS NOT NULL
    AND NOT starts_with(body, '[removed]') AND NOT starts_with(body, '[deleted]')
    AND NOT starts_with(body, '[ Removed by Reddit ]')
    AND NOT coalesce(_meta.was_deleted_later, false)
    AND coalesce(score, 1) >= 1
    AND length(trim(body, E' \\t\\r\\n' || chr(160) || chr(12288))) > 0;

CREATE TABLE single AS
SELECT * FROM comments QUALIFY row_number() OVER (PARTITION BY link_id, id ORDER BY created) = 1;
DROP TABLE comments;

CREATE TABLE pairs AS
SELECT MASK(message.body) AS message, MASK(reply.body) AS reply, hash(reply.id) % 10 AS tenth
FROM single AS reply
JOIN single AS message ON message.link_id = reply.link_id AND message.id = reply.parent_id[4:]
WHERE starts_with(reply.parent_id, 't1_') AND reply.id <> message.id
    AND NOT (starts_with(message.parent_id, 't1_') AND message.parent_id[4:] = reply.id);
DROP TABLE single;

COPY (SELECT message, reply FROM pairs WHERE tenth < 8) TO $train (FORMAT parquet, COMPRESSION zstd);
COPY (SELECT message, reply FROM pairs WHERE tenth = 8) TO $validation (FORMAT parquet, COMPRESSION zstd);
COPY (SELECT message, reply FROM pairs WHERE tenth = 9) TO $test (FORMAT parquet, COMPRESSION zstd);
COPY (
    SELECT min(reply) AS text, count(*) AS count FROM pairs
    GROUP BY trim(regexp_replace(lower(nfc_normalize(reply)), '\\s+', ' ', 'g'))
    HAVING count(*) >= 20 ORDER BY count DESC, text LIMIT 50000
) TO $responses (FORMAT parquet, COMPRESSION zstd);
"""
# The masks' usual cases, in an expression that RE2 can do: no look-around, no exceptions, no hidden slashes.
SQL_MASKS = (
    (r"(?i)(?:https?|ftp)://[^\s<>]*[^\s<>.,:;!?'*_~)\]]", "<url>"),
    (r"(?i)\bwww[0-9]?\.[^\s<>]*[^\s<>.,:;!?'*_~)\]]", "<url>"),
    (r"(?i)/?\b(?:r/[a-z0-9_]+/)?comments/[^\s<>]+", "<url>"),
    (r"(?i)/?\b(?:u|user)/[a-z0-9_-]+", "<user>"),
    (r"\bt[1-6]_[a-z0-9]{5,10}\b", "<url>"),
    (r"(?i)[a-z0-9.!#$%&'+/=?_{|}~-]+@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]{2,}", "<email>"),
    (r"(?:\+|\b00)[1-9][0-9]{0,2}(?:[ .\-/]?\(?[0-9]{1,12}\)?){2,6}", "<phone>"),
    (r"\(?\b[2-9][0-9]{2}\)?[-. ][0-9]{3}[-. ][0-9]{4}\b", "<phone>"),
    (r"\b(?:[0-9]{1,3}\.){3}[0-9]{1,3}\b", "<ip>"),
)


# --- The builds -----------------------------------------------------------------------------------------------------


class AllEnglish:
    """Identifies nothing."""

    def identify(self, texts: Sequence[str], /) -> list[tuple[str, float]]:
        return [("en", 1.0)] * len(texts)


def our_build(dumps: Sequence[Path], model: Path) -> dict[str, Any]:
    """The whole build; a digest of its pairs."""
    from mrs_datasets.builders.reddit import pairs as pairs_stage
    from mrs_datasets.builders.reddit.build import build
    from mrs_datasets.builders.reddit.plan import make_build_plan, make_settings

    _load_libraries()
    pairs_stage._identifier = lambda _: AllEnglish()  # type: ignore[assignment]
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=dumps[0].parent) as folder:
        out = Path(folder) / "mrs"
        plan = make_build_plan(dumps, out, 1, 8_000_000_000, BUCKETS)
        settings = make_settings("paper", min_examples=500)
        with measured(found):
            build(plan, out, settings, model, say=lambda _: None)
        pairs = sorted((out / "data" / "en").glob("*.parquet"))
        return {**found, **digest(pairs, masked=True)}


def duckdb_build(dumps: Sequence[Path], masks: bool) -> dict[str, Any]:
    """The same in SQL, with `SQL_MASKS` or without any."""
    import duckdb

    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=dumps[0].parent) as folder:
        names = ("train", "validation", "test", "responses")
        values = {name: str(Path(folder) / f"{name}.parquet") for name in names}
        with measured(found), duckdb.connect(config={"threads": 1, "preserve_insertion_order": False}) as connection:
            masked = "text"
            for pattern, mask in SQL_MASKS if masks else ():
                masked = f"regexp_replace({masked}, {_sql(pattern)}, {_sql(mask)}, 'g')"
            query = f"CREATE MACRO MASK(text) AS {masked};" + DUCKDB
            query = query.replace("$dumps", repr([str(path) for path in dumps]))
            for name, value in values.items():
                query = query.replace(f"${name}", repr(value))
            connection.execute(query)
        files = [Path(values[name]) for name in names[:3]]
        return {**found, **(_rows(files) if masks else digest(files, masked=False))}


def _sql(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _rows(files: Sequence[Path]) -> dict[str, Any]:
    import pyarrow.parquet as pq

    return {"pairs": sum(pq.read_metadata(path).num_rows for path in files)}


def digest(files: Sequence[Path], masked: bool) -> dict[str, Any]:
    """The number of pairs, and a digest of them, masked, in any order."""
    import pyarrow.parquet as pq

    from mrs_suggest.common.text.masks import mask

    keys = []
    for path in files:
        table = pq.read_table(path)
        for message, reply in zip(table["message"].to_pylist(), table["reply"].to_pylist(), strict=True):
            sides = (message, reply) if masked else (mask(message), mask(reply))
            keys.append(hashlib.md5("\0".join(sides).encode()).digest())
    return {"pairs": len(keys), "digest": hashlib.md5(b"".join(sorted(keys))).hexdigest()}


def recompress(source: Path, target: Path) -> dict[str, Any]:
    """Write a copy of a dump with a window that every decoder accepts."""
    import zstandard

    with source.open("rb") as read, target.open("wb") as write:
        content = zstandard.ZstdDecompressor(max_window_size=1 << 31).stream_reader(read)
        zstandard.ZstdCompressor(level=3).copy_stream(content, write)
    return {"bytes": target.stat().st_size}


# --- Masks and cleaning ---------------------------------------------------------------------------------------------


def texts(pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Microseconds a pair to mask and to clean, as the build does it and text by text."""
    import pyarrow as pa

    from mrs_datasets.builders.reddit.clean import ALL, MAX_PASSES, _steps, clean_pairs
    from mrs_datasets.builders.reddit.pairs import mask_pairs
    from mrs_suggest.common.text.masks import mask

    _load_libraries()
    messages, replies = zip(*pairs, strict=True)
    table = pa.table({"message": messages, "reply": replies, "language": ["en"] * len(pairs)})
    both = [text for pair in pairs for text in pair]

    def clean_text(text: str) -> str:
        for _ in range(MAX_PASSES):
            before = text
            for step in (step for steps, _ in _steps(ALL) for step in steps):
                text = step.change(text)
            if text == before:
                return text
        return ""

    jobs: dict[str, Callable[[], Any]] = {
        "masks": lambda: mask_pairs(table),
        "cleaning": lambda: clean_pairs(table),
        "masks, text by text": lambda: [mask(text) for text in both],
        "cleaning, text by text": lambda: [clean_text(text) for text in both],
    }
    best: dict[str, float] = {}
    results: dict[str, Any] = {}
    clean_text("naïve")  # loads ftfy
    for _ in range(3):
        for name, job in jobs.items():
            found: dict[str, Any] = {}
            with measured(found):
                results[name] = job()
            best[name] = min(best.get(name, 1e9), found["precise"] * 1e6 / len(pairs))
    masked = results["masks"]
    found_texts = [
        text for pair in zip(masked["message"].to_pylist(), masked["reply"].to_pylist(), strict=True) for text in pair
    ]
    if found_texts != results["masks, text by text"]:
        raise AssertionError("Masks of a column differ from those of its texts.")
    cleaned = set(results["cleaning, text by text"])
    kept = results["cleaning"][0]
    if not cleaned.issuperset(kept["message"].to_pylist() + kept["reply"].to_pylist()):
        raise AssertionError("Cleaned texts of a column differ from those of its texts.")
    return {"pairs": len(pairs), **{name: round(value, 1) for name, value in best.items()}}


def synthetic_pairs(dumps: Sequence[Path]) -> dict[str, Any]:
    """Pairs of one bucket of the dumps."""
    from mrs_datasets.builders.reddit.months import month_shard
    from mrs_datasets.builders.reddit.pairs import join_buckets
    from mrs_datasets.builders.reddit.plan import Settings

    with tempfile.TemporaryDirectory(dir=dumps[0].parent) as folder:
        target = Path(folder) / "month.arrow"
        month_shard(dumps[0], target, Settings(), BUCKETS, lambda _: None)
        pairs, _ = join_buckets([target], range(1), BUCKETS)
    return {"pairs": list(zip(pairs["message"].to_pylist(), pairs["reply"].to_pylist(), strict=True))[:MOST_PAIRS]}


def read_texts(folder: Path) -> dict[str, list[tuple[str, str]]]:
    """The pairs of every `*.tsv` file below a folder, by its path there."""
    found = {}
    for path in sorted(folder.rglob("*.tsv")):
        lines = path.read_text(encoding="utf-8").split("\n")
        rows = [line.replace("\\n", "\n").split("\t") for line in lines]
        pairs = [(row[0], row[1]) for row in rows if len(row) == 2]
        if pairs:
            found[str(path.relative_to(folder).with_suffix(""))] = pairs[:MOST_PAIRS]
    return found


# --- All of it ------------------------------------------------------------------------------------------------------


def race(dumps: list[Path], copies: list[Path], model: Path, runs: int) -> dict[str, dict[str, Any]]:
    """Run the builds in turns; the median of the CPU-seconds, and the highest memory. AssertionError where the pairs
    differ."""
    jobs: dict[str, Callable[[], dict[str, Any]]] = {
        "zstandard": lambda: fresh(zstandard_alone, dumps),
        "mrs data build": lambda: fresh(our_build, dumps, model),
        "DuckDB, masks in SQL": lambda: fresh(duckdb_build, copies, True),
        "DuckDB, no masks": lambda: fresh(duckdb_build, copies, False),
    }
    all_runs: dict[str, list[dict[str, Any]]] = {name: [] for name in jobs}
    for _ in range(runs):
        for name, job in jobs.items():
            all_runs[name].append(job())
    digests = {found["digest"] for several in all_runs.values() for found in several if "digest" in found}
    if len(digests) != 1 or len({found[0]["pairs"] for found in all_runs.values() if "pairs" in found[0]}) != 1:
        told = {name: found[0].get("pairs") for name, found in all_runs.items()}
        raise AssertionError(f"The pairs differ: {told}.")
    return {
        name: {
            "cpu": round(statistics.median(found["cpu"] for found in several), 2),
            "all cpu": [found["cpu"] for found in several],
            "wall": round(statistics.median(found["wall"] for found in several), 2),
            "peak_mb": max(found["peak_mb"] for found in several),
            "pairs": several[0].get("pairs"),
        }
        for name, several in all_runs.items()
    }


def main() -> None:
    """Race, measure, print, write."""
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("--comments", type=int, default=400_000, help="lines of a month (default 400,000)")
    parser.add_argument("--runs", type=int, default=3, help="of each build (default 3)")
    parser.add_argument("--folder", type=Path, help="where the files go for the time (default: the system's)")
    parser.add_argument("--texts", type=Path, help="a folder with files of pairs, for masks and cleaning (*.tsv)")
    options = parser.parse_args()
    os.environ.setdefault("TQDM_DISABLE", "1")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        workload = fresh(prepare, folder, ["2018-01", "2018-02"], options.comments)
        dumps = sorted((folder / "dumps").glob("RC_*.zst"))
        copies = [path.with_name(f"copy-{path.name}") for path in dumps]
        for path, copy in zip(dumps, copies, strict=True):
            fresh(recompress, path, copy)
        builds = race(dumps, copies, Path(workload.pop("model")), options.runs)
        micro = {"synthetic": fresh(synthetic_pairs, dumps)["pairs"]}
    micro |= read_texts(options.texts) if options.texts else {}
    per_pair = {name: fresh(texts, pairs) for name, pairs in micro.items()}
    ours = builds["mrs data build"]
    rivals = {name: found for name, found in builds.items() if name.startswith("DuckDB")}
    ratios = {f"rate / {name}": round(found["cpu"] / ours["cpu"], 2) for name, found in rivals.items()}
    record = {
        "name": "bench_build_rivals",
        "workload": workload,
        "runs": options.runs,
        "builds": builds,
        "ratios": ratios,
        "at least": TARGETS["build"],
        "texts, us a pair": per_pair,
        "targets, us a pair": {name: bound for name, bound in TARGETS.items() if name != "build"},
        "machine": {"cores": os.cpu_count(), "load_at_the_end": round(os.getloadavg()[0], 1)},
        "versions": {
            "python": platform.python_version(),
            **{name: metadata.version(name) for name in ("zstandard", "msgspec", "pyarrow", "duckdb", "ftfy")},
        },
    }
    print(f"{workload['lines']:,} lines, {workload['bytes'] / MB:,.0f} MB, {workload['pairs']:,} pairs")
    for name, build in builds.items():
        rate = workload["lines"] / build["cpu"]
        print(f"{name}: {build['cpu']:.2f} CPU-s ({rate:,.0f} lines/CPU-s), {build['peak_mb']:,.0f} MB")
    for name, ratio in ratios.items():
        print(f"{name}: {ratio:.2f} (at least {TARGETS['build']})")
    for name, found in per_pair.items():
        print(f"{name}: {json.dumps(found)}")
    RESULT.parent.mkdir(exist_ok=True)
    RESULT.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
