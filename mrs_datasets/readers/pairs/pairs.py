"""Message-reply pairs: the official archive's files, and an 80/10/10 split for sources without splits."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa

from mrs_datasets.prepared.report import Report
from mrs_datasets.prepared.responses import MAX_RESPONSES, count_responses
from mrs_datasets.prepared.schema import PAIR_SCHEMA, SPLITS, responses_config
from mrs_datasets.readers import Chunk, Chunks
from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.text.text import is_blank, normalise_reply

CHUNK_ROWS = 100_000
Pair = tuple[str, str]


def read_pairs(path: Path, report: Report, part: str) -> Iterator[Pair]:
    """Yield the (message, reply) pairs of a tab-separated file of the official archive; further columns are ignored.

    Rows whose message or reply is blank are dropped and counted in `report` under `part`.
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
        if is_blank(message) or is_blank(reply):
            report.drop(part, "empty message" if is_blank(message) else "empty reply")
            continue
        yield message, reply
    if not rows:
        raise InputError(f"{path}: the file is empty; expected one message, tab, reply per line.")


def split_of(message: str) -> str:
    """The split of a message: 80/10/10 by a stable hash of its normalised form.

    All pairs of one message, and of messages that differ only in case or punctuation, are in the same split, on every
    machine and in every version (BLAKE2b, 8 bytes, modulo 10).
    """
    bucket = _digest(message) % 10
    return SPLITS[0] if bucket < 8 else SPLITS[bucket - 7]


def split_pairs(
    language: str, pairs: Iterable[Pair], report: Report, min_reply_count: int = 1, max_responses: int = MAX_RESPONSES
) -> Chunks:
    """Yield the three splits of `pairs`, by `split_of`, and the response set counted from the training replies."""
    placed = ((split_of(message), (message, reply)) for message, reply in pairs)
    yield from placed_pairs(language, placed, report, min_reply_count, max_responses)


def placed_pairs(
    language: str, pairs: Iterable[tuple[str, Pair]], report: Report, min_reply_count: int, max_responses: int
) -> Chunks:
    """`split_pairs` for pairs that come with their split: (train, validation or test; pair)."""
    buffers: dict[str, list[Pair]] = {split: [] for split in SPLITS}
    replies: Counter[str] = Counter()
    whole = True  # nothing has been yielded yet
    for split, pair in pairs:
        buffers[split].append(pair)
        if len(buffers[split]) == CHUNK_ROWS:
            whole = False
            replies.update(reply for _, reply in buffers[split] if split == SPLITS[0])
            yield pair_chunk(language, split, buffers[split])
            buffers[split].clear()
    if whole and not all(buffers.values()):
        _fill_empty_splits(language, buffers, report)
    replies.update(reply for _, reply in buffers[SPLITS[0]])
    for split, rows in buffers.items():
        yield pair_chunk(language, split, rows)
    responses = count_responses(replies, min_reply_count, max_responses)
    if not responses.num_rows:
        raise InputError(f"{language}: no reply occurs {min_reply_count} times in training; lower --min-reply-count.")
    yield responses_config(language), "train", responses


def _fill_empty_splits(language: str, buffers: dict[str, list[Pair]], report: Report) -> None:
    """Give an empty split of a tiny source one message, the one with the largest hash of the largest split."""
    for split in SPLITS:
        if buffers[split]:
            continue
        messages = {name: {normalise_reply(message) for message, _ in rows} for name, rows in buffers.items()}
        donor = max(SPLITS, key=lambda name: len(messages[name]))
        if len(messages[donor]) < 2:
            found = len(set().union(*messages.values()))
            raise InputError(f"{language}: expected 3 different messages, one for each split; found {found}.")
        moved = max(messages[donor], key=_digest)
        buffers[split] = [pair for pair in buffers[donor] if normalise_reply(pair[0]) == moved]
        buffers[donor] = [pair for pair in buffers[donor] if normalise_reply(pair[0]) != moved]
        report.notes.append(f"{language}: few messages, so one was moved to fill the {split} split.")


def _digest(message: str) -> int:
    digest = hashlib.blake2b(normalise_reply(message).encode("utf-8"), digest_size=8).digest()
    return int.from_bytes(digest, "big")


def pair_chunk(config: str, split: str, rows: list[Pair]) -> Chunk:
    columns = [pa.array([row[column] for row in rows], pa.string()) for column in (0, 1)]
    return config, split, pa.table(columns, PAIR_SCHEMA)


def chunked(config: str, split: str, pairs: Iterable[Pair]) -> Chunks:
    """Pairs of one config and split in chunks of bounded size."""
    yield pair_chunk(config, split, [])  # so that a split without pairs is known, too
    for rows in in_batches(pairs, CHUNK_ROWS):
        yield pair_chunk(config, split, rows)
