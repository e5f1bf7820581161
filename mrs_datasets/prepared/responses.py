"""Response sets: the replies that a retriever may suggest (Zhang et al. 2021, section 2.1)."""

import heapq
import math
from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from mrs_datasets.prepared.schema import RESPONSE_SCHEMA
from mrs_suggest.common.text.text import normalise_reply

MAX_RESPONSES = 50_000  # section 2.1: "30K to 50K most frequent replies"
PAPER_MIN_REPLY_COUNT = 20  # section 2.1: at least twenty times, in 0.5 to 49 million pairs per language


def count_responses(counts: Counter[str], min_reply_count: int = 1, max_responses: int = MAX_RESPONSES) -> pa.Table:
    """The response set of a language, from the counts of its training replies.

    Args:
        counts: reply -> how often it was given in the training split.
        min_reply_count: rarer replies are left out. The paper uses 20, for Reddit; the default 1 keeps every reply,
            since the folders that this function serves are small. Where the counts do not fit into memory, see
            `mrs_datasets.builders.reddit.write.counted_runs`.
        max_responses: the most frequent ones are kept; ties in the order of the text.

    Returns:
        See `response_table`.
    """
    frequent = (item for item in counts.items() if item[1] >= min_reply_count)
    kept = heapq.nsmallest(max_responses, frequent, key=lambda item: (-item[1], item[0]))
    return response_table(kept, counts.total(), len(counts))


def response_table(frequent: Sequence[tuple[str, int]], pairs: int, distinct: int) -> pa.Table:
    """The response set of the replies in `frequent`, with their counts.

    Args:
        frequent: the replies that are kept, most frequent first.
        pairs, distinct: numbers of all replies and of different ones that were counted, including those left out.

    Returns:
        A table with `RESPONSE_SCHEMA`, in the order given. `log_prob` is the add-one smoothed unigram over whole
        replies, `log((count + 1) / (pairs + distinct replies))`, computed before anything is left out; `cluster` is the
        normalised form, so that replies that differ only in case or punctuation form one cluster.
    """
    mass = math.log(pairs + distinct) if pairs else 0.0
    columns = [
        [reply for reply, _ in frequent],
        [count for _, count in frequent],
        [math.log(count + 1) - mass for _, count in frequent],
        [normalise_reply(reply) for reply, _ in frequent],
        ["organic"] * len(frequent),
    ]
    return pa.table([pa.array(c, t) for c, t in zip(columns, RESPONSE_SCHEMA.types, strict=True)], RESPONSE_SCHEMA)
