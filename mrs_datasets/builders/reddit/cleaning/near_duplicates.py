"""Near duplicates of pairs by MinHash and locality-sensitive hashing; both sides must be similar (Broder 1997; Leskovec
et al., "Mining of Massive Datasets", chapter 3).

Two pairs with the same long message and different short replies have nearly the same characters, but are two references
for one message, which must stay. So a pair has two signatures, one per side, every band has rows of both, and both
estimates must reach the threshold.

The signatures take 4 bytes times bands times rows per pair (192 with the default) and may be memory-mapped:
each band is read once, sequentially, and if there is more than one part its keys are written and read once, 16 bytes
per pair. Memory: one byte per pair, and 50 bytes per pair of a part (`repeated`).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from mrs_datasets.builders.reddit.cleaning.columns import mix

Signatures = npt.NDArray[np.uint16]
Keys = npt.NDArray[np.uint64] | Signatures  # (n,) of pairs, or (n, 2, rows) of a band
BATCH_SHINGLES = 1 << 18  # hashed at once: 2 MB a temporary array, which stays in the processor's cache
BATCH_PAIRS = 1 << 16  # compared at once
SCAN_PAIRS = 1 << 22  # read at once: .2 GB
PART_PAIRS = 1 << 24  # sorted at once: .8 GB
_ENTRY = np.dtype([("row", np.int64), ("key", np.uint64)])


@dataclass(frozen=True)
class NearRules:
    """The threshold of similarity, and how it is estimated.

    With the defaults two pairs with similarity .8 on both sides are compared with a probability of .99, at .5 with .22.
    The standard error of an estimate is .06 at .8, and .04 at .9: a text of 150 characters and its copy with one letter
    changed have similarity .93.

    Attributes:
        threshold: two sides are near duplicates if the estimated Jaccard index of their shingles is at least this.
        shingle: characters of a shingle; a shorter text has one, itself.
        bands, rows: pairs are compared if a band of `rows` minima of the message and as many of the reply agree.
        seed: of the hash functions.
    """

    threshold: float = 0.8
    shingle: int = 5
    bands: int = 16
    rows: int = 3
    seed: int = 0


def signatures(texts: Sequence[str], rules: NearRules) -> Signatures:
    """MinHash signatures: (n,) texts -> (n, bands, rows) minima, 16 bits of each.

    The share of equal numbers estimates the Jaccard index of two texts' sets of shingles. Normalise the texts
    before. The result of a text does not depend on the others.
    """
    minima = np.empty((len(texts), rules.bands * rules.rows), dtype=np.uint16)
    start = characters = 0
    for end, text in enumerate(texts, start=1):
        characters += len(text) + rules.shingle
        if characters >= BATCH_SHINGLES or end == len(texts):
            _minima(texts[start:end], rules, minima[start:end])
            start, characters = end, 0
    return minima.reshape(len(texts), rules.bands, rules.rows)


def _minima(texts: Sequence[str], rules: NearRules, minima: Signatures) -> None:
    """Fill `minima` (n, functions)."""
    width = rules.shingle
    padded = [text.ljust(width, "\0") for text in texts]
    codes = np.frombuffer("".join(padded).encode("utf-32-le"), dtype=np.uint32).astype(np.uint64)
    lengths = np.fromiter(map(len, padded), dtype=np.int64, count=len(padded))
    random = np.random.Generator(np.random.PCG64(rules.seed))
    odd = random.integers(0, 1 << 63, size=width + minima.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    windows = len(codes) - width + 1
    shingles = np.zeros(windows, dtype=np.uint64)
    for place in range(width):
        shingles += codes[place : place + windows] * odd[place]
    shingles = mix(shingles)
    # Between the last window of a text and the first of the next one are those with characters of both: every second
    # segment, which is ignored.
    starts = np.cumsum(lengths) - lengths
    segments = np.stack([starts, starts + lengths - width + 1], axis=1).ravel()[:-1]
    hashed = np.empty_like(shingles)
    for function, factor in enumerate(odd[width:]):
        np.multiply(shingles, factor, out=hashed)
        # The high bits of a minimum are zeros: the middle ones distinguish two minima.
        minima[:, function] = (np.minimum.reduceat(hashed, segments)[::2] >> np.uint64(16)).astype(np.uint16)


def sign_pairs(messages: Sequence[str], replies: Sequence[str], rules: NearRules) -> Signatures:
    """The signatures of pairs, band by band: (n,), (n,) texts -> (bands, n, 2, rows)."""
    sides = np.stack([signatures(messages, rules), signatures(replies, rules)], axis=2)
    return np.ascontiguousarray(sides.swapaxes(0, 1))


@dataclass(frozen=True)
class Arrival:
    """The order of pairs: by `order`, then by `thread`.

    Attributes:
        order, thread: (n,) each.
    """

    order: npt.NDArray[np.uint64]
    thread: npt.NDArray[np.uint64]


def near_duplicates(
    signed: Signatures,
    rules: NearRules,
    arrival: Arrival,
    among: npt.NDArray[np.bool_] | None = None,
    each_band: Callable[[], object] = lambda: None,
    folder: Path | None = None,
) -> npt.NDArray[np.bool_]:
    """Which pairs are near duplicates of an earlier one.

    In a band where many agree, a pair is compared with the first of them and the one just before it, so that time grows
    linearly with the number of pairs; a duplicate missed in one band is found in another.

    Args:
        signed: (bands, n, 2, rows), what `sign_pairs` returns.
        among: (n,) which pairs to consider; None: all.
        each_band: called when a band is done.
        folder: see `repeated`.

    Returns:
        (n,), true for a pair that is similar, on both sides, to an earlier one, whether that one stays or not.
    """
    found = np.zeros(signed.shape[1], dtype=bool)
    for band in range(rules.bands if len(found) else 0):
        for rows, opens in repeated(signed[band], arrival, among, folder):
            first = rows[np.maximum.accumulate(np.where(opens, np.arange(len(rows)), 0))]
            _mark_alike(rows[~opens], first[~opens], signed, rules, found)
            _mark_alike(rows[~opens], rows[np.flatnonzero(~opens) - 1], signed, rules, found)
        each_band()
    return found


def repeated(
    values: Keys,
    arrival: Arrival,
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
        sorting = np.lexsort((arrival.thread[rows], arrival.order[rows], keys))
        rows, keys = rows[sorting], keys[sorting]
        yield rows, np.insert(keys[1:] != keys[:-1], 0, True)[: len(rows)]


def _parts(
    values: Keys, among: npt.NDArray[np.bool_] | None, folder: Path | None
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]]:
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


def _scans(
    values: Keys, among: npt.NDArray[np.bool_] | None
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]]:
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
    later: npt.NDArray[np.int64],
    earlier: npt.NDArray[np.int64],
    signed: Signatures,
    rules: NearRules,
    found: npt.NDArray[np.bool_],
) -> None:
    """Set `found` for the later pairs whose less similar side reaches the threshold with the earlier pair."""
    new = ~found[later]
    later, earlier = later[new], earlier[new]
    for start in range(0, len(later), BATCH_PAIRS):
        part = slice(start, start + BATCH_PAIRS)
        equal = signed[:, later[part]] == signed[:, earlier[part]]  # (bands, m, 2, rows)
        found[later[part][equal.mean(axis=(0, 3)).min(axis=1) >= rules.threshold]] = True


def _band_keys(band: Keys) -> npt.NDArray[np.uint64]:
    """(n,) keys or (n, 2, rows) of a band -> (n,) one scrambled number each."""
    keys = np.zeros(len(band), dtype=np.uint64)
    for column in band.reshape(len(band), -1).T if len(band) else ():
        keys = mix(keys ^ column)
    return keys
