"""Stage 6, duplicates: pairs that are equal or nearly equal to an earlier pair of their language, in any bucket.

Near duplicates are found by MinHash and locality-sensitive hashing (Broder 1997; Leskovec et al., "Mining of Massive
Datasets", chapter 3); both sides must be similar. Two pairs with the same long message and different short replies have
nearly the same characters, but are two references for one message, which must stay. So a pair has two signatures, one
per side, every band has rows of both, and both estimates must reach the threshold.

The order of pairs is that of the hashes of their ids, and similarity depends on the texts alone: the result is the
same for any number of buckets. The signatures of a bucket's pairs are next to them, made when the texts were in memory:
4 bytes times bands times rows per pair. Here, only numbers are read, each band once, sequentially.

Memory: two bytes per pair of the language, and what `PART_PAIRS` take. Temporary disk space: the signatures of the
language once more, and 40 bytes per pair.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.pipeline.stages import (
    Advance,
    Engine,
    Shard,
    damaged,
    read_array,
    read_pairs,
    run_stage,
    summed,
    write_array,
)
from mrs_datasets.builders.pipeline.work_folder import writing
from mrs_datasets.builders.reddit.columns import BATCH_TEXTS
from mrs_datasets.builders.reddit.partition import mix, stable_hashes
from mrs_datasets.builders.reddit.plan import KEPT, BucketPairs, Build, Outcomes, languages_with
from mrs_suggest.common.io.storage import Location, local_file
from mrs_suggest.common.text.text import normalise_reply

STAGE = "duplicates"
EXACT, NEAR = "exact duplicate", "near duplicate"
KEPT_CODE, EXACT_CODE, NEAR_CODE = range(3)
KEY = "key"  # the column that is equal for pairs that are equal up to case and punctuation
_NUMBERS = ("order", "thread", KEY)

# Two pairs with similarity .8 on both sides are compared with a probability of .99, at .5 with .22. The standard error
# of an estimate is .06 at .8, and .04 at .9: a text of 150 characters and its copy with one letter changed have
# similarity .93.
THRESHOLD = 0.8  # two sides are near duplicates if the estimated Jaccard index of their shingles is at least this
SHINGLE = 5  # characters; a shorter text has one shingle, itself
BANDS, ROWS = 16, 3  # pairs are compared if a band of `ROWS` minima of the message and as many of the reply agree
SEED = 0  # of the hash functions

BATCH_SHINGLES = 1 << 18  # hashed together: 2 MB a temporary array, which stays in the processor's cache
BATCH_PAIRS = 1 << 16  # compared together
SCAN_PAIRS = 1 << 22  # read together: .2 GB
PART_PAIRS = 1 << 24  # sorted together: .8 GB
_ENTRY = np.dtype([("row", np.int64), ("key", np.uint64)])
Signatures = npt.NDArray[np.uint16]
Numbers = npt.NDArray[np.uint64]
Keys = Numbers | Signatures  # (n,) of pairs, or (n, 2, rows) of a band


def find_duplicates(
    build: Build, pairs: BucketPairs, outcomes: Outcomes, engine: Engine
) -> dict[str, tuple[Location, int]]:
    """Search the duplicates of every language that may be kept, and move them in `outcomes`.

    Returns:
        language -> the file of its pairs' codes, and how many there are.
    """
    folder = build.work.stage(STAGE)
    codes = {
        language: (folder / f"{language}.npy", outcomes[language, KEPT])
        for language in languages_with(outcomes, build.settings.min_examples)
    }
    shards = []
    for language, (target, number) in codes.items():
        buckets = [(path, kept[language]) for path, kept in pairs.items() if language in kept]
        shards.append(Shard(language, number, target, partial(duplicates_shard, buckets, language, target)))
    counts = run_stage(build.work, STAGE, shards, engine, " pairs", scale=True)
    kept = sum(number for (_, outcome), number in outcomes.items() if outcome == KEPT)
    build.funnel.add(STAGE, kept, summed(counts))
    for language, found in zip(codes, counts, strict=True):
        for reason in (EXACT, NEAR):
            outcomes[language, reason] += found[reason]
            outcomes[language, KEPT] -= found[reason]
    return codes


def keyed_pairs(pairs: pa.Table) -> tuple[pa.Table, Signatures]:
    """The pairs with the column `KEY`, and their signatures (bands, n, 2, rows)."""
    # Each text once: many messages have several replies, and many are replies themselves.
    chunks = [chunk.cast(pa.large_string()) for side in ("message", "reply") for chunk in pairs[side].chunks]
    texts = pa.chunked_array(chunks, pa.large_string()).combine_chunks().dictionary_encode()
    sides = texts.indices.to_numpy().reshape(2, -1)
    forms, signed = [pa.array([], pa.large_string())], [signatures([])]
    for start in range(0, len(texts.dictionary), BATCH_TEXTS):
        batch = [normalise_reply(text) for text in texts.dictionary[start : start + BATCH_TEXTS].to_pylist()]
        forms.append(pa.array(batch, pa.large_string()))
        signed.append(signatures(batch))
    form, signature = pa.concat_arrays(forms), np.concatenate(signed)
    joined = pc.binary_join_element_wise(*(form.take(pa.array(side)) for side in sides), pa.scalar("\0", form.type))
    of_pairs = np.empty((BANDS, pairs.num_rows, 2, ROWS), np.uint16)
    for number, side in enumerate(sides):
        of_pairs[:, :, number] = signature[side].swapaxes(0, 1)
    return pairs.append_column(KEY, pa.array(stable_hashes(joined))), of_pairs


def signature_file(pairs: Location) -> Location:
    """The file of the signatures of a bucket's pairs."""
    return pairs.with_suffix(".signatures.npy")


