"""Stage 6, duplicates: pairs that are equal or nearly equal to an earlier pair of their language, in any bucket.

Both sides must be similar: two pairs with the same long message and different short replies have nearly the same
characters, but are two references for one message, which must stay. Candidates share the keys of both sides: bands of
MinHash signatures (Broder 1997; Leskovec et al., "Mining of Massive Datasets", chapter 3), which find long texts with
several changes, or a half of each side, which finds short texts with one typing error. Their texts decide (`alike`).

The order of pairs is that of the hashes of their ids, and similarity depends on the language's texts alone: the result
is the same for any number of buckets. The keys of a bucket's pairs are next to them, made when the texts were in
memory: 4 bytes times `COLUMNS` per pair. Here, each column of keys is read once, sequentially.

Memory: three bytes per pair of the language, and what `PART_PAIRS` and the sample of words take. Temporary disk space:
the keys and texts of the language once more, and 40 bytes per pair.
"""

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
    ShardCounts,
    damaged,
    read_array,
    read_pairs,
    run_stage,
    summed,
    write_array,
)
from mrs_datasets.builders.pipeline.work_folder import writing
from mrs_datasets.builders.reddit.alike import LEAST, SHINGLE, alike, count_words
from mrs_datasets.builders.reddit.partition import mix, stable_hashes
from mrs_datasets.builders.reddit.plan import KEPT, BucketPairs, Build, Outcomes, languages_with
from mrs_suggest.common.io.storage import Location, local_file
from mrs_suggest.common.text.text import normalise_reply

STAGE = "duplicates"
EXACT, NEAR = "exact duplicate", "near duplicate"
SAMPLES = "samples"
KEPT_CODE, EXACT_CODE, NEAR_CODE = range(3)
END = "end"  # of a pair's texts, in bytes
KEY = "key"  # the column that is equal for pairs that are equal up to case and punctuation
_NUMBERS = ("order", "thread", KEY)

# Pairs are compared if a band of `ROWS` minima of the message and as many of the reply agree: with a probability of .99
# if both sides have similarity .8, and .22 at .5.
BANDS, ROWS = 16, 3
SEED = 0  # of the hash functions
BACK = 16  # pairs with the same halves that are compared with each pair
COLUMNS = BANDS + 16 + 2  # of the keys: bands; halves; and which letters of each side occur an odd number of times
VOCABULARY = 1 << 16  # pairs whose words are counted; a word of two of their texts is not a typing error

BATCH_PAIRS = 1 << 10  # hashed together: the temporary arrays stay in the processor's cache
SCAN_PAIRS = 1 << 22  # read together: .2 GB
PART_PAIRS = 1 << 24  # sorted together: .8 GB
Signatures = npt.NDArray[np.uint16]
Numbers = npt.NDArray[np.uint64]
Keys = npt.NDArray[np.uint32]
Texts = Callable[[int], Sequence[str]]  # row -> its message and reply


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
    keep = build.settings.keep_rejects
    shards = []
    for language, (target, number) in codes.items():
        buckets = [(path, sum(kept[language])) for path, kept in pairs.items() if language in kept]
        shards.append(Shard(language, number, target, partial(duplicates_shard, buckets, language, target, keep)))
    counts = run_stage(build.work, STAGE, shards, engine, " pairs", scale=True)
    kept = sum(number for (_, outcome), number in outcomes.items() if outcome == KEPT)
    build.funnel.add(STAGE, kept, summed({reason: found[reason] for reason in (EXACT, NEAR)} for found in counts))
    for language, found in zip(codes, counts, strict=True):
        build.funnel.rejects |= {f"{NEAR}, {language}": found[SAMPLES]} if found[SAMPLES] else {}
        for reason in (EXACT, NEAR):
            outcomes[language, reason] += found[reason]
            outcomes[language, KEPT] -= found[reason]
    return codes


def keyed_pairs(pairs: pa.Table) -> tuple[pa.Table, Keys]:
    """The pairs with the column `KEY`, and the keys (COLUMNS, n) that near pairs share."""
    # Each text is normalised once: many messages have several replies, and many are replies themselves.
    chunks = [chunk.cast(pa.large_string()) for side in ("message", "reply") for chunk in pairs[side].chunks]
    texts = pa.chunked_array(chunks, pa.large_string()).combine_chunks().dictionary_encode()
    forms, sides = list(map(normalise_reply, texts.dictionary.to_pylist())), texts.indices.to_numpy().reshape(2, -1)
    keys, signed = [np.empty(0, np.uint64)], [sign_pairs([], [])]
    for start in range(0, pairs.num_rows, BATCH_PAIRS):
        messages, replies = ([forms[number] for number in side[start : start + BATCH_PAIRS]] for side in sides)
        joined = pa.array(map("\0".join, zip(messages, replies, strict=True)), pa.large_string())
        keys.append(stable_hashes(joined))
        signed.append(sign_pairs(messages, replies))
    return pairs.append_column(KEY, pa.array(np.concatenate(keys))), np.concatenate(signed, axis=1)


def signature_file(pairs: Location) -> Location:
    """The file of the keys of a file of pairs."""
    return pairs.with_suffix(".signatures.npy")


