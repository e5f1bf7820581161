"""One call of the message encoder for all that a batch of messages needs, whatever their languages."""

from collections.abc import Sequence
from itertools import islice
from typing import Any

import numpy as np

from mrs_suggest.common.spans import span
from mrs_suggest.suggest.answering import ServedModel
from mrs_suggest.suggest.conversation import Conversation
from mrs_suggest.suggest.guard.guard import Guard
from mrs_suggest.suggest.index.response_index import Array, Encode

REMEMBERED = 512  # texts at most whose vectors are kept; ours: more than a batch of 32 conversations of ten turns


def remembering(encode: Encode) -> Encode:
    """An encoder that keeps the vectors of its last texts: the guard looks at a message, then the model answers it."""
    last: dict[str, Array] = {}

    def encoded(texts: list[str]) -> Array:
        nonlocal last
        known = last  # one object, as another thread may replace it
        if new := [text for text in dict.fromkeys(texts) if text not in known]:
            with span("encode"):
                known = known | dict(zip(new, encode(new), strict=True))
            if len(new) <= REMEMBERED:
                last = dict(islice(known.items(), max(0, len(known) - REMEMBERED), None))
        return np.stack([known[text] for text in texts]) if texts else encode(texts)

    return encoded


def read_texts(model: ServedModel, asked: Sequence[Conversation]) -> list[Any]:
    """What the model reads of each conversation: its message, after earlier turns if it was trained with them; a
    service reads all of it."""
    reader = model.context
    if model.service:
        return list(asked)
    return [reader.read(one.context, one.message) if reader else one.message for one in asked]


def encode_together(model: ServedModel, guard: Guard | None, asked: Sequence[Conversation]) -> None:
    """Encode in one call what the model and the guard will read of several conversations, so that it is remembered."""
    open_ones = [one for one in asked if not one.mine and one.message.strip()]
    texts = [] if model.service else read_texts(model, open_ones)
    if guard is not None and guard.space is not None:
        texts += [text for one in open_ones for text in (one.message, *(turn for turn, _ in one.watched))]
    different = list(dict.fromkeys(texts))
    if 1 < len(different) <= REMEMBERED:
        model.message_vectors(different)
