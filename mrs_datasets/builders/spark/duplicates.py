"""The search for duplicates on Spark: the rules of `mrs_datasets.builders.reddit.cleaning.duplicates`, and as exactly
its result.

Pairs that share a key, or the key of a band, are brought together by a shuffle; those to be compared get their
signatures by another. Signatures stay where they are, in the files of the buckets, but for those of candidates. Each
step's groups are (language, part of the keys), (bucket), (language, band, part), (bucket of the earlier pair), (bucket
of the later pair). What a bucket has to hand on past the next step has a key of its own, the bucket's number after the
groups'.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.checked_files import damaged, read_array, read_batches, write_array
from mrs_datasets.builders.reddit.cleaning.duplicates import (
    EXACT,
    EXACT_CODE,
    KEPT_CODE,
    KEY,
    NEAR,
    NEAR_CODE,
    RULES,
    signature_file,
)
from mrs_datasets.builders.reddit.cleaning.near_duplicates import (
    Arrival,
    Signatures,
    band_keys,
    candidates,
    repeated,
    similarity,
)
from mrs_datasets.builders.spark.rows import Piece, Row, counts_row, grouped, pack, source, unpack
from mrs_suggest.common.io.storage import Location

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from mrs_datasets.builders.spark.engine import SparkEngine

PART_PAIRS = 1 << 22  # of a language, whose keys are compared in one group: .4 GB
COMPARED = 1 << 16  # pairs compared at once: 25 MB of signatures
_ROW_BITS = 40  # of a pair's number: its bucket, and its row there
_KEYS = pa.schema([("key", pa.uint64()), ("order", pa.uint64()), ("thread", pa.uint64()), ("pair", pa.int64())])
_ROWS = pa.schema([("row", pa.int64())])
_BOTH = pa.schema([("later", pa.int64()), ("earlier", pa.int64())])
_SIGNED = pa.schema([("row", pa.int64()), ("signature", pa.binary(4 * RULES.bands * RULES.rows))])
Numbers = npt.NDArray[np.int64]


@dataclass(frozen=True)
class _Plan:
    """The groups of a search.

    Attributes:
        languages: in which duplicates are searched.
        parts: (languages,) of each language's keys.
        buckets: the files of the pairs.
        targets: the file of each bucket's codes.
    """

    languages: tuple[str, ...]
    parts: tuple[int, ...]
    buckets: tuple[Location, ...]
    targets: tuple[Location, ...]

    def groups(self, bands: int) -> int:
        """How many (language, band, part) there are."""
        return sum(self.parts) * bands

    def group(self, language: int, band: int, bands: int) -> int:
        """The first of a language's groups in a band."""
        return sum(self.parts[:language]) * bands + self.parts[language] * band