def duplicates_shard(
    buckets: Sequence[tuple[Location, int]], language: str, target: Location, samples: int, advance: Advance
) -> ShardCounts:
    """Write the codes of a language's pairs, by bucket (file, pairs), to `target` (.npy); return counts and samples."""
    with local_file(target, "gathered") as gathered:
        numbers, signed, texts = _gather(buckets, language, gathered)
        arrival = numbers["order"], numbers["thread"]
        codes = np.full(signed.shape[1], KEPT_CODE, dtype=np.uint8)
        with writing(target):
            for rows, opens in repeated(numbers[KEY], arrival):
                codes[rows[~opens]] = EXACT_CODE
            share, among = len(codes) // (COLUMNS - 1), codes == KEPT_CODE
            near, shown = near_duplicates(signed, arrival, among, texts, language, samples, lambda: advance(share))
            codes[near] = NEAR_CODE
            groups = [" ≈ ".join(" → ".join(texts(row)) for row in rows) for rows in shown]
        del numbers, signed, arrival, texts
    write_array(target, codes)
    return {EXACT: int((codes == EXACT_CODE).sum()), NEAR: int((codes == NEAR_CODE).sum()), SAMPLES: groups}


def _gather(
    buckets: Sequence[tuple[Location, int]], language: str, path: Path
) -> tuple[dict[str, Numbers], Keys, Texts]:
    """The numbers (n,), keys (COLUMNS, n) and texts of a language, from all buckets, in one file, mapped."""
    pairs = sum(rows for _, rows in buckets)
    if not pairs:
        return {name: np.empty(0, np.uint64) for name in _NUMBERS}, np.empty((COLUMNS, 0), np.uint32), lambda _: ()
    done, end, names = 0, np.uint64(0), (*_NUMBERS, END)
    texts_at = (8 * len(names) + 4 * COLUMNS) * pairs
    with writing(path), path.open("wb") as file:  # written, not mapped, so that a full disk raises an error

        def write(place: int, piece: npt.NDArray[np.generic]) -> None:
            file.seek(place)
            file.write(np.ascontiguousarray(piece).tobytes())

        for bucket, rows in buckets:
            table, start = read_pairs(bucket, language, [*_NUMBERS, "message", "reply"])
            sides = [table[side].cast(pa.large_binary()).combine_chunks() for side in ("message", "reply")]
            joined = pc.binary_join_element_wise(*sides, pa.scalar(b"\0", pa.large_binary()))
            ends = end + np.cumsum(pc.binary_length(joined).to_numpy(), dtype=np.uint64)
            write(texts_at + int(end), np.frombuffer(b"".join(joined.to_pylist()), np.uint8))
            keys = read_array(signature_file(bucket))
            if keys.dtype != np.uint32 or keys.shape[:-1] != (COLUMNS,) or keys.shape[1] < start + rows:
                raise damaged(signature_file(bucket), f"it holds {keys.dtype} {keys.shape}, not {start + rows:,} keys")
            at = 0
            for column in (*(table[name].to_numpy() for name in _NUMBERS), ends, *keys[:, start : start + rows]):
                write(at * pairs + column.itemsize * done, column)
                at += column.itemsize
            done, end = done + rows, ends[-1]
    numbers = dict(zip(names, np.memmap(path, np.uint64, "r", shape=(len(names), pairs)), strict=True))
    signatures = np.memmap(path, np.uint32, "r", offset=8 * len(names) * pairs, shape=(COLUMNS, pairs))
    content, ends = np.memmap(path, np.uint8, "r", offset=texts_at).data, np.asarray(numbers[END])

    def texts(row: int) -> list[str]:
        return str(content[int(ends[row - 1]) if row else 0 : int(ends[row])], "utf-8").split("\0")

    return numbers, signatures, texts


# --- Signatures and near duplicates -----------------------------------------------------------------------------------


def signatures(texts: Sequence[str]) -> Signatures:
    """MinHash signatures: (n,) normalised texts -> (n, bands, rows) minima, 16 bits of each."""
    minima = np.empty((len(texts), BANDS * ROWS), dtype=np.uint16)
    if not texts:
        return minima.reshape(0, BANDS, ROWS)
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
    return minima.reshape(len(texts), BANDS, ROWS)


def sign_pairs(messages: Sequence[str], replies: Sequence[str]) -> Keys:
    """The keys that near pairs share: (n,), (n,) normalised texts -> (COLUMNS, n)."""
    bands = np.concatenate([signatures(messages), signatures(replies)], axis=2).transpose(2, 1, 0)
    keys = np.zeros(bands.shape[1:], np.uint64)
    for minima in bands:
        keys = mix(keys ^ minima)
    first, second = _halves(messages), _halves(replies)
    halves = [mix(one) ^ other for one in first for other in second]
    marks = np.stack([_odd_letters(messages), _odd_letters(replies)])
    return np.concatenate([(np.concatenate([keys, halves]) >> np.uint64(32)).astype(np.uint32), marks])


