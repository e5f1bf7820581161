"""Stage 7, duplicates: pairs of a language that came before, exactly or nearly, in any bucket.

Which pair came before another is decided by the hashes of their ids, and what is alike by the texts alone: the result
is the same however many buckets there are. Beside the pairs of a bucket lie their signatures, made where the texts are
at hand; here, only numbers are read.

Memory: about 90 bytes a pair of the language; disk, for the time: `NearRules.signature_bytes` a pair of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mrs_core.text import normalise_reply
from mrs_datasets.reddit.language import BATCH_ROWS
from mrs_datasets.reddit.near_duplicates import NearRules, Signatures, near_duplicates, sign_pairs
from mrs_datasets.reddit.pair_files import damaged, read_pairs
from mrs_datasets.reddit.partition import stable_hashes
from mrs_datasets.reddit.work import Advance, writing

EXACT, NEAR = "exact duplicate", "near duplicate"
KEPT_CODE, EXACT_CODE, NEAR_CODE = range(3)
RULES = NearRules()
KEY = "key"  # the column of pairs that holds `pair_keys`
Codes = npt.NDArray[np.uint8]


def pair_keys(messages: Sequence[str], replies: Sequence[str]) -> npt.NDArray[np.uint64]:
    """(n,) normalised messages and replies -> (n,) stable 64-bit keys, equal for equal pairs."""
    return stable_hashes(pa.array(map("\0".join, zip(messages, replies, strict=True)), pa.large_string()))


def keyed_pairs(pairs: pa.Table, rules: NearRules = RULES) -> tuple[pa.Table, Signatures]:
    """The pairs with the column `key`, equal for what is equal up to case and punctuation, and their signatures.

    Returns:
        The table, and (bands, n, 2, rows).
    """
    keys, signed = [np.empty(0, np.uint64)], [sign_pairs([], [], rules)]
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_ROWS):
        messages, replies = ([normalise_reply(text) for text in column.to_pylist()] for column in batch.columns)
        keys.append(pair_keys(messages, replies))
        signed.append(sign_pairs(messages, replies, rules))
    return pairs.append_column(KEY, pa.array(np.concatenate(keys))), np.concatenate(signed, axis=1)


def signature_file(pairs: Path) -> Path:
    """Where the signatures of a bucket's pairs lie."""
    return pairs.with_suffix(".signatures.npy")


def write_array(path: Path, array: npt.NDArray[Any]) -> None:
    """Write an array; the file appears whole.

    Raises:
        InputError: the disk refuses.
    """
    temporary = path.with_name(f".{path.name}.partial-0")
    with writing(path):
        try:
            with temporary.open("wb") as file:
                np.save(file, array, allow_pickle=False)
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)


def find_duplicates(
    order: npt.NDArray[np.uint64],
    thread: npt.NDArray[np.uint64],
    keys: npt.NDArray[np.uint64],
    signed: Signatures,
    rules: NearRules,
    advance: Advance = lambda _: None,
) -> Codes:
    """(n,) codes: kept, exact or near duplicate of an earlier pair; earlier is what is smaller in `order`, `thread`.

    Args:
        order, thread, keys: (n,) of the pairs.
        signed: (bands, n, 2, rows), the signatures.
        advance: told how many pairs more are done, in part.
    """
    arrival = np.lexsort((thread, order))
    _, first = np.unique(keys[arrival], return_index=True)
    rows = arrival[np.sort(first)]
    del arrival, first
    codes = np.full(len(order), EXACT_CODE, dtype=np.uint8)
    share = len(order) // (rules.bands + 1)
    near = near_duplicates(signed, rules, rows, lambda: advance(share))
    codes[rows] = np.where(near, NEAR_CODE, KEPT_CODE)
    return codes


def duplicates_shard(
    buckets: Sequence[Path], language: str, target: Path, advance: Advance, rules: NearRules = RULES
) -> dict[str, Any]:
    """Write the codes of a language's pairs, bucket after bucket, to `target` (.npy); return the counts.

    Raises:
        InputError: a file is damaged, or the disk refuses.
    """
    parts = [read_pairs(path, language, ("order", "thread", KEY)) for path in buckets]
    order, thread, keys = (
        np.concatenate([part[name].to_numpy() for part, _ in parts]) for name in ("order", "thread", KEY)
    )
    places = [(path, start, part.num_rows) for path, (part, start) in zip(buckets, parts, strict=True)]
    del parts
    gathered = target.with_name(f".{target.name}.partial-signatures")
    try:
        signed = _gather(places, len(order), gathered, rules)
        codes = find_duplicates(order, thread, keys, signed, rules, advance)
        del signed
    finally:
        gathered.unlink(missing_ok=True)
    write_array(target, codes)
    return {EXACT: int((codes == EXACT_CODE).sum()), NEAR: int((codes == NEAR_CODE).sum())}


def read_codes(path: Path, pairs: int) -> Codes:
    """What `duplicates_shard` wrote, for so many pairs.

    Raises:
        InputError: the file is damaged.
    """
    codes = _read_array(path)
    if codes.shape != (pairs,) or codes.dtype != np.uint8:
        raise damaged(path, f"it has {codes.size:,} entries for {pairs:,} pairs")
    return codes


def _gather(places: Sequence[tuple[Path, int, int]], pairs: int, path: Path, rules: NearRules) -> Signatures:
    """The signatures of a language from all buckets, band after band in one file, mapped: (bands, pairs, 2, rows)."""
    shape = (rules.bands, pairs, 2, rules.rows)
    if not pairs:
        return np.empty(shape, np.uint16)
    width = 4 * rules.rows
    done = 0
    for bucket, start, rows in places:
        if not rows:
            continue
        source = signature_file(bucket)
        signed = _read_array(source)
        if signed.dtype != np.uint16 or signed.shape[:1] + signed.shape[2:] != shape[:1] + shape[2:]:
            raise damaged(source, f"it holds {signed.dtype} {signed.shape}")
        if signed.shape[1] < start + rows:
            raise damaged(source, f"it has {signed.shape[1]:,} signatures for {start + rows:,} pairs and more")
        with writing(path), path.open("r+b" if done else "wb") as file:  # written, not mapped: a full disk is an error
            for band in range(rules.bands):
                file.seek((band * pairs + done) * width)
                file.write(np.ascontiguousarray(signed[band, start : start + rows]).tobytes())
        done += rows
    return np.memmap(path, np.uint16, "r", shape=shape)


def _read_array(path: Path) -> npt.NDArray[Any]:
    try:
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))
    except (OSError, ValueError, EOFError) as error:
        raise damaged(path, str(error).splitlines()[0].rstrip(".") or type(error).__name__) from None
