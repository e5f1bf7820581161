"""Stages 3 to 5 for buckets of all months: join replies to the comments they answer, mask, identify, clean.

The language is identified from a message and its reply as one text (Zhang et al. 2021, section 2).
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import compress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from mrs_datasets.builders.pipeline.stages import (
    Advance,
    Engine,
    Shard,
    ShardCounts,
    run_stage,
    summed,
    write_array,
    write_batches,
)
from mrs_datasets.builders.reddit.clean import clean_pairs
from mrs_datasets.builders.reddit.columns import BATCH_TEXTS, change_in_turn
from mrs_datasets.builders.reddit.duplicates import keyed_pairs, signature_file
from mrs_datasets.builders.reddit.partition import PARTITION, bucket_sizes, mix, read_buckets, stable_hashes
from mrs_datasets.builders.reddit.plan import KEPT, LOW_SCORE, UNKNOWN_LANGUAGE, BucketPairs, Build, Outcomes, Settings
from mrs_datasets.builders.reddit.read import COMMENT_PREFIX, POST_PREFIX
from mrs_datasets.catalogue import CONTEXT
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.text.language_id import UNDETERMINED, LanguageIdentifier
from mrs_suggest.common.text.languages import LANGUAGES
from mrs_suggest.common.text.masks import MASK_PATTERN, MASKS

STAGE = "pairs"
NOT_IN_MRS = "not a language of MRS"
OTHER_MONTH = "English of another month"
BATCH_ROWS = 1 << 16  # of a file of pairs
GROUP_COMMENTS = 1 << 16  # of small buckets that are joined together: .1 GB; starting a join takes as long as 1,000
LEAST_GROUPS = 16  # that a small build has for its workers
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
# Why a comment makes no pair.
DUPLICATE = "comment twice"  # a repeated id in the thread
POST = "parent is a post"
MISSING = "parent not in the data"  # filtered out, in a month that was not given, or listed under another post
SELF = "answers itself"
CYCLE = "answers in a circle"  # perhaps via others: one of them must be wrong, and it is unknown which
_LARGE = pa.schema([*(text.with_type(pa.large_string()) for text in list(PARTITION)[:-1]), PARTITION.field("created")])
_CHUNK_BYTES = 64 << 20  # of one column's text in the pairs
_LAST_SECOND = 253_402_300_799  # of the year 9999
_NOT_WORDS = rf"[\r\n]|{MASK_PATTERN}"


def make_pairs(build: Build, months: Sequence[Location], engine: Engine) -> tuple[BucketPairs, Outcomes]:
    """Make the pairs of every bucket; return the kept ones, and how many of each language have which outcome in all."""
    folder, funnel, clean = build.work.stage(STAGE), build.funnel, build.settings.clean
    shards = []
    for group in in_groups(np.sum([bucket_sizes(path) for path in months], axis=0)):
        target = folder / f"bucket-{group.start:05d}.arrow"
        work = partial(pair_shard, months, group, target, build.settings, build.language_model)
        shards.append(Shard(target.stem, len(group), target, work, signature_file(target) if clean else None))
    counts = run_stage(build.work, STAGE, shards, engine, " buckets")
    funnel.add("join", sum(c["comments"] for c in counts), summed(c["dropped"] for c in counts))
    outcomes: Outcomes = Counter()
    for found in counts:
        for language, outcome, pairs in found["outcomes"]:
            outcomes[language, outcome] += pairs
    dropped: Counter[str] = Counter()
    for (_, outcome), pairs in sorted(outcomes.items()):
        if outcome != KEPT:
            dropped[outcome] += pairs
    if other := dropped[OTHER_MONTH]:
        kept = ":".join(build.settings.english_months or ())
        warning = f"English pairs outside of {kept} were dropped ({other:,}); --english-months all keeps them."
        funnel.warnings.append(warning)
        build.say(f"warning: {warning}")
    funnel.repairs = dict(sorted(summed(c["repairs"] for c in counts).items()))
    funnel.add("language and cleaning" if clean else "language", outcomes.total(), dropped)
    return {shard.output: found["kept"] for shard, found in zip(shards, counts, strict=True)}, outcomes


def in_groups(sizes: NDArray[np.int64]) -> list[range]:
    """The buckets, of (buckets,) comments, in groups of neighbours that are joined together, whatever the workers."""
    most, groups, start, held = min(GROUP_COMMENTS, int(sizes.sum()) // LEAST_GROUPS), list[range](), 0, 0
    for bucket, size in enumerate(sizes.tolist()):
        if held and held + size > most:
            groups.append(range(start, bucket))
            start, held = bucket, 0
        held += size
    return [*groups, range(start, len(sizes))]


def pair_shard(
    months: Sequence[Location], group: range, target: Location, settings: Settings, model: Path, advance: Advance
) -> ShardCounts:
    """Write the pairs of neighbouring buckets of all months, ordered by language and bucket; return the counts of all
    steps, and `kept`: language -> pairs of each bucket."""
    pairs, unpaired = join_buckets(months, group, settings.buckets)
    joined = pairs.num_rows
    if settings.clean:  # cleaning needs the texts without masks
        pairs = pairs.append_column("raw message", pairs["message"]).append_column("raw reply", pairs["reply"])
    pairs, outcomes = identify_pairs(mask_pairs(pairs), _identifier(model), settings.min_language_score)
    pairs = _of_mrs(pairs, settings, outcomes)
    repairs: Counter[str] = Counter()
    if settings.clean:
        for side in ("message", "reply"):
            pairs = pairs.set_column(pairs.schema.get_field_index(side), side, pairs[f"raw {side}"])
        pairs, cleaned = clean_pairs(pairs.drop_columns(["raw message", "raw reply"]), repairs=repairs)
        for (language, outcome), count in cleaned.items():
            if outcome != KEPT:
                outcomes[language, outcome] += count
                outcomes[language, KEPT] -= count
    pairs, kept = _by_language(pairs, group, settings.buckets)  # already sorted by bucket, `order` and `thread`
    if settings.context:
        pairs = with_context(pairs, settings.context)
    if settings.clean:
        pairs, signed = keyed_pairs(pairs)
        write_array(signature_file(target), signed)
    write_batches(target, pairs.schema, pairs.to_batches(max_chunksize=BATCH_ROWS))
    advance(len(group))
    return {
        "kept": kept,
        "comments": joined + sum(unpaired.values()),
        "dropped": unpaired,
        "pairs": joined,
        "repairs": dict(repairs),
        "outcomes": [(language, outcome, count) for (language, outcome), count in sorted(outcomes.items()) if count],
    }


@lru_cache(maxsize=1)
def _identifier(model: Path) -> LanguageIdentifier:
    """The model, loaded once per process, not for every bucket."""
    return LanguageIdentifier.open(model)


def mask_pairs(pairs: pa.Table) -> pa.Table:
    """Mask links, names and addresses, in every profile: links contain ids, and the data must have no user names."""
    for side in ("message", "reply"):
        texts = pa.chunked_array([change_in_turn(chunk, MASKS)[0] for chunk in pairs[side].chunks], pa.string())
        pairs = pairs.set_column(pairs.schema.get_field_index(side), side, texts)
    return pairs


def identify_pairs(pairs: pa.Table, identifier: LanguageIdentifier, min_score: float) -> tuple[pa.Table, Outcomes]:
    """Keep the pairs whose language is clear, with a new last column `language`.

    The text is message, space, reply, with a space for every line break and every mask: a link has no language, and
    its mask is not a word. No language is left out here: see `plan.languages_with`.

    Args:
        pairs: columns message and reply, masked; others are kept.
        min_score: a pair is kept if the probability of its language is above (not at) it.

    Returns:
        The kept pairs in their order, and the outcomes per language; a pair that cannot be identified counts as `und`.
    """
    outcomes: Outcomes = Counter()
    languages: list[str] = []
    kept: list[bool] = []
    for batch in pairs.select(["message", "reply"]).to_batches(max_chunksize=BATCH_TEXTS):
        answers = identifier.identify(_words(batch))
        clear = [score > min_score and language != UNDETERMINED for language, score in answers]
        outcomes.update(
            (language, KEPT if clearly else UNKNOWN_LANGUAGE if language == UNDETERMINED else LOW_SCORE)
            for (language, _), clearly in zip(answers, clear, strict=True)
        )
        languages += compress((language for language, _ in answers), clear)
        kept += clear
    found = pairs.filter(pa.array(np.array(kept, bool)))
    return found.append_column("language", pa.array(languages, pa.string())), outcomes


def _words(batch: pa.RecordBatch) -> list[str]:
    joined = pc.binary_join_element_wise(batch["message"], batch["reply"], " ")
    texts: list[str] = pc.replace_substring_regex(joined, _NOT_WORDS, " ").to_pylist()
    return texts


def _of_mrs(pairs: pa.Table, settings: Settings, outcomes: Outcomes) -> pa.Table:
    """Pairs in a language of MRS, English ones of the months asked for; the others' outcomes are changed."""
    languages = pairs["language"]
    keep = pc.is_in(languages, value_set=pa.array(list(LANGUAGES)))
    _move(languages.filter(pc.invert(keep)), NOT_IN_MRS, outcomes)
    if settings.english_months:
        first, last = (int(month.replace("-", "")) for month in settings.english_months)
        other = pc.or_(pc.less(pairs["month"], first), pc.greater(pairs["month"], last))
        late = pc.and_(pc.equal(languages, "en"), other)
        _move(languages.filter(late), OTHER_MONTH, outcomes)
        keep = pc.and_(keep, pc.invert(late))
    return pairs.filter(keep)


