"""Stage 1: a monthly dump of Reddit comments as Arrow batches; lines that are not comments are counted by reason.

A dump is one JSON object per line. What differs from year to year: `created_utc` is an integer, a float or a string of
digits; `score` is null in some months, and may be a whole float; an answer to the post may have no `parent_id`; newer
dumps carry `_meta.was_deleted_later`. Exports of Pushshift's API may have the number of a comment as `parent_id`, and
ids with `t1_`. Some lines are broken, or contain half of a surrogate pair, which is not valid text.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from operator import attrgetter
from typing import Annotated, Any, BinaryIO, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.reddit.forms import opened
from mrs_suggest.common.errors import InputError, extra_needed
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.io.remote import BUFFER_BYTES
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.io.streams import HEAD, MAX_WINDOW, STRAY, DamagedError, HashedReader, packing_of, read_pieces

with extra_needed("msgspec", "reddit", "reading dumps"):
    import msgspec
try:
    import mrs_datasets.builders.reddit._lines as _lines
except ImportError:  # no C compiler: the same comments in about twice the time
    _lines = None

# One comment per row. Strings are valid UTF-8 without surrogates. No column holds an author: whether the author is a
# bot is decided while reading, and the name goes no further.
COMMENTS = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),  # without the prefix t1_
        pa.field("parent_id", pa.string(), nullable=False),  # t1_ID: a comment, t3_ID: the post, which is not a message
        pa.field("link_id", pa.string(), nullable=False),  # t3_ID of the post: the thread
        pa.field("body", pa.string(), nullable=False),  # Markdown; the dumps write & < > as &amp; &lt; &gt;
        pa.field("score", pa.int32()),  # null if the dump does not give it
        pa.field("is_bot", pa.bool_(), nullable=False),
        pa.field("deleted_later", pa.bool_(), nullable=False),  # newer dumps mark what was deleted after the crawl
        pa.field("created", pa.int64(), nullable=False),  # seconds since 1970, UTC
    ]
)
_ROWS = COMMENTS.set(5, pa.field("author", pa.string()))  # while lines are read; no author: empty
COMMENT_PREFIX, POST_PREFIX = "t1_", "t3_"

BATCH_ROWS = 4096  # more rows do not fit into the processor's cache, which costs a third
BATCH_BYTES = 64 << 20  # of JSON per batch, for months with very long comments
MAX_LINE = 16 << 20  # a comment has at most 40,000 characters (10,000 for most of the years)

# Some people have such names (Abbot, IAmARobot): the price of a rule that needs no list. The profile `paper`
# keeps every bot.
BOT_SUFFIX = "bot"
BOT_NAMES: list[str] = read_packaged("mrs_datasets.builders.reddit", "bots.yaml")

# Why a line is not a comment.
BROKEN = "broken JSON"
SURROGATE = "lone surrogate"
WRONG_TYPE = "wrong type"
MISSING = "missing field"
OUT_OF_RANGE = "out of range"
TOO_LONG = "too long"
BLANK = "blank line"

_MIN_SCORE, _MAX_SCORE = -(1 << 31), (1 << 31) - 1
_SCORE = msgspec.Meta(ge=_MIN_SCORE, le=_MAX_SCORE)
_MAX_TIME = 1 << 53
_TIME = msgspec.Meta(ge=-_MAX_TIME, le=_MAX_TIME)
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_DIGITS = re.compile(r"(-?[0-9]{1,15})(?:\.[0-9]*)?")


@dataclass
class ReadCounts:
    """Counts of reading one file, updated while batches are read.

    Attributes:
        lines: complete lines; always `comments` plus the sum of `rejected`.
        comments: rows yielded or about to be.
        bytes: of the compressed file, read so far.
        rejected: lines by the reason why they are not comments.
        truncated: why it could not be read to its end, or empty; all complete lines before that were.
        sha256: of its contents, 64 hex digits.
    """

    lines: int = 0
    comments: int = 0
    bytes: int = 0
    rejected: Counter[str] = field(default_factory=Counter)
    truncated: str = ""
    sha256: str = ""

    def reject(self, reason: str) -> None:
        self.lines += 1
        self.rejected[reason] += 1


class _Meta(msgspec.Struct, gc=False):
    was_deleted_later: bool | None = None


class Comment(msgspec.Struct, gc=False, kw_only=True):
    """The fields of a line that are used, in the forms of all years; others are only checked to be JSON."""

    id: str
    parent_id: Annotated[int, msgspec.Meta(ge=0)] | str | None = None
    link_id: str
    body: str
    created_utc: Annotated[int, _TIME] | float | str
    score: Annotated[int, _SCORE] | float | None = None
    author: str | None = None
    meta: _Meta | None = msgspec.field(default=None, name="_meta")


_Part: TypeAlias = tuple[bytes, ...] | list[Comment] | pa.RecordBatch  # `_lines` found, msgspec read, `_ROWS`
_TEXTS = ("id", "parent_id", "link_id", "body")  # must not contain half a surrogate pair
_READ = (*_TEXTS, "created_utc", "score", "author", "_meta")
_decoder = msgspec.json.Decoder(Comment)


def read_comments(
    path: Location, counts: ReadCounts, find_bots: bool = True, skipped: Collection[int] = ()
) -> Iterator[pa.RecordBatch]:
    """Yield the comments of a dump in batches with the schema `COMMENTS`.

    Args:
        path: `RC_*.zst` (windows up to 2 GiB, several frames), xz, bz2, gzip or plain; detected from the first bytes.
        counts: updated on the way.
        find_bots: if false, `is_bot` is always false, which saves some time.
        skipped: frames of zstd to leave out, by number (see `AlteredError`).

    Memory: the decoder's (for zstd the window of the dump, up to 2 GiB), one line of `MAX_LINE` bytes and one batch.

    Raises:
        InputError: the file is missing, empty, not a dump of comments, or cannot be read at all. A file that ends early
            or is damaged yields what comes before, and `counts.truncated` says why.
        AlteredError: the contents of a zstd frame, which were yielded, do not match its checksum: discard what was
            read of the file, and begin again with the frame among `skipped`.
    """
    with opened(path) as raw:
        hashed = HashedReader(raw)
        file = io.BufferedReader(hashed, BUFFER_BYTES)
        try:
            for rows in _read(file, read_pieces(file, _packing(path, file), skipped), counts):
                bots = is_bot(rows["author"]) if find_bots else pa.repeat(False, len(rows))
                yield rows.set_column(5, COMMENTS.field("is_bot"), bots)
            damage = ""
        except DamagedError as error:
            damage = str(error)
        except MemoryError:
            raise InputError(
                f"{path}: reading takes more memory than is free; a zstd window alone has up to "
                f"{MAX_WINDOW / 1e9:.1f} GB; use fewer workers, or close other programs."
            ) from None
        counts.sha256 = hashed.sha256()
    if not damage and skipped and not counts.comments:
        damage = "its frames do not match their checksums"
    if damage and not counts.lines:
        raise InputError(f"{path}: no complete line could be read ({damage}); fetch it again.")
    counts.truncated = damage
    if damage:
        return
    if not counts.lines:
        raise InputError(f"{path}: has no lines; expected a dump of Reddit comments (RC_*).")
    if not counts.comments:
        raise InputError(
            f"{path}: none of its {counts.lines:,} lines is a comment (most often: "
            f"{counts.rejected.most_common(1)[0][0]}); expected a dump of Reddit comments (RC_*)."
        )


def _read(file: BinaryIO, pieces: Iterable[bytes], counts: ReadCounts) -> Iterator[pa.RecordBatch]:
    """The rows (schema `_ROWS`) of each batch of a file; damage is raised after everything before it."""
    parts: list[_Part] = []
    rows = size = 0
    damage: DamagedError | None = None
    try:
        for block in whole_lines(pieces, counts):
            broken, before = counts.rejected[BROKEN], counts.comments
            parts += read_lines(block, counts)
            rows += counts.comments - before
            size += len(block)
            counts.bytes = file.tell()
            if not block.endswith(b"\n") and counts.rejected[BROKEN] > broken:
                damage = DamagedError("the file ends in the middle of a line")
            if rows >= BATCH_ROWS or size >= BATCH_BYTES:
                table = _joined(parts)
                full = rows if size >= BATCH_BYTES else rows // BATCH_ROWS * BATCH_ROWS
                yield from table.slice(0, full).to_batches(BATCH_ROWS)
                parts, rows, size = table.slice(full).to_batches(), rows - full, 0
    except DamagedError as error:
        damage = error
    counts.bytes = file.tell()
    yield from _joined(parts).to_batches(BATCH_ROWS)
    if damage:
        raise damage


def _joined(parts: Iterable[_Part]) -> pa.Table:
    batches: list[pa.RecordBatch] = []
    for kind, alike in groupby(parts, type):
        found: list[Any] = list(alike)
        batches += found if kind is pa.RecordBatch else [(_from_columns if kind is tuple else _from_rows)(found)]
    return pa.Table.from_batches(batches, _ROWS).combine_chunks()


def whole_lines(pieces: Iterable[bytes], counts: ReadCounts) -> Iterator[bytes]:
    """Cut pieces into blocks of complete lines, one block per piece; a last line without a line end is its own block.

    A line of more than `MAX_LINE` bytes is counted as too long, and not kept in memory, unless it is inside one piece.
    An empty piece stands for something that was left out: a line begun before it is broken.
    """
    held: list[bytes | memoryview] = []  # the beginning of a line
    size = 0  # its length, also when it is too long to keep
    for piece in pieces:
        if not piece:
            if size:
                counts.reject(BROKEN if size <= MAX_LINE else TOO_LONG)
            held, size = [], 0
            continue
        first = piece.find(b"\n")
        if first < 0 and b"\r" in piece:  # lines that end with CR alone
            piece = piece.replace(b"\r", b"\n")
            first = piece.find(b"\n")
        if first < 0:
            size += len(piece)
            held = [*held, piece] if size <= MAX_LINE else []
            continue
        if size + first > MAX_LINE:
            counts.reject(TOO_LONG)
            held, piece = [], piece[first + 1 :]
        last = piece.rfind(b"\n") + 1
        if last:
            yield b"".join([*held, memoryview(piece)[:last]])
            held = []
        held.append(memoryview(piece)[last:])
        size = len(piece) - last
    if size > MAX_LINE:
        counts.reject(TOO_LONG)
    elif size:
        yield b"".join(held)


def read_lines(block: bytes, counts: ReadCounts) -> Iterator[_Part]:
    """The comments of a block of whole lines: columns of plain lines, and what msgspec makes of the others."""
    start = 0
    while start < len(block):
        end, columns = _lines.scan(block, start) if _lines else (len(block), ())
        part = columns or decode_lines(block[start:end], counts)
        found = len(columns[-1] if columns else part)
        counts.lines += found
        counts.comments += found
        yield part
        start = end


def decode_lines(block: bytes, counts: ReadCounts) -> list[Comment]:
    """The comments of some lines, as `COMMENTS` has them; every other line is counted by its reason."""
    found = (_decode_or_count(line, counts) for line in block.removesuffix(b"\n").split(b"\n"))
    return [row for row in found if row and _settle(row, counts)]


def _decode_or_count(line: bytes, counts: ReadCounts) -> Comment | None:
    try:
        try:
            return _decoder.decode(line.lstrip(STRAY))
        except msgspec.ValidationError:
            raise
        except (ValueError, RecursionError):
            return _decode_surrogates(line)
    except msgspec.ValidationError as error:
        text = str(error)
        if text.startswith("Object missing required field"):
            counts.reject(MISSING)
        elif "out of range" in text or text.startswith(("Expected `int` <=", "Expected `int` >=")):
            counts.reject(OUT_OF_RANGE)
        else:
            counts.reject(WRONG_TYPE)
    except UnicodeEncodeError:
        counts.reject(SURROGATE)
    except (ValueError, RecursionError):
        counts.reject(BROKEN if line.strip() else BLANK)
    return None


def _decode_surrogates(line: bytes) -> Comment:
    """The comment of a line with half a surrogate pair, which `json` lets pass, in its author or where nothing is read;
    UnicodeEncodeError if a text that is read has one."""
    fields = json.loads(line.decode("utf-8", "surrogatepass"), parse_constant=_no_constant)
    if isinstance(fields, dict):
        fields = {name: fields[name] for name in _READ if name in fields}
        for name in _TEXTS:
            if isinstance(fields.get(name), str):
                fields[name].encode()
        author = fields.get("author")
        if isinstance(author, str) and _HALF_PAIR.search(author):
            fields["author"] = None
    return _decoder.decode(json.dumps(fields, ensure_ascii=False).encode("utf-8", "replace"))


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _settle(row: Comment, counts: ReadCounts) -> bool:
    """Convert the fields to those of `COMMENTS`; if one cannot be, count the row and return false."""
    if row.parent_id is None:
        row.parent_id = row.link_id
    elif isinstance(row.parent_id, int):  # always of a comment
        row.parent_id = COMMENT_PREFIX + np.base_repr(row.parent_id, 36).lower()
    score: float | None = row.score
    if isinstance(score, float):
        if not score.is_integer():
            counts.reject(WRONG_TYPE)
            return False
        if not _MIN_SCORE <= score <= _MAX_SCORE:
            counts.reject(OUT_OF_RANGE)
            return False
        row.score = int(score)
    value: float | str = row.created_utc
    if isinstance(value, str):
        found = _DIGITS.fullmatch(value)
        if not found:
            counts.reject(WRONG_TYPE)
            return False
        row.created_utc = int(found[1])
    elif abs(value) > _MAX_TIME:
        counts.reject(OUT_OF_RANGE)
        return False
    else:
        row.created_utc = int(value)
    return True


def _from_columns(parts: Iterable[tuple[bytes, ...]]) -> pa.RecordBatch:
    """The rows that `_lines.scan` found."""
    joined = [b"".join(column) for column in zip(*parts, strict=True)]
    numbers = [np.frombuffer(column, kind) for column, kind in zip(joined[5:], "iiiiiiq??", strict=True)]
    score, created, has_score, deleted = numbers[5:]
    texts: list[pa.Array] = []
    for values, lengths in zip(joined[:5], numbers[:5], strict=True):
        starts = np.append(np.int32(0), np.cumsum(lengths, dtype=np.int32))
        texts.append(pa.StringArray.from_buffers(len(lengths), pa.py_buffer(starts), pa.py_buffer(values)))
    arrays = [*texts[:4], pa.array(score, mask=~has_score), texts[4], pa.array(deleted), pa.array(created)]
    return pa.RecordBatch.from_arrays(arrays, schema=_ROWS)


def _from_rows(parts: Iterable[list[Comment]]) -> pa.RecordBatch:
    rows = list(chain.from_iterable(parts))
    columns: list[list[Any]] = [
        [row.id.removeprefix(COMMENT_PREFIX) for row in rows],
        *(list(map(attrgetter(name), rows)) for name in ("parent_id", "link_id", "body", "score")),
        [row.author or "" for row in rows],
        [row.meta is not None and row.meta.was_deleted_later is True for row in rows],
        [row.created_utc for row in rows],
    ]
    return pa.RecordBatch.from_arrays(list(map(pa.array, columns, _ROWS.types)), schema=_ROWS)


def is_bot(authors: pa.Array) -> pa.Array:
    """Whether each author name is a bot's; a missing name (null) is not.

    >>> is_bot(pa.array(["AutoModerator", "weather_bot", "Bottle", "[deleted]", None])).to_pylist()
    [True, True, False, False, False]
    """
    names = pc.ascii_lower(authors)
    known = pc.is_in(names, value_set=pa.array(BOT_NAMES, pa.string()))
    return pc.fill_null(pc.or_(known, pc.ends_with(names, BOT_SUFFIX)), False)


def dump_sha256(path: Location) -> str:
    """SHA-256 of a dump, 64 hex digits."""
    with opened(path) as file:
        return HashedReader(file).sha256()


def _packing(path: Location, file: BinaryIO) -> str:
    head = file.read(HEAD)
    file.seek(0)
    if not head:
        raise InputError(f"{path}: the file is empty; fetch it again.")
    packing = packing_of(head)
    if packing is None:
        raise InputError(
            f"{path}: expected a dump of Reddit comments, JSON lines, plain or compressed by zstd, xz, bz2 or gzip; "
            f"found a file that starts with {head[:4].hex(' ')}."
        )
    return packing
