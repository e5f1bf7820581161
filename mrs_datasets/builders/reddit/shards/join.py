"""Third stage of a build from dumps: join replies to the comments they answer, one bucket of all months at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrs_datasets.builders.reddit.schema import COMMENT_PREFIX, POST_PREFIX
from mrs_datasets.builders.reddit.shards.partition import read_bucket, read_stats, stable_hashes
from mrs_suggest.common.errors import InputError, MissingExtraError
from mrs_suggest.common.io.storage import Location

PAIRS = pa.schema(
    [
        ("message", pa.string()),
        ("reply", pa.string()),
        ("thread", pa.uint64()),  # xxHash64 of the post's id
        ("order", pa.uint64()),  # xxHash64 of the reply's id
        ("parent", pa.uint64()),  # xxHash64 of the message's id
        ("month", pa.int32()),  # of the reply, UTC: 201801
    ]
)
DUPLICATE = "comment twice"
POST = "parent is a post"
MISSING = "parent not in the data"
SELF = "answers itself"
CYCLE = "answers in a circle"
_CHUNK_BYTES = 64 << 20  # of one column's text in the pairs
_LAST_SECOND = 253_402_300_799  # of the year 9999


@dataclass(frozen=True)
class JoinCounts:
    """The outcomes of a bucket's comments: `comments == pairs + sum(dropped.values())`.

    Attributes:
        dropped: by reason, all of which are always there: `DUPLICATE` (a repeated id in the thread), `POST` (the
            comment answers a post), `MISSING` (it answers a comment that was filtered out, is in a month that was not
            given, or is listed under another post), `SELF` (its parent is its own id), `CYCLE` (the comment it answers
            answers it, perhaps via others: one of them must be wrong, and it is unknown which).
    """

    comments: int
    pairs: int
    dropped: dict[str, int]


def join_bucket(files: Sequence[Location], bucket: int) -> tuple[pa.Table, JoinCounts]:
    """Pairs of a message and a reply, from one bucket of the months' partition files.

    A reply is joined to the comment of the same thread (`link_id`) whose id is its `parent_id`, in any month and order.
    Of repeated comments only the first counts, in the order of the files and of their rows. The number of buckets
    does not change the pairs.

    The whole bucket is in memory: about 1.1 KB per comment of 250 bytes (`PartitionStats` has the buckets' sizes).

    Returns:
        A table with the schema `PAIRS`, one row per reply, in chunks of bounded size, in the order of `order` and then
        `thread`, which shuffles the pairs in the same way in every build; and the counts. It has no ids, but hashes
        of such short ids can be reversed by trying all of them: do not publish `thread`, `order` and `parent`.

    Raises:
        InputError: there is no file, one is not a complete partition file, or they differ in the number of buckets.
        ValueError: there is no such bucket.
    """
    if not files:
        raise InputError("there is no month to join; give at least one partition file.")
    buckets = len(read_stats(files[0]).bucket_comments)
    return join_comments(pa.concat_tables([read_bucket(path, bucket, buckets) for path in files]))


def join_comments(comments: pa.Table) -> tuple[pa.Table, JoinCounts]:
    """The join of `join_bucket`, of comments (schema `PARTITION`) that are in memory, in the order of files and rows.

    All comments of a thread must be among them.
    """
    links = comments["link_id"].combine_chunks().dictionary_encode()
    codes = links.indices.to_numpy()
    rows, counts = _matched_rows(comments, codes)
    parent, order = (stable_hashes(comments["id"].take(pa.array(side)).combine_chunks()) for side in rows)
    thread = stable_hashes(links.dictionary)[codes[rows[1]]]
    sorting = np.lexsort((thread, order))
    rows, order, parent, thread = rows[:, sorting], order[sorting], parent[sorting], thread[sorting]
    month = _months(comments["created"].to_numpy()[rows[1]])
    texts = _texts(comments["body"], rows)
    del comments, links
    batches, start = [], 0
    for message, reply in texts:
        end = start + len(message)
        columns = [message, reply, *(pa.array(column[start:end]) for column in (thread, order, parent, month))]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=PAIRS))
        start = end
    return pa.Table.from_batches(batches, PAIRS), counts


def _matched_rows(comments: pa.Table, links: NDArray[np.int32]) -> tuple[NDArray[np.int64], JoinCounts]:
    """The rows of messages and of the replies to them (2, pairs), in the order of the replies; and the counts.

    Args:
        links: a number for the thread of every comment, shape (comments,).
    """
    pl = _polars()
    keys = pl.DataFrame(
        {
            "link": links,
            "id": pl.from_arrow(comments["id"]),
            "parent_id": pl.from_arrow(comments["parent_id"]),
        }
    ).with_row_index("row")
    comments_read = keys.height
    once = keys.unique(["link", "id"], keep="first", maintain_order=True)
    del keys
    to_comments = once.filter(pl.col("parent_id").str.starts_with(COMMENT_PREFIX)).select(
        "link", "row", id=pl.col("parent_id").str.slice(len(COMMENT_PREFIX))
    )
    to_posts = once.select(pl.col("parent_id").str.starts_with(POST_PREFIX).sum()).item()
    messages = once.select("link", "id", message="row")
    pairs = to_comments.join(messages, on=["link", "id"], how="inner", maintain_order="left")
    rows = np.stack([pairs["message"].to_numpy(), pairs["row"].to_numpy()]).astype(np.int64)
    itself = rows[0] == rows[1]
    missing = once.height - to_posts - rows.shape[1]
    rows = rows[:, ~itself]
    circular = _in_circles(rows, comments_read)
    rows = rows[:, ~circular]
    dropped = {
        DUPLICATE: comments_read - once.height,
        POST: to_posts,
        MISSING: missing,
        SELF: int(itself.sum()),
        CYCLE: int(circular.sum()),
    }
    return rows, JoinCounts(comments_read, rows.shape[1], dropped)


def _in_circles(rows: NDArray[np.int64], comments: int) -> NDArray[np.bool_]:
    """Which replies (of rows (2, pairs)) reach themselves, from parent to parent.

    Steps are doubled: after k rounds a reply points to its 2^k-th ancestor. A reply that still has an ancestor after as
    many steps as there are replies leads to a circle, and every place of a circle is reached by another of its places.
    """
    parent = np.full(comments + 1, comments)  # the last: parent of a comment without a parent
    parent[rows[1]] = rows[0]
    above = parent.copy()
    left = rows[1]
    steps = 1
    while len(left) and steps <= rows.shape[1]:
        above[left] = above[above[left]]
        left = left[above[left] != comments]
        steps *= 2
    reached = np.zeros(comments + 1, bool)
    reached[above[left]] = True
    return np.asarray(reached[rows[1]])


def _texts(bodies: pa.ChunkedArray, rows: NDArray[np.int64]) -> Iterator[tuple[pa.Array, pa.Array]]:
    """The texts of rows (2, pairs), chunk by chunk, since Arrow's string arrays are limited to 2 GiB."""
    pl = _polars()
    texts = pl.from_arrow(bodies, rechunk=False)
    sizes = texts.str.len_bytes().to_numpy()[rows].max(axis=0, initial=0)
    chunk = np.cumsum(sizes, dtype=np.int64) // _CHUNK_BYTES
    ends = [*(np.flatnonzero(np.diff(chunk)) + 1).tolist(), rows.shape[1]]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        message, reply = (
            texts.gather(side[start:end]).to_arrow(compat_level=pl.CompatLevel.oldest()).cast(pa.string())
            for side in rows
        )
        yield message, reply


def _months(created: NDArray[np.int64]) -> NDArray[np.int32]:
    """Seconds since 1970 as year and month, 201801; dates outside the calendar become its first or last month."""
    months = np.clip(created, 0, _LAST_SECOND).astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    return ((1970 + months // 12) * 100 + months % 12 + 1).astype(np.int32)


def _polars() -> ModuleType:
    try:
        import polars
    except ImportError:
        raise MissingExtraError("polars", "reddit", "a build from dumps") from None
    return polars