def duplicates_shard(
    buckets: Sequence[tuple[Location, int]], language: str, target: Location, advance: Advance
) -> dict[str, int]:
    """Write the codes of a language's pairs, by bucket (file, pairs), to `target` (.npy); return the counts."""
    with local_file(target, "gathered") as gathered:
        numbers, signed = _gather(buckets, language, gathered)
        arrival = numbers["order"], numbers["thread"]
        codes = np.full(signed.shape[1], KEPT_CODE, dtype=np.uint8)
        with writing(target):
            for rows, opens in repeated(numbers[KEY], arrival, folder=gathered.parent):
                codes[rows[~opens]] = EXACT_CODE
            share = len(codes) // (BANDS + 1)
            near = near_duplicates(signed, arrival, codes == KEPT_CODE, lambda: advance(share), gathered.parent)
            codes[near] = NEAR_CODE
        del numbers, signed, arrival
    write_array(target, codes)
    return {EXACT: int((codes == EXACT_CODE).sum()), NEAR: int((codes == NEAR_CODE).sum())}


def _gather(
    buckets: Sequence[tuple[Location, int]], language: str, path: Path
) -> tuple[dict[str, Numbers], Signatures]:
    """The numbers (n,) and signatures (bands, n, 2, rows) of a language, from all buckets, in one file, mapped."""
    pairs = sum(rows for _, rows in buckets)
    shape = (BANDS, pairs, 2, ROWS)
    if not pairs:
        return {name: np.empty(0, np.uint64) for name in _NUMBERS}, np.empty(shape, np.uint16)
    done = 0
    with writing(path), path.open("wb") as file:  # written, not mapped, so that a full disk raises an error

        def write(before: int, piece: npt.NDArray[np.generic]) -> None:
            """Write the next rows of a column that has `before` bytes per pair in front of it."""
            file.seek(before * pairs + done * (piece.nbytes // len(piece)))
            file.write(np.ascontiguousarray(piece).tobytes())

        for bucket, rows in buckets:
            table, start = read_pairs(bucket, language, _NUMBERS)
            for place, name in enumerate(_NUMBERS):
                write(8 * place, table[name].to_numpy())
            signed = _read_signatures(signature_file(bucket), start + rows, shape)
            for band in range(BANDS):
                write(8 * len(_NUMBERS) + 4 * ROWS * band, signed[band, start : start + rows])
            done += rows
    numbers = np.memmap(path, np.uint64, "r", shape=(len(_NUMBERS), pairs))
    signatures = np.memmap(path, np.uint16, "r", offset=numbers.nbytes, shape=shape)
    return dict(zip(_NUMBERS, numbers, strict=True)), signatures


def _read_signatures(path: Location, least: int, shape: tuple[int, ...]) -> Signatures:
    signed = read_array(path)
    if signed.dtype != np.uint16 or signed.shape[:1] + signed.shape[2:] != shape[:1] + shape[2:]:
        raise damaged(path, f"it holds {signed.dtype} {signed.shape}")
    if signed.shape[1] < least:
        raise damaged(path, f"it has {signed.shape[1]:,} signatures for {least:,} pairs and more")
    return np.asarray(signed, np.uint16)


# --- Signatures and near duplicates -----------------------------------------------------------------------------------


def signatures(texts: Sequence[str]) -> Signatures:
    """MinHash signatures: (n,) texts -> (n, bands, rows) minima, 16 bits of each.

    The share of equal numbers estimates the Jaccard index of two texts' sets of shingles. Normalise the texts
    before. The result of a text does not depend on the others.
    """
    minima = np.empty((len(texts), BANDS * ROWS), dtype=np.uint16)
    start = characters = 0
    for end, text in enumerate(texts, start=1):
        characters += len(text) + SHINGLE
        if characters >= BATCH_SHINGLES or end == len(texts):
            _minima(texts[start:end], minima[start:end])
            start, characters = end, 0
    return minima.reshape(len(texts), BANDS, ROWS)


def _minima(texts: Sequence[str], minima: Signatures) -> None:
    """Fill `minima` (n, functions)."""
    padded = [text.ljust(SHINGLE, "\0") for text in texts]
    codes = np.frombuffer("".join(padded).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    lengths = np.fromiter(map(len, padded), dtype=np.int64, count=len(padded))
    random = np.random.Generator(np.random.PCG64(SEED))
    odd = random.integers(0, 1 << 63, size=SHINGLE + minima.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    windows = len(codes) - SHINGLE + 1
    shingles = np.zeros(windows, dtype=np.uint64)
    for place in range(SHINGLE):
        shingles += codes[place : place + windows] * odd[place]
    shingles = mix(shingles)
    # Between the last window of a text and the first of the next one are those with characters of both: every second
    # segment, which is ignored.
    starts = np.cumsum(lengths) - lengths
    segments = np.stack([starts, starts + lengths - SHINGLE + 1], axis=1).ravel()[:-1]
    hashed = np.empty_like(shingles)
    for function, factor in enumerate(odd[SHINGLE:]):
        np.multiply(shingles, factor, out=hashed)
        # The high bits of a minimum are zeros: the middle ones distinguish two minima.
        minima[:, function] = (np.minimum.reduceat(hashed, segments)[::2] >> np.uint64(16)).astype(np.uint16)


def near_duplicates(
    signed: Signatures,
    arrival: tuple[Numbers, Numbers],
    among: npt.NDArray[np.bool_] | None = None,
    each_band: Callable[[], object] = lambda: None,
    folder: Path | None = None,
) -> npt.NDArray[np.bool_]:
    """Which pairs are near duplicates of an earlier one.

    In a band where many agree, a pair is compared with the first of them and the one just before it, so that time grows
    linearly with the number of pairs; a duplicate missed in one band is found in another.

    Args:
        signed: (bands, n, 2, rows), what `keyed_pairs` returns.
        arrival: (n,) each, by which pairs are ordered: by the first, then by the second.
        among: (n,) which pairs to consider; None: all.
        each_band: called when a band is done.
        folder: see `repeated`.

    Returns:
        (n,), true for a pair that is similar, on both sides, to an earlier one, whether that one stays or not.
    """
    found = np.zeros(signed.shape[1], dtype=bool)
    for band in range(BANDS if len(found) else 0):
        for rows, opens in repeated(signed[band], arrival, among, folder):
            first = rows[np.maximum.accumulate(np.where(opens, np.arange(len(rows)), 0))]
            _mark_alike(rows[~opens], first[~opens], signed, found)
            _mark_alike(rows[~opens], rows[np.flatnonzero(~opens) - 1], signed, found)
        each_band()
    return found


def repeated(
    values: Keys,
    arrival: tuple[Numbers, Numbers],
    among: npt.NDArray[np.bool_] | None = None,
    folder: Path | None = None,
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """The pairs that share their value with others, value by value and in the pairs' order, in parts.

    A part has all pairs of some of the values: at most about `PART_PAIRS` are in memory at a time, at 50 bytes each.

    Args:
        values: (n,) keys, or (n, 2, rows) of a band.
        among: (n,) which pairs to consider; None: all.
        folder: for the temporary file of keys if there is more than one part; None: the system's temporary folder.

    Yields:
        (m,) positions of pairs, and (m,), true for the first pair of each value.
    """
    for rows, keys in _parts(values, among, folder):
        if not len(rows):
            continue
        sorting = np.argsort(keys, kind="stable")
        again = keys[sorting][1:] == keys[sorting][:-1]
        shared = np.sort(sorting[np.append(again, False) | np.insert(again, 0, False)])  # sorted: sequential reads
        rows, keys = rows[shared], keys[shared]
        sorting = np.lexsort((arrival[1][rows], arrival[0][rows], keys))
        rows, keys = rows[sorting], keys[sorting]
        yield rows, np.insert(keys[1:] != keys[:-1], 0, True)[: len(rows)]


def _parts(
    values: Keys, among: npt.NDArray[np.bool_] | None, folder: Path | None
) -> Iterator[tuple[npt.NDArray[np.int64], Numbers]]:
    """Positions of pairs and their keys, with all pairs of a key in one part.

    The values are read once: later parts' keys are kept in an unnamed file, 16 bytes per pair, which has a piece of
    each part from every scan.
    """
    parts = -(-len(values) // PART_PAIRS)
    if parts <= 1:
        scans = list(_scans(values, among))
        if scans:
            yield np.concatenate([rows for rows, _ in scans]), np.concatenate([keys for _, keys in scans])
        return
    with tempfile.TemporaryFile(dir=folder) as file:
        ends = []  # of the parts' pieces of each scan, in entries of the file
        start = 0
        for rows, keys in _scans(values, among):
            of_pair = keys % np.uint64(parts)
            sorting = np.argsort(of_pair, kind="stable")
            entries = np.empty(len(rows), _ENTRY)
            entries["row"], entries["key"] = rows[sorting], keys[sorting]
            file.write(entries.tobytes())
            counts = np.bincount(of_pair.astype(np.int64), minlength=parts)
            ends.append(np.append(start, start + np.cumsum(counts)))
            start += len(rows)
        for part in range(parts):
            pieces = []
            for bounds in ends:
                file.seek(int(bounds[part]) * _ENTRY.itemsize)
                octets = file.read(int(bounds[part + 1] - bounds[part]) * _ENTRY.itemsize)
                pieces.append(np.frombuffer(octets, _ENTRY))
            held = np.concatenate(pieces)
            del pieces
            yield np.ascontiguousarray(held["row"]), np.ascontiguousarray(held["key"])


def _scans(values: Keys, among: npt.NDArray[np.bool_] | None) -> Iterator[tuple[npt.NDArray[np.int64], Numbers]]:
    """Positions and keys of the pairs to consider, `SCAN_PAIRS` at a time."""
    for start in range(0, len(values), SCAN_PAIRS):
        end = min(start + SCAN_PAIRS, len(values))
        keys = _band_keys(values[start:end])
        if among is None:
            yield np.arange(start, end), keys
        else:
            wanted = np.flatnonzero(among[start:end])
            yield wanted + start, keys[wanted]


def _mark_alike(
    later: npt.NDArray[np.int64], earlier: npt.NDArray[np.int64], signed: Signatures, found: npt.NDArray[np.bool_]
) -> None:
    """Set `found` for the later pairs whose less similar side reaches the threshold with the earlier pair."""
    new = ~found[later]
    later, earlier = later[new], earlier[new]
    for start in range(0, len(later), BATCH_PAIRS):
        part = slice(start, start + BATCH_PAIRS)
        equal = signed[:, later[part]] == signed[:, earlier[part]]  # (bands, m, 2, rows)
        found[later[part][equal.mean(axis=(0, 3)).min(axis=1) >= THRESHOLD]] = True


def _band_keys(band: Keys) -> Numbers:
    """(n,) keys or (n, 2, rows) of a band -> (n,) one scrambled number each."""
    keys = np.zeros(len(band), dtype=np.uint64)
    for column in band.reshape(len(band), -1).T if len(band) else ():
        keys = mix(keys ^ column)
    return keys
