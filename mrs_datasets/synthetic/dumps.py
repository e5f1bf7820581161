"""Synthetic monthly dumps with all the difficulties of real ones, reproducible by seed; for tests and benchmarks.

Threads continue across the months, in the ten languages. `manifest.json` next to the files has the numbers of comments,
rejects, drops by reason and pairs that a reader must find. Authors, ids and addresses are recognisable (`NAMES`), so
that a test can check that none is left. A line has about 1 KB, from 2020 on 2 to 4 KB; zstd compresses to an eighth.
"""

import calendar
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mrs_datasets.builders.reddit.plan import PROFILES
from mrs_datasets.synthetic.speech import TOXIC_WORDS
from mrs_datasets.synthetic.threads import NAMES, Threads, Totals
from mrs_suggest.common.errors import InputError, extra_needed
from mrs_suggest.common.io.files import atomic_folder, writing

with extra_needed("zstandard", "reddit", "writing dumps"):
    import zstandard

MANIFEST = "manifest.json"
LEVEL = 3
MIN_WINDOW_LOG, WINDOW_LOG = 10, 31  # the published dumps have the largest windows: 2 GiB


def write_dumps(
    out: Path,
    months: Sequence[str],
    comments: int,
    seed: int = 0,
    *,
    window_log: int = WINDOW_LOG,
    long_thread: int = 0,
    overwrite: bool = False,
    progress: Callable[[int], object] = lambda lines: None,
) -> dict[str, Any]:
    """Write `RC_YYYY-MM.zst` for each month and the manifest into the folder `out`; return the manifest.

    The manifest has `Totals` for each file, and `Expected` over all files for each profile of the filter.

    Args:
        months: as YYYY-MM; written in chronological order.
        comments: lines of each month, including rejected ones.
        seed: the same seed gives the same lines.
        window_log: of the zstd frames. The window takes up to that much memory, if a month is that long.
        long_thread: the first comments of all months that are in one thread.
        progress: called with the number of lines written since the last call.

    Raises:
        InputError: an invalid month or number, or `out` exists; then nothing is written.
    """
    spans = [_month_span(month) for month in sorted(months)]
    if not spans or len(set(months)) != len(spans):
        raise InputError(f"--months: expected different months, found {' '.join(months) or 'none'}.")
    for option, value, least, most in (
        ("--comments", comments, 1, None),
        ("--seed", seed, 0, None),
        ("--window", window_log, MIN_WINDOW_LOG, WINDOW_LOG),
        ("--long-thread", long_thread, 0, None),
    ):
        if value < least or (most is not None and value > most):
            raise InputError(f"{option}: expected {least} {f'to {most}' if most else 'or more'}, found {value}.")
    if long_thread > comments * len(spans):
        every = f"{comments * len(spans):,} comments of all months"
        raise InputError(f"--long-thread {long_thread:,}: expected at most the {every}; raise --comments.")
    threads = Threads(np.random.default_rng(seed), long_thread)
    files = {}
    with writing(out, "free space or choose another folder"), atomic_folder(out, overwrite, MANIFEST) as folder:
        for month, start, seconds in spans:
            path = folder / f"RC_{month}.zst"
            threads.totals = Totals()
            lines = threads.month(int(month[:4]), start, seconds, comments)
            size = _write_zstd(path, lines, window_log, progress)
            files[path.name] = {**threads.totals.as_dict(), "bytes": size, "compressed": path.stat().st_size}
        profiles = {name: threads.expected(rules.drop_bots).as_dict() for name, rules in PROFILES.items()}
        settings = {"seed": seed, "comments": comments, "window_log": window_log, "names": NAMES}
        manifest = {**settings, "files": files, "profiles": profiles}
        (folder / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return manifest


def write_toxic_words(folder: Path) -> None:
    """Write the invented words that stand for toxic ones, as lists for `mrs data build --toxicity words:FOLDER`."""
    folder.mkdir(parents=True, exist_ok=True)
    for code, word in TOXIC_WORDS.items():
        (folder / f"{code}.txt").write_text(f"{word}\n", encoding="utf-8")


def _month_span(month: str) -> tuple[str, int, int]:
    """The month, its first second since 1970 in UTC, its length in seconds."""
    found = re.fullmatch(r"(20[0-9]{2})-(0[1-9]|1[0-2])", month)
    if not found:
        raise InputError(f"--months {month}: expected a month of this century as YYYY-MM, such as 2018-01.")
    year, number = int(found[1]), int(found[2])
    return month, calendar.timegm((year, number, 1, 0, 0, 0)), calendar.monthrange(year, number)[1] * 86400


def _write_zstd(path: Path, chunks: Iterable[list[str]], window_log: int, progress: Callable[[int], object]) -> int:
    """Write the lines as one frame; return their size in bytes."""
    parameters = zstandard.ZstdCompressionParameters.from_level(LEVEL, window_log=window_log, write_checksum=True)
    compressor = zstandard.ZstdCompressor(compression_params=parameters)
    size = 0
    with path.open("wb") as file, compressor.stream_writer(file) as writer:
        for lines in chunks:
            block = ("\n".join(lines) + "\n").encode("utf-8")
            writer.write(block)
            size += len(block)
            progress(len(lines))
    return size
