"""Stage 6, duplicates: pairs that are equal or nearly equal to an earlier pair of their language, in any bucket.

The order of pairs is that of the hashes of their ids, and similarity depends on the texts alone: the result is the
same for any number of buckets. The signatures of a bucket's pairs are next to them, made when the texts were in memory;
here, only numbers are read.

Memory: two bytes per pair of the language, and what `near_duplicates.PART_PAIRS` take. Temporary disk space: the
signatures of the language once more, and 40 bytes per pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from mrs_datasets.builders.pipeline.checked_files import damaged, read_array, read_pairs, write_array
from mrs_datasets.builders.pipeline.stages import Advance, Engine, Shard, run_stage, summed
from mrs_datasets.builders.pipeline.work_folder import writing
from mrs_datasets.builders.reddit.cleaning.columns import BATCH_ROWS, stable_hashes
from mrs_datasets.builders.reddit.cleaning.language import KEPT, Outcomes, languages_with
from mrs_datasets.builders.reddit.cleaning.near_duplicates import (
    Arrival,
    NearRules,
    Signatures,
    near_duplicates,
    repeated,
    sign_pairs,
)
from mrs_datasets.builders.reddit.plan import Build
from mrs_suggest.common.io.storage import Location, local_file
from mrs_suggest.common.text.text import normalise_reply

STAGE = "duplicates"
EXACT, NEAR = "exact duplicate", "near duplicate"
KEPT_CODE, EXACT_CODE, NEAR_CODE = range(3)
RULES = NearRules()
KEY = "key"  # the column with `pair_keys`
_NUMBERS = ("order", "thread", KEY)
Codes = npt.NDArray[np.uint8]


def find_duplicates(
    build: Build, pairs: Sequence[Location], outcomes: Outcomes, engine: Engine
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
    shards = [
        Shard(language, number, target, partial(duplicates_shard, pairs, language, target))
        for language, (target, number) in codes.items()
    ]
    counts = run_stage(build.work, STAGE, shards, engine, " pairs", scale=True)
    kept = sum(number for (_, outcome), number in outcomes.items() if outcome == KEPT)
    build.funnel.add(STAGE, kept, summed(counts))
    for language, found in zip(codes, counts, strict=True):
        for reason in (EXACT, NEAR):
            outcomes[language, reason] += found[reason]
            outcomes[language, KEPT] -= found[reason]
    return codes


def keyed_pairs(pairs: pa.Table, rules: NearRules = RULES) -> tuple[pa.Table, Signatures]:
    """The pairs with the column `key`, equal for pairs that are equal up to case and punctuation, and their signatures.

    Returns:
        The table, and (bands, n, 2, rows).
    """
    keys, signed = [np.empty(0, np.uint64)], [sign_pairs([], [], rules)]
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_ROWS):
        messages, replies = ([normalise_reply(text) for text in column.to_pylist()] for column in batch.columns)
        keys.append(pair_keys(messages, replies))
        signed.append(sign_pairs(messages, replies, rules))
    return pairs.append_column(KEY, pa.array(np.concatenate(keys))), np.concatenate(signed, axis=1)


def pair_keys(messages: Sequence[str], replies: Sequence[str]) -> npt.NDArray[np.uint64]:
    """(n,) normalised messages and replies -> (n,) stable 64-bit keys, equal for equal pairs."""
    return stable_hashes(pa.array(map("\0".join, zip(messages, replies, strict=True)), pa.large_string()))


def signature_file(pairs: Location) -> Location:
    """The file of the signatures of a bucket's pairs."""
    return pairs.with_suffix(".signatures.npy")


def duplicates_shard(
    buckets: Sequence[Location], language: str, target: Location, advance: Advance, rules: NearRules = RULES
) -> dict[str, int]:
    """Write the codes of a language's pairs, bucket after bucket, to `target` (.npy); return the counts.

    Raises:
        InputError: a file is damaged, or the disk reports an error.
    """
    with local_file(target, "gathered") as gathered:
        numbers, signed = _gather(buckets, language, gathered, rules)
        with writing(target):
            codes = mark_duplicates(
                numbers[KEY], Arrival(numbers["order"], numbers["thread"]), signed, rules, advance, gathered.parent
            )
        del numbers, signed
    write_array(target, codes)
    return {EXACT: int((codes == EXACT_CODE).sum()), NEAR: int((codes == NEAR_CODE).sum())}


def mark_duplicates(
    keys: npt.NDArray[np.uint64],
    arrival: Arrival,
    signed: Signatures,
    rules: NearRules,
    advance: Advance = lambda _: None,
    folder: Path | None = None,
) -> Codes:
    """(n,) codes: kept, exact or near duplicate of an earlier pair.

    Args:
        keys: (n,) of the pairs.
        signed: (bands, n, 2, rows), the signatures. All arrays may be mapped from files.
        advance: called with the number of pairs done since the last call, also fractions of the work.
        folder: for data that do not fit into memory; None: the system's temporary folder.
    """
    codes = np.full(len(keys), KEPT_CODE, dtype=np.uint8)
    for rows, opens in repeated(keys, arrival, folder=folder):
        codes[rows[~opens]] = EXACT_CODE
    share = len(keys) // (rules.bands + 1)
    near = near_duplicates(signed, rules, arrival, codes == KEPT_CODE, lambda: advance(share), folder)
    codes[near] = NEAR_CODE
    return codes


def _gather(
    buckets: Sequence[Location], language: str, path: Path, rules: NearRules
) -> tuple[dict[str, npt.NDArray[np.uint64]], Signatures]:
    """The numbers (n,) and signatures (bands, n, 2, rows) of a language, from all buckets, in one file, mapped."""
    sizes = []
    for bucket in buckets:
        found, start = read_pairs(bucket, language, ["language"])
        if found.num_rows:
            sizes.append((bucket, start, found.num_rows))
    pairs = sum(rows for _, _, rows in sizes)
    shape = (rules.bands, pairs, 2, rules.rows)
    if not pairs:
        return {name: np.empty(0, np.uint64) for name in _NUMBERS}, np.empty(shape, np.uint16)
    done = 0
    with writing(path), path.open("wb") as file:  # written, not mapped, so that a full disk raises an error

        def write(before: int, piece: npt.NDArray[np.generic]) -> None:
            """Write the next rows of a column that has `before` bytes per pair in front of it."""
            file.seek(before * pairs + done * (piece.nbytes // len(piece)))
            file.write(np.ascontiguousarray(piece).tobytes())

        for bucket, start, rows in sizes:
            table, _ = read_pairs(bucket, language, _NUMBERS)
            for place, name in enumerate(_NUMBERS):
                write(8 * place, table[name].to_numpy())
            signed = _read_signatures(signature_file(bucket), start + rows, shape)
            for band in range(rules.bands):
                write(8 * len(_NUMBERS) + 4 * rules.rows * band, signed[band, start : start + rows])
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