def _move(languages: pa.ChunkedArray, reason: str, outcomes: Outcomes) -> None:
    for entry in pc.value_counts(languages).to_pylist():
        outcomes[entry["values"], reason] += entry["counts"]
        outcomes[entry["values"], KEPT] -= entry["counts"]


def _by_language(pairs: pa.Table, group: range, buckets: int) -> tuple[pa.Table, dict[str, list[int]]]:
    """The pairs grouped by language, else in the same order; and how many of each language each bucket has.

    (Sorting would put all texts into one array of 2 GiB.)
    """
    languages = sorted(pc.unique(pairs["language"]).to_pylist())
    parts = {language: pairs.filter(pc.equal(pairs["language"], language)) for language in languages}
    numbers = {code: _buckets(part["thread"].to_numpy(), buckets) - group.start for code, part in parts.items()}
    kept = {code: np.bincount(of_part, minlength=len(group)).tolist() for code, of_part in numbers.items()}
    return pa.concat_tables(parts.values()) if parts else pairs, kept


def _buckets(threads: NDArray[np.uint64], buckets: int) -> NDArray[np.int64]:
    """The bucket of each thread, by its hash."""
    return (threads % np.uint64(buckets)).astype(np.int64)


def with_context(pairs: pa.Table, turns: int) -> pa.Table:
    """Append `CONTEXT` to all pairs of some buckets: up to `turns` turns before each message, oldest first, one a line.

    The turn before a message is the message of the pair that it is the reply of. The context ends where no such pair is
    left in the same language, so that every turn was filtered, masked and cleaned as a message.
    """
    own, none = mix(pairs["thread"].to_numpy()), pairs.num_rows
    replies, messages = own ^ pairs["order"].to_numpy(), own ^ pairs["parent"].to_numpy()
    sorting = np.argsort(replies)
    before = np.append(sorting, none)[np.searchsorted(replies, messages, sorter=sorting)]
    codes = pairs["language"].combine_chunks().dictionary_encode().indices.to_numpy()
    found = (np.append(replies, np.uint64(0))[before] == messages) & (np.append(codes, -1)[before] == codes)
    before = np.append(np.where(found, before, none), none)
    lines = pc.replace_substring_regex(pairs["message"].cast(pa.large_string()), r"[\r\n]+", " ").combine_chunks()
    lines, chunks = pa.concat_arrays([lines, pa.array([""], lines.type)]), []
    for start in range(0, none, BATCH_TEXTS):
        rows, texts = before[start : min(start + BATCH_TEXTS, none)], list[pa.Array]()
        for _ in range(turns):
            texts.insert(0, lines.take(pa.array(rows)))
            rows = before[rows]
        joined = pc.binary_join_element_wise(*texts, pa.scalar("\n", lines.type))
        chunks.append(pc.utf8_ltrim(joined, "\n").cast(pa.string()))
    return pairs.append_column(CONTEXT, pa.chunked_array(chunks, pa.string()))


