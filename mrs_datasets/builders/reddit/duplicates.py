"""Stage 6, duplicates: pairs that are equal or nearly equal to an earlier pair of their language, in any bucket.

Both sides must be similar: two pairs with the same long message and different short replies have nearly the same
characters, but are two references for one message, which must stay. Candidates share the keys of both sides: bands of
MinHash signatures (Broder 1997; Leskovec et al., "Mining of Massive Datasets", chapter 3), which find long texts with
several changes, or a half of each side, which finds short texts with one typing error. Their texts decide (`alike`).

The order of pairs is that of the hashes of their ids, and similarity depends on the language's texts alone: the result
is the same for any number of buckets and workers. The keys of a bucket's pairs are next to them, made when the texts
were in memory: 4 bytes times `COLUMNS` per pair.

A language of up to `FILE_PAIRS` pairs is one shard. A larger one is divided among all workers: they gather its pairs in
files, the main process finds the equal pairs, and the workers then search some parts of one column of keys at a time.
Each column is read `SCANS` times at most, so that the time grows with the number of pairs, not with its square.

Memory: each process holds a part (`PART_PAIRS`) and the counts of words; the main process also 1 byte per pair of the
language. Temporary disk space: its keys and texts once more, 44 bytes per pair, and about 2 to 3 more for each worker.
"""

import json
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from tqdm import tqdm

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
    whole_file,
    write_array,
)
from mrs_datasets.builders.pipeline.work_folder import writing
from mrs_datasets.builders.reddit.alike import KANA, LEAST, LEAST_KANA, OFTEN, SHINGLE, alike, count_words
from mrs_datasets.builders.reddit.partition import mix, stable_hashes
from mrs_datasets.builders.reddit.plan import KEPT, BucketPairs, Build, Outcomes, Part, languages_with
from mrs_datasets.builders.reddit.repeated import Keys, Marks, Numbers, Rows, parts_of, repeated, take
from mrs_suggest.common.errors import InputError, first_line
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
_KEYS_AT = 8 * (len(_NUMBERS) + 1)  # in a gathered file: bytes of numbers, per pair
_TEXTS_AT = _KEYS_AT + 4 * COLUMNS  # and of keys
BATCH_PAIRS = 1 << 10  # hashed together: the temporary arrays stay in the processor's cache
# Files in a work folder depend on these, `COLUMNS` and `repeated.PART_PAIRS`: if one changes, increment build.WORK.
VOCABULARY = 1 << 16  # pairs whose words are counted; a word of two of their texts is not a typing error
FILE_PAIRS = 1 << 23  # gathered in a file, and read together: .2 GB
SCANS = 4  # of a column of keys, by as many shards
Signatures = npt.NDArray[np.uint16]
Texts = Callable[[int], Sequence[str]]  # row -> its message and reply
Files = Mapping[Path, int]  # of `_gather`, with how many pairs each has
Piece = tuple[int, range]  # a column of the keys, and which parts of it
Run = Callable[..., list[ShardCounts]]  # of shards
Sample = tuple[int, str]  # a near duplicate, and what to show of it
# A language's pairs: by file, their numbers (4, n) (`_NUMBERS`, `END`) and keys (COLUMNS, n); and their texts
Gathered = tuple[Sequence[Numbers], Sequence[Keys], Texts]


def find_duplicates(
    build: Build, pairs: BucketPairs, outcomes: Outcomes, engine: Engine
) -> dict[str, tuple[Location, int]]:
    """Search the duplicates of every language that may be kept, and move them in `outcomes`.

    Returns:
        language -> the file of its pairs' codes, and how many there are.
    """
    folder, samples = build.work.stage(STAGE), build.settings.keep_rejects
    codes = {
        language: (folder / f"{language}.npy", outcomes[language, KEPT])
        for language in languages_with(outcomes, build.settings.min_examples)
    }
    shards = []
    with tqdm(total=sum(number for _, number in codes.values()), desc=STAGE, unit=" pairs", unit_scale=True) as bar:
        run = partial(run_stage, build.work, STAGE, engine=engine, unit=" pairs", bar=bar)
        for language, (target, number) in codes.items():
            parts = Part.divide(pairs, language, FILE_PAIRS)
            whole = Part(tuple(own for part in parts for own in part.slices))
            shards.append(Shard(language, number, target, partial(duplicates_shard, whole, language, samples, target)))
            if len(parts) > 1 and not (target.exists() and build.work.done(STAGE, language)):
                before = bar.n
                _search_together(parts, shards[-1], build, run, bar.update)
                shards[-1] = replace(shards[-1], size=number - int(bar.n - before))  # what the bar has not counted
        counts = run(shards)
    _remove_temporary(build, "*.*.*")  # of languages that are left out now, or that were done when a build ended
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