def _halves(texts: Sequence[str]) -> Numbers:
    """Hashes (4, n) of halves of the texts: texts with one typing error share one of them, in its place.

    Texts whose lengths differ by one have a common half length: the shorter's, rounded up or down.
    """
    parts: list[str] = []
    for text in texts:
        for half in (len(text) // 2, (len(text) + 1) // 2):
            parts += (text[:half], text[len(text) - half + 1 :]) if len(text) >= LEAST else (text, text)
    return stable_hashes(pa.array(parts, pa.large_string())).reshape(-1, 4).T


def _odd_letters(texts: Sequence[str]) -> Keys:
    """(n,) texts -> (n,) sets of 32 bits; a typing error changes at most two of them."""
    ended = [f"{text}\0" for text in texts]
    codes = np.frombuffer("".join(ended).encode("utf-32-le"), np.uint32)
    starts = np.cumsum([0, *map(len, ended)])[:-1]
    bits = np.uint32(1) << (codes & np.uint32(31))
    return np.bitwise_xor.reduceat(bits, starts) if texts else bits


def near_duplicates(
    signed: Keys,
    arrival: tuple[Numbers, Numbers],
    among: npt.NDArray[np.bool_],
    texts: Texts,
    language: str,
    samples: int = 0,
    each_column: Callable[[], object] = lambda: None,
) -> tuple[npt.NDArray[np.bool_], list[tuple[int, int]]]:
    """Which pairs are near duplicates of an earlier one.

    Where many share a key (`signed`, (COLUMNS, n) of `sign_pairs`), a pair is compared with the first of them and those
    just before it, so that time grows linearly. The pairs `among` (n,) are ordered by the two numbers of `arrival`.

    Returns:
        (n,), true for a pair that is `alike`, on both sides, an earlier one, whether that one stays or not; and at
        most `samples` of them, each after the earlier one.
    """
    shown: list[tuple[int, int]] = []
    found = np.zeros(signed.shape[1], dtype=bool)
    first = np.flatnonzero(among)
    if len(first) > VOCABULARY:
        first = first[arrival[0][first] < np.partition(arrival[0][first], VOCABULARY)[VOCABULARY]]
    counts = count_words((text for row in first.tolist() for text in texts(row)), language)
    marks = np.ascontiguousarray(signed[-2:])
    for column, keys in enumerate(signed[:-2]):
        for rows, opens in repeated(keys, arrival, among):
            places = np.arange(len(rows))
            firsts = np.maximum.accumulate(np.where(opens, places, 0))
            for back in range(2 if column < BANDS else BACK + 1):
                before = places - back if back else firsts
                fit = ~opens & (before >= firsts) & ~found[rows]
                later, earlier = rows[fit], rows[before[fit]]
                if column >= BANDS:
                    changed = marks[:, later] ^ marks[:, earlier]
                    for _ in range(2):
                        changed &= changed - np.uint32(1)  # leaves out the last bit
                    close = ~changed.any(axis=0)
                    later, earlier = later[close], earlier[close]
                for row, other in zip(later.tolist(), earlier.tolist(), strict=True):
                    sides = zip(texts(row), texts(other), strict=True)
                    if all(alike(*both, counts, language) for both in sides):
                        found[row] = True
                        shown += [(other, row)] * (len(shown) < samples)
        each_column()
    return found, shown


def repeated(
    values: Numbers | Keys, arrival: tuple[Numbers, Numbers], among: npt.NDArray[np.bool_] | None = None
) -> Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]]:
    """The pairs that share their value with others, value by value and in the pairs' order, in parts.

    A part has all pairs of some of the values (n,): at most about `PART_PAIRS` are in memory at a time, at 50 bytes
    each. `among` (n,) are the pairs to consider; None: all.

    Yields:
        (m,) positions of pairs, and (m,), true for the first pair of each value.
    """
    for part in range(parts := -(-len(values) // PART_PAIRS)):
        rows, keys = _part(values, among, part, parts)
        if not len(rows):
            continue
        sorting = np.argsort(keys, kind="stable")
        again = keys[sorting][1:] == keys[sorting][:-1]
        shared = np.sort(sorting[np.append(again, False) | np.insert(again, 0, False)])  # sorted: sequential reads
        rows, keys = rows[shared], keys[shared]
        sorting = np.lexsort((arrival[1][rows], arrival[0][rows], keys))
        rows, keys = rows[sorting], keys[sorting]
        yield rows, np.insert(keys[1:] != keys[:-1], 0, True)[: len(rows)]


def _part(
    values: Numbers | Keys, among: npt.NDArray[np.bool_] | None, part: int, parts: int
) -> tuple[npt.NDArray[np.int64], Numbers]:
    """Positions and keys of the pairs in a part; the values are read once for each, `SCAN_PAIRS` at a time."""
    rows, keys = [], []
    for start in range(0, len(values), SCAN_PAIRS):
        scanned = mix(np.asarray(values[start : start + SCAN_PAIRS], np.uint64))
        wanted = scanned % np.uint64(parts) == part
        if among is not None:
            wanted &= among[start : start + SCAN_PAIRS]
        rows.append(np.flatnonzero(wanted) + start)
        keys.append(scanned[wanted])
    return np.concatenate(rows), np.concatenate(keys)