# --- Join -----------------------------------------------------------------------------------------------------------


def join_buckets(files: Sequence[Location], group: range, buckets: int) -> tuple[pa.Table, dict[str, int]]:
    """Pairs of a message and a reply, from neighbouring ones of the `buckets` of the months' partition files.

    A reply is joined to the comment of the same thread (`link_id`) whose id is its `parent_id`, in any month and order.
    Of repeated comments only the first counts, in the order of the files and of their rows. The number of buckets
    does not change the pairs. The whole group is in memory: about 1.1 KB per comment of 250 bytes.

    Returns:
        A table with the schema `PAIRS`, one row per reply, in chunks of bounded size, in the order of the buckets, then
        of `order` and `thread`, which shuffles the pairs in the same way in every build; and the number of all other
        comments, by reason. It has no ids, but hashes of such short ids can be reversed by trying all of them: do not
        publish `thread`, `order` and `parent`.
    """
    comments = pa.concat_tables([read_buckets(path, group) for path in files]).cast(_LARGE)  # over 2 GiB of ids
    links = comments["link_id"].combine_chunks().dictionary_encode()
    codes, ids = links.indices.to_numpy(), stable_hashes(comments["id"].combine_chunks())
    rows, unpaired = _matched_rows(comments, codes, ids)
    parent, order = ids[rows]
    thread = stable_hashes(links.dictionary)[codes[rows[1]]]
    sorting = np.argsort(order)
    if (np.diff(order[sorting]) == 0).any():  # rare: replies of several threads with the same id
        sorting = np.lexsort((thread, order))
    sorting = sorting[np.argsort(_buckets(thread, buckets).astype(np.uint16)[sorting], kind="stable")]
    rows, order, parent, thread = rows[:, sorting], order[sorting], parent[sorting], thread[sorting]
    month = _months(comments["created"].to_numpy()[rows[1]])
    texts = _texts(comments["body"], rows)
    del comments, links
    batches, start = [], 0
    for message, reply in texts:
        columns = [message, reply, *(pa.array(part[start:][: len(message)]) for part in (thread, order, parent, month))]
        batches.append(pa.RecordBatch.from_arrays(columns, schema=PAIRS))
        start += len(message)
    return pa.Table.from_batches(batches, PAIRS), unpaired