def pieces_of(number: int) -> list[Piece]:
    """What is searched in so many pairs: in each column, each part, in at most `SCANS` pieces."""
    parts = parts_of(number)
    cuts = [len(parts) * cut // min(SCANS, len(parts)) for cut in range(min(SCANS, len(parts)) + 1)]
    return list(product(range(COLUMNS - 2), [parts[start:end] for start, end in pairwise(cuts)]))


# --- Shards -----------------------------------------------------------------------------------------------------------


def duplicates_shard(part: Part, language: str, samples: int, target: Location, advance: Advance) -> ShardCounts:
    """Write the codes of a language's pairs, by bucket, to `target` (.npy); return counts and samples."""
    with local_file(target, "gathered") as path, writing(target):
        _gather(part, language, path)
        pairs = _opened({path: part.pairs})
        exact, words = _exact_duplicates(pairs, language, path.parent)
        pieces = pieces_of(len(exact))
        each = partial(advance, len(exact) // sum(len(parts) for _, parts in pieces))
        near, shown = near_duplicates(pairs, exact, words, language, samples, pieces, path.parent, each)
        del pairs
    return _write_codes(exact, [near], shown, samples, target)


def _search_together(parts: list[Part], shard: Shard, build: Build, run: Run, advance: Advance) -> None:
    """Divide the shard of a large language into smaller ones for all workers, do them, and join their results."""
    language, folder, samples = shard.name, build.work.scratch / STAGE, build.settings.keep_rejects
    gathered = {folder / f"{language}.{number}.pairs": part for number, part in enumerate(parts)}
    if any(not path.exists() or build.work.done(STAGE, path.name) is None for path in gathered):
        _remove_temporary(build, f"{language}.*.npy*")  # results of earlier files, which may have been damaged
    files = {path: part.pairs for path, part in gathered.items()}
    steps = COLUMNS  # gathering, the exact search, and the columns that are searched
    gather = partial(_gather_shard, language)
    run([Shard(at.name, files[at] // steps, at, partial(gather, part, at)) for at, part in gathered.items()])
    with writing(folder):
        exact, words = _exact_duplicates(_opened(files), language, folder)
    advance(shard.size // steps)
    write_array(equal := folder / f"{language}.exact.npy", exact)
    with whole_file(counted := folder / f"{language}.words.json") as path:
        path.write_text(json.dumps(words), encoding="utf-8")
    pieces = {f"{column}.{parts.start}-{parts.stop}": (column, parts) for column, parts in pieces_of(len(exact))}
    near = {folder / f"{language}.{name}.npy": piece for name, piece in pieces.items()}
    search = partial(_near_shard, files, equal, counted, language, samples)
    size = shard.size * (steps - 2) // steps // len(near)
    counts = run([Shard(at.name, size, at, partial(search, one, at)) for at, one in near.items()])
    shown = [sample for found in counts for sample in found[SAMPLES]]
    build.work.finish(STAGE, language, _write_codes(exact, map(read_array, near), shown, samples, shard.output))
    _remove_temporary(build, f"{language}.*.*")


def _remove_temporary(build: Build, names: str) -> None:
    """Remove the files of shared searches whose names match a pattern, and with them the marks of finished shards."""
    for folder in {build.work.stage(STAGE), build.work.scratch / STAGE}:
        with writing(folder):
            for path in folder.iterdir() if folder.is_dir() else ():  # a storage may have no empty folders
                if fnmatchcase(path.name, names):
                    path.unlink(missing_ok=True)


def _gather_shard(language: str, part: Part, target: Path, _: Advance) -> ShardCounts:
    with whole_file(target) as path:
        _gather(part, language, path)
    return {}


def _near_shard(
    files: Files, equal: Path, counted: Path, language: str, samples: int, piece: Piece, target: Path, _: Advance
) -> ShardCounts:
    pairs = _opened(files)  # first: it says if this worker does not see the disk
    try:
        exact, words = np.asarray(read_array(equal), np.bool_), Counter(json.loads(counted.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise damaged(counted, first_line(error)) from None
    with writing(target):
        rows, shown = near_duplicates(pairs, exact, words, language, samples, [piece], target.parent)
    write_array(target, rows)
    return {SAMPLES: shown}


def _write_codes(exact: Marks, near: Iterable[Any], shown: list[Sample], samples: int, target: Location) -> ShardCounts:
    """Write the codes, overwriting `exact`; return counts and the first sample of each pair in `shown`."""
    codes, first, equal = exact.view(np.uint8), dict[int, str](), int(exact.sum())  # `EXACT_CODE` is 1
    for rows in near:
        codes[rows] = NEAR_CODE
    write_array(target, codes)
    for row, sample in shown:
        first.setdefault(row, sample)
    return {EXACT: equal, NEAR: int(np.count_nonzero(codes)) - equal, SAMPLES: list(first.values())[:samples]}


def _gather(part: Part, language: str, path: Path) -> None:
    """Write the pairs of a part of a language: their numbers and keys, column by column, then their texts."""
    pairs, done, end = part.pairs, 0, np.uint64(0)
    with path.open("wb") as file:  # written, not mapped, so that a full disk raises an error

        def write(place: int, piece: npt.NDArray[np.generic]) -> None:
            file.seek(place)
            file.write(np.ascontiguousarray(piece).tobytes())

        for bucket, _, skipped, rows in part.slices:
            table, start = read_pairs(bucket, language, [*_NUMBERS, "message", "reply"])
            table, start = table.slice(skipped, rows), start + skipped
            sides = [table[side].cast(pa.large_binary()).combine_chunks() for side in ("message", "reply")]
            joined = pc.binary_join_element_wise(*sides, pa.scalar(b"\0", pa.large_binary()))
            ends = end + np.cumsum(pc.binary_length(joined).to_numpy(), dtype=np.uint64)
            write(_TEXTS_AT * pairs + int(end), np.frombuffer(b"".join(joined.to_pylist()), np.uint8))
            keys = read_array(signature_file(bucket))
            if keys.dtype != np.uint32 or keys.shape[:-1] != (COLUMNS,) or keys.shape[1] < start + rows:
                raise damaged(signature_file(bucket), f"it holds {keys.dtype} {keys.shape}, not {start + rows:,} keys")
            at = 0
            for column in (*(table[name].to_numpy() for name in _NUMBERS), ends, *keys[:, start : start + rows]):
                write(at * pairs + column.itemsize * done, column)
                at += column.itemsize
            done, end = done + rows, ends[-1]


def _opened(files: Files) -> Gathered:
    """The pairs in files that `_gather` wrote, one after the other; each file is mapped once."""
    numbers, keys, contents, starts = [], [], [], [0]
    for path, pairs in files.items():
        try:
            content = np.asarray(np.memmap(path, np.uint8, "r"))
            keys_at, texts_at = _KEYS_AT * pairs, _TEXTS_AT * pairs
            if len(content) < texts_at or len(content) - texts_at != content[keys_at - 8 : keys_at].view(np.uint64)[0]:
                raise ValueError(f"its size is not that of {pairs:,} pairs")
            numbers.append(content[:keys_at].view(np.uint64).reshape(-1, pairs))
            keys.append(content[keys_at:texts_at].view(np.uint32).reshape(COLUMNS, pairs))
            contents.append(content[texts_at:].data)
        except FileNotFoundError:
            where = "put --out, or for a URL --scratch, on a disk that all workers share (docs/spark.md)"
            raise InputError(f"{path}: is missing; {where}, and continue with --resume.") from None
        except (OSError, ValueError) as error:
            raise damaged(path, first_line(error)) from None
        starts.append(starts[-1] + pairs)

    def texts(row: int) -> list[str]:
        file = bisect(starts, row) - 1
        ends, at = numbers[file][-1], row - starts[file]
        return str(contents[file][int(ends[at - 1]) if at else 0 : int(ends[at])], "utf-8").split("\0")

    return numbers, keys, texts


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
            long = len(text) >= LEAST or (len(text) >= LEAST_KANA and not KANA.isdisjoint(text))
            parts += (text[:half], text[len(text) - half + 1 :]) if long else (text, text)
    return stable_hashes(pa.array(parts, pa.large_string())).reshape(-1, 4).T


def _odd_letters(texts: Sequence[str]) -> Keys:
    """(n,) texts -> (n,) sets of 32 bits; a typing error changes at most two of them."""
    ended = [f"{text}\0" for text in texts]
    codes = np.frombuffer("".join(ended).encode("utf-32-le"), np.uint32)
    starts = np.cumsum([0, *map(len, ended)])[:-1]
    bits = np.uint32(1) << (codes & np.uint32(31))
    return np.bitwise_xor.reduceat(bits, starts) if texts else bits


def _exact_duplicates(pairs: Gathered, language: str, folder: Path) -> tuple[Marks, Counter[str]]:
    """Mark the pairs (n,) that equal an earlier one up to case and punctuation, and count texts that contain each word.

    Texts are those of the first `VOCABULARY` unmarked pairs. Words in fewer than `OFTEN` are left out: all are rare.
    """
    numbers, _, texts = pairs
    keys, arrival = [part[2] for part in numbers], [part[:2] for part in numbers]
    starts = np.cumsum([0, *map(len, keys)]).tolist()
    exact, first = np.zeros(starts[-1], np.bool_), np.empty(0, np.uint64)
    for found, opens in repeated(keys, arrival, parts_of(len(exact)), folder):
        exact[found[~opens]] = True
    files = list(zip(starts, (order for order, _ in arrival), np.split(exact, starts[1:-1]), strict=False))
    for _, order, equal in files:  # so that no array has the numbers of all pairs
        first = np.sort(np.append(first, order[~equal]))[: VOCABULARY + 1]
    end = first[VOCABULARY] if len(first) > VOCABULARY else np.iinfo(np.uint64).max
    rows = (start + row for start, order, equal in files for row in np.flatnonzero((order < end) & ~equal).tolist())
    counts = count_words((text for row in rows for text in texts(row)), language)
    return exact, Counter({word: number for word, number in counts.items() if number >= OFTEN})


def near_duplicates(
    pairs: Gathered,
    exact: Marks,
    words: Counter[str],
    language: str,
    samples: int,
    pieces: Iterable[Piece],
    folder: Path,
    each_part: Callable[[], object] = lambda: None,
) -> tuple[Rows, list[Sample]]:
    """The rows of pairs that are `alike`, on both sides, an earlier one in the pieces, and samples of some, in order.

    The earlier one may be near itself, but not in `exact` (n,). Where many share a key, a pair is compared with the
    first of them and those just before it, so that comparisons grow linearly. Pieces do not depend on each other.
    """
    shown: list[Sample] = []
    numbers, keys, texts = pairs
    found, arrival = np.empty(0, np.int64), [part[:2] for part in numbers]
    for column, parts in pieces:
        for rows, opens in repeated([of_file[column] for of_file in keys], arrival, parts, folder, exact):
            near, places = np.isin(rows, found), np.arange(len(rows))
            firsts = np.maximum.accumulate(np.where(opens, places, 0))
            marks = take([of_file[-2:] for of_file in keys], rows) if column >= BANDS else np.empty((2, 0), np.uint32)
            for back in range(2 if column < BANDS else BACK + 1):
                before = places - back if back else firsts
                later = np.flatnonzero(~opens & (before >= firsts) & ~near)
                earlier = before[later]
                if column >= BANDS:
                    changed = marks[:, later] ^ marks[:, earlier]
                    for _ in range(2):
                        changed &= changed - np.uint32(1)  # leaves out the last bit
                    close = ~changed.any(axis=0)
                    later, earlier = later[close], earlier[close]
                for place, row, other in zip(later.tolist(), rows[later].tolist(), rows[earlier].tolist(), strict=True):
                    both = texts(other), texts(row)
                    if all(alike(*sides, words, language) for sides in zip(*both, strict=True)):
                        near[place] = True
                        shown += [(row, " ≈ ".join(map(" → ".join, both)))] * (len(shown) < samples)
            found = np.union1d(found, rows[near])
            each_part()
    return found, shown
