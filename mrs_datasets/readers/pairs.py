"""Tab-separated message-reply pairs, and the folder of `LANG.tsv` files with its 80/10/10 split."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from mrs_core.errors import InputError
from mrs_core.languages import LANGUAGES, require_language
from mrs_core.text import normalise_reply
from mrs_datasets.readers import Chunk, Chunks
from mrs_datasets.readers.lines import read_lines
from mrs_datasets.report import Report
from mrs_datasets.responses import MAX_RESPONSES, count_responses
from mrs_datasets.schema import MT_PREFIX, PAIR_SCHEMA, SPLITS, responses_config

CHUNK_ROWS = 100_000
Pair = tuple[str, str]


def read_pairs(path: Path, report: Report, part: str) -> Iterator[Pair]:
    """Yield the (message, reply) pairs of a tab-separated file; further columns are ignored.

    Rows whose message or reply has no character but white space are dropped and counted in `report` under `part`.

    Raises:
        InputError: a line has fewer than two columns, or the file holds no pair.
    """
    rows = 0
    for number, line in read_lines(path):
        message, tab, rest = line.partition("\t")
        if not tab:
            raise InputError(
                f"{path}, line {number}: expected message and reply separated by a tab, found one column "
                f"({line[:60]!r})."
            )
        rows += 1
        reply = rest.partition("\t")[0]
        if not message.strip() or not reply.strip():
            report.drop(part, "empty message" if not message.strip() else "empty reply")
            continue
        yield message, reply
    if not rows:
        raise InputError(f"{path}: the file is empty; expected one message, tab, reply a line.")


def split_of(message: str) -> str:
    """The split of a message: 80/10/10 by a stable hash of its normalised form.

    All pairs of one message, and of messages that differ in case or punctuation alone, fall on one side, on every
    machine and in every version (BLAKE2b, 8 bytes, modulo 10).
    """
    bucket = _digest(message) % 10
    return SPLITS[0] if bucket < 8 else SPLITS[bucket - 7]


def split_pairs(
    language: str,
    pairs: Iterable[Pair],
    report: Report,
    min_reply_count: int = 1,
    max_responses: int = MAX_RESPONSES,
) -> Chunks:
    """Yield the three splits of `pairs` and the response set counted from the training replies.

    Raises:
        InputError: there are fewer than three different messages, or no reply is frequent enough.
    """
    buffers: dict[str, list[Pair]] = {split: [] for split in SPLITS}
    replies: Counter[str] = Counter()
    whole = True  # nothing was yielded yet
    for message, reply in pairs:
        split = split_of(message)
        buffers[split].append((message, reply))
        if len(buffers[split]) == CHUNK_ROWS:
            whole = False
            yield _counted_chunk(language, split, buffers[split], replies)
            buffers[split].clear()
    if whole and not all(buffers.values()):
        _fill_empty_splits(language, buffers, report)
    for split, rows in buffers.items():
        yield _counted_chunk(language, split, rows, replies)
    responses = count_responses(replies, min_reply_count, max_responses)
    if not responses.num_rows:
        raise InputError(f"{language}: no reply comes {min_reply_count} times in training; lower --min-reply-count.")
    yield responses_config(language), "train", responses


def _fill_empty_splits(language: str, buffers: dict[str, list[Pair]], report: Report) -> None:
    """Give an empty split of a tiny source one message, the one with the largest hash of the largest split."""
    for split in SPLITS:
        if buffers[split]:
            continue
        messages = {name: {normalise_reply(message) for message, _ in rows} for name, rows in buffers.items()}
        donor = max(SPLITS, key=lambda name: len(messages[name]))
        if len(messages[donor]) < 2:
            raise InputError(f"{language}: the source has too few different messages for train, validation and test.")
        moved = max(messages[donor], key=_digest)
        buffers[split] = [pair for pair in buffers[donor] if normalise_reply(pair[0]) == moved]
        buffers[donor] = [pair for pair in buffers[donor] if normalise_reply(pair[0]) != moved]
        report.notes.append(f"{language}: few messages, so one was moved to fill the {split} split.")


def _digest(message: str) -> int:
    digest = hashlib.blake2b(normalise_reply(message).encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def _counted_chunk(language: str, split: str, rows: list[Pair], replies: Counter[str]) -> Chunk:
    if split == SPLITS[0]:
        replies.update(reply for _, reply in rows)
    return pair_chunk(language, split, rows)


def pair_chunk(config: str, split: str, rows: list[Pair]) -> Chunk:
    """One chunk of a pair config."""
    columns = [pa.array([row[column] for row in rows], pa.string()) for column in (0, 1)]
    return config, split, pa.table(columns, PAIR_SCHEMA)


def read_pair_folder(
    folder: Path, report: Report, min_reply_count: int = 1, max_responses: int = MAX_RESPONSES
) -> Chunks:
    """Read a folder of `LANG.tsv` files (message, tab, reply), also `.tsv.gz` and `.tsv.xz`; `mt-LANG.tsv` is for
    machine-translated training pairs.

    Raises:
        InputError: no such file, a name that is no language of MRS, or a broken line.
    """
    files = {path: path.name.split(".tsv")[0] for path in sorted(folder.iterdir()) if is_tsv(path)}
    if not files:
        raise InputError(
            f"{folder}: neither the official layout (train/, valid/, test/) nor LANG.tsv files (LANG one of "
            f"{' '.join(LANGUAGES)}) were found."
        )
    for path, config in files.items():
        require_language(config.removeprefix(MT_PREFIX), str(path))
    names = Counter(files.values())
    for path, config in files.items():
        if names[config] > 1:
            raise InputError(f"{path}: there is more than one file for {config}; keep one of them.")
    for path, config in files.items():
        if config.startswith(MT_PREFIX):
            yield from chunked(config, "train", read_pairs(path, report, f"{config}/train"))
        else:
            pairs = read_pairs(path, report, config)
            yield from split_pairs(config, pairs, report, min_reply_count, max_responses)


def chunked(config: str, split: str, pairs: Iterable[Pair]) -> Chunks:
    """Pairs of one config and split in chunks of bounded size (one empty chunk where there are none)."""
    rows: list[Pair] = []
    for pair in pairs:
        rows.append(pair)
        if len(rows) == CHUNK_ROWS:
            yield pair_chunk(config, split, rows)
            rows.clear()
    yield pair_chunk(config, split, rows)


def is_tsv(path: Path) -> bool:
    """Whether the reader takes the file: `.tsv`, `.tsv.gz` or `.tsv.xz`."""
    return path.is_file() and path.name.endswith((".tsv", ".tsv.gz", ".tsv.xz"))