def _matched_rows(
    comments: pa.Table, links: NDArray[np.int32], hashes: NDArray[np.uint64]
) -> tuple[NDArray[np.int64], dict[str, int]]:
    """The rows of messages and of the replies to them (2, pairs), in the order of the replies; and the other comments,
    by reason. `links` (comments,) numbers the threads, and `hashes` (comments,) are those of the ids.

    The hashes find what matches; should texts with the same hash differ, numbers of the texts take their place.
    """
    read, parents = comments.num_rows, comments["parent_id"].combine_chunks()
    posts = pc.starts_with(parents, POST_PREFIX).to_numpy(zero_copy_only=False)
    replies = np.flatnonzero(pc.starts_with(parents, COMMENT_PREFIX).to_numpy(zero_copy_only=False))
    parents, threads = parents.take(pa.array(replies)), np.append(links, links[replies]).astype(np.uint64)
    ids = comments["id"].combine_chunks()
    ids = pc.binary_join_element_wise(pa.scalar(COMMENT_PREFIX, ids.type), ids, pa.scalar("", ids.type))
    names = pa.concat_arrays([ids, parents])  # of all comments, then of those that replies answer
    first = _first_rows(mix(threads) ^ np.append(hashes, stable_hashes(parents, len(COMMENT_PREFIX))), read)
    found = np.flatnonzero((first < read) & (first != np.arange(len(first))))
    same = threads[found] == threads[first[found]]
    if not same.all() or names.take(pa.array(found)) != names.take(pa.array(first[found])):
        numbers = names.dictionary_encode().indices.to_numpy().astype(np.uint64)
        first = _first_rows(threads * np.uint64(len(names)) + numbers, read)
    once = first[:read] == np.arange(read)
    rows = np.stack([first[read:], replies])
    rows = rows[:, once[replies] & (rows[0] < read)]
    itself = rows[0] == rows[1]
    missing = int(once.sum() - (once & posts).sum()) - rows.shape[1]
    rows = rows[:, ~itself]
    circular = _in_circles(rows, read)
    rows = rows[:, ~circular]
    return rows, {
        DUPLICATE: int(read - once.sum()),
        POST: int((once & posts).sum()),
        MISSING: missing,
        SELF: int(itself.sum()),
        CYCLE: int(circular.sum()),
    }


def _first_rows(keys: NDArray[np.uint64], read: int) -> NDArray[np.int64]:
    """For each key the first of the first `read` keys that is equal, by its number; `read` if there is none."""
    sorting = np.argsort(keys)
    ordered = keys[sorting]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(keys)])
    first = np.empty(len(keys), np.int64)
    first[sorting] = np.repeat(np.minimum.reduceat(sorting, starts), np.diff(starts, append=len(keys)))
    return np.minimum(first, read)


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
    bodies = bodies.combine_chunks()
    sizes = pc.binary_length(bodies).to_numpy()[rows].max(axis=0, initial=0)
    chunk = np.cumsum(sizes, dtype=np.int64) // _CHUNK_BYTES
    ends = [*(np.flatnonzero(np.diff(chunk)) + 1).tolist(), rows.shape[1]]
    for start, end in zip([0, *ends[:-1]], ends, strict=True):
        message, reply = (bodies.take(pa.array(side[start:end])).cast(pa.string()) for side in rows)
        yield message, reply


def _months(created: NDArray[np.int64]) -> NDArray[np.int32]:
    """Seconds since 1970 as year and month, 201801; dates outside the calendar become its first or last month."""
    months = np.clip(created, 0, _LAST_SECOND).astype("datetime64[s]").astype("datetime64[M]").astype(np.int64)
    return ((1970 + months // 12) * 100 + months % 12 + 1).astype(np.int32)