def marked_duplicates(
    spark: SparkEngine,
    languages: Sequence[str],
    pairs: Sequence[int],
    buckets: Sequence[Location],
    targets: Sequence[Location],
) -> DataFrame:
    """Write the codes of every bucket's pairs; rows with the counts of each bucket, by language and reason.

    Args:
        pairs: (languages,) how many there are.
        targets: for each bucket a file of codes (.npy), one for every pair of the bucket.
    """
    parts = tuple(-(-number // PART_PAIRS) for number in pairs)
    plan = _Plan(tuple(languages), parts, tuple(buckets), tuple(targets))
    tasks = spark.tasks(len(buckets))
    keys = source(spark.session, len(buckets), partial(_send_keys, plan), tasks)
    exact = grouped(keys, spark.tasks(plan.groups(1)), partial(_find_exact, plan))
    bands = grouped(exact, tasks, partial(_send_bands, plan))
    compared = grouped(bands, spark.tasks(plan.groups(RULES.bands)), partial(_find_candidates, plan))
    signed = grouped(compared, tasks, partial(_send_signatures, plan))
    return grouped(signed, tasks, partial(_mark, plan))


# --- The steps, in order --------------------------------------------------------------------------------------------


def _send_keys(plan: _Plan, bucket: int) -> Iterator[Row]:
    """The keys of a bucket to their groups."""
    yield plan.groups(1) + bucket, 0, b""
    pairs = _Bucket(plan, bucket)
    for language in range(len(plan.languages)):
        rows = pairs.rows(language)
        yield from pairs.sent(language, rows, pairs.keys[rows], plan.group(language, 0, 1))


def _find_exact(plan: _Plan, group: int, pieces: Iterator[Piece]) -> Iterator[Row]:
    """Pairs that are equal to an earlier one, to their buckets."""
    lane = group - plan.groups(1)
    if lane >= 0:
        yield lane, -1, b""
        return
    keys, arrival, pairs = _arrived(pieces)
    found = [pairs[rows[~opens]] for rows, opens in repeated(keys, arrival)]
    for bucket, rows in _by_bucket(np.concatenate(found or [np.empty(0, np.int64)])):
        yield bucket, group, pack(pa.table([rows], _ROWS))


def _send_bands(plan: _Plan, bucket: int, pieces: Iterator[Piece]) -> Iterator[Row]:
    """The bands' keys of the pairs that are no exact duplicates to their groups."""
    exact = unpack(pieces, _ROWS)
    yield plan.groups(RULES.bands) + bucket, 0, pack(exact)
    pairs = _Bucket(plan, bucket)
    among = np.ones(len(pairs.keys), bool)
    among[exact["row"].to_numpy()] = False
    signed = _signatures(plan, bucket, len(among))
    for language in range(len(plan.languages)):
        rows = pairs.rows(language)
        rows = rows[among[rows]]
        for band in range(RULES.bands):
            keys = band_keys(signed[band, rows])
            yield from pairs.sent(language, rows, keys, plan.group(language, band, RULES.bands))


def _find_candidates(plan: _Plan, group: int, pieces: Iterator[Piece]) -> Iterator[Row]:
    """Pairs to be compared, to the bucket of the earlier one."""
    lane = group - plan.groups(RULES.bands)
    if lane >= 0:
        yield from ((lane, -1, data.to_pybytes()) for _, data in pieces)
        return
    keys, arrival, pairs = _arrived(pieces)
    found = [
        np.stack([pairs[later], pairs[earlier]])
        for rows, opens in repeated(keys, arrival)
        for later, earlier in candidates(rows, opens)
    ]
    later, earlier = np.unique(np.concatenate(found, axis=1), axis=1) if found else np.empty((2, 0), np.int64)
    buckets = earlier >> _ROW_BITS
    for bucket in np.unique(buckets).tolist():
        here = buckets == bucket
        yield bucket, group, pack(pa.table([later[here], earlier[here]], _BOTH))


def _send_signatures(plan: _Plan, bucket: int, pieces: Iterator[Piece]) -> Iterator[Row]:
    """The signatures of a bucket's pairs to the bucket of each pair that is compared with them."""
    _, exact = next(pieces)
    yield bucket, -1, exact.to_pybytes()
    both = unpack(pieces, _BOTH)
    if not both.num_rows:
        return
    later, earlier = np.unique(np.stack([both["later"].to_numpy(), both["earlier"].to_numpy()]), axis=1)
    signed = _signatures(plan, bucket)
    for start in range(0, len(later), COMPARED):
        part = slice(start, start + COMPARED)
        rows = earlier[part] & ((1 << _ROW_BITS) - 1)
        octets = np.ascontiguousarray(signed[:, rows].swapaxes(0, 1)).reshape(len(rows), -1)
        column = pa.FixedSizeBinaryArray.from_buffers(_SIGNED.field(1).type, len(rows), [None, pa.py_buffer(octets)])
        for target in np.unique(later[part] >> _ROW_BITS).tolist():
            here = np.flatnonzero(later[part] >> _ROW_BITS == target)
            places = pa.array(later[part][here] & ((1 << _ROW_BITS) - 1))
            yield target, bucket << 32 | start, pack(pa.table([places, column.take(pa.array(here))], _SIGNED))


def _mark(plan: _Plan, bucket: int, pieces: Iterator[Piece]) -> Iterator[Row]:
    """Write the codes of a bucket."""
    pairs = _Bucket(plan, bucket)
    codes = np.full(len(pairs.keys), KEPT_CODE, np.uint8)
    codes[unpack([next(pieces)], _ROWS)["row"].to_numpy()] = EXACT_CODE
    signed = _signatures(plan, bucket, len(codes))
    for piece in pieces:
        table = unpack([piece], _SIGNED).combine_chunks()
        rows = table["row"].to_numpy()
        octets = np.frombuffer(b"".join(table["signature"].to_pylist()), np.uint16)
        other = octets.reshape(len(rows), RULES.bands, 2, RULES.rows).swapaxes(0, 1)
        codes[rows[similarity(signed[:, rows], other) >= RULES.threshold]] = NEAR_CODE
    write_array(plan.targets[bucket], codes)
    counts = {}
    for language, code in enumerate(plan.languages):
        of = codes[pairs.rows(language)]
        counts[code] = {EXACT: int((of == EXACT_CODE).sum()), NEAR: int((of == NEAR_CODE).sum())}
    yield counts_row(bucket, counts)


# --- What the steps share -------------------------------------------------------------------------------------------


class _Bucket:
    """The numbers of a bucket's pairs.

    Attributes:
        keys: (n,) of the pairs.
    """

    def __init__(self, plan: _Plan, bucket: int) -> None:
        names = ["language", "order", "thread", KEY]
        batches = list(read_batches(plan.buckets[bucket], names))
        table = pa.Table.from_batches(batches) if batches else None
        empty = np.empty(0, np.uint64)
        self._plan, self._bucket = plan, bucket
        self.keys, self._order, self._thread = (
            (table[name].to_numpy() if table is not None else empty) for name in (KEY, "order", "thread")
        )
        places = pc.index_in(table["language"], pa.array(plan.languages, pa.string())) if table is not None else None
        self._language = np.empty(0, np.int32) if places is None else pc.fill_null(places, -1).to_numpy()

    def rows(self, language: int) -> Numbers:
        """The rows of a language."""
        return np.flatnonzero(self._language == language)

    def sent(self, language: int, rows: Numbers, keys: npt.NDArray[np.uint64], group: int) -> Iterator[Row]:
        """Rows with (n,) keys of pairs for the groups from `group` on."""
        parts = self._plan.parts[language]
        for part in range(parts):
            here = keys % np.uint64(parts) == part
            if here.any():
                of = rows[here]
                columns = [keys[here], self._order[of], self._thread[of], of | self._bucket << _ROW_BITS]
                yield group + part, self._bucket, pack(pa.table(columns, _KEYS))


def _arrived(pieces: Iterable[Piece]) -> tuple[npt.NDArray[np.uint64], Arrival, Numbers]:
    """The keys of a group, the order of its pairs, and their numbers; pairs in the order of these."""
    table = unpack(pieces, _KEYS)
    keys, order, thread, pairs = (table[name].to_numpy() for name in _KEYS.names)
    return keys, Arrival(order, thread), pairs


def _by_bucket(pairs: Numbers) -> Iterator[tuple[int, Numbers]]:
    """Rows of pairs by their buckets."""
    buckets = pairs >> _ROW_BITS
    for bucket in np.unique(buckets).tolist():
        yield bucket, pairs[buckets == bucket] & ((1 << _ROW_BITS) - 1)


def _signatures(plan: _Plan, bucket: int, pairs: int | None = None) -> Signatures:
    """The signatures of a bucket's pairs, mapped from their file."""
    path = signature_file(plan.buckets[bucket])
    signed = np.asarray(read_array(path))
    if signed.dtype != np.uint16 or signed.ndim != 4 or (pairs is not None and signed.shape[1] != pairs):
        raise damaged(path, f"it holds {signed.dtype} {signed.shape}")
    return signed
