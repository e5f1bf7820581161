"""A language's response set with the translated replies of another language's (Zhang et al. 2021, section 2.1)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.prepared.schema import RESPONSE_SCHEMA
from mrs_suggest.common.text.text import normalise_reply

TRANSLATED = "translated"  # the value of the column `source`


def merged(own: pa.Table | None, replies: Iterable[tuple[str, float | None]]) -> pa.Table:
    """The set of a language and, after it, the translated replies that it has not; each once, in their order.

    A translated reply has no `count`, since nobody gave it. Its `log_prob` is that of a reply that was not seen, by the
    add-one smoothing of the set (`mrs_datasets.prepared.responses.response_table`), or null if the set does not have
    counts with probabilities; so with a language-model score it does not outrank a reply that people gave. Without an
    own set it is that of the replies it translates, together.

    Args:
        own: with `RESPONSE_SCHEMA`; None: the language has no set.
        replies: translations with the `log_prob` of what they translate, in the order of the other set.
    """
    have = set() if own is None else set(own["reply"].to_pylist())
    new: dict[str, float | None] = {}
    for reply, log_prob in replies:
        if reply not in have:
            new[reply] = _sum(new[reply], log_prob) if reply in new else log_prob
    if own is not None:
        new = dict.fromkeys(new, unseen(own))
    columns = [
        list(new),
        [None] * len(new),
        list(new.values()),
        [normalise_reply(reply) for reply in new],
        [TRANSLATED] * len(new),
    ]
    table = pa.table([pa.array(c, t) for c, t in zip(columns, RESPONSE_SCHEMA.types, strict=True)], RESPONSE_SCHEMA)
    return table if own is None else pa.concat_tables([own, table])


def organic(table: pa.Table) -> pa.Table:
    """A response set without its translated replies."""
    return table.filter(pc.fill_null(pc.not_equal(table["source"], TRANSLATED), True))


def unseen(table: pa.Table) -> float | None:
    """`log(1 / (pairs + distinct replies))`, the `log_prob` of a reply that was not seen, from a counted set."""
    counted = table.filter(pc.and_(pc.is_valid(table["count"]), pc.is_valid(table["log_prob"])))
    if not counted.num_rows:
        return None
    return float(counted["log_prob"][0].as_py() - math.log(counted["count"][0].as_py() + 1))


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else float(np.logaddexp(one, other))
