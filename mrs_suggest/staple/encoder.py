"""A multilingual sentence encoder by name, for the similarity of prompt and translation."""

from __future__ import annotations

import numpy as np

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import split_revision
from mrs_suggest.staple.filters.features import Encode

TOKENS = 128  # ours: the task's prompts and translations are single sentences


def load_encoder(name: str) -> Encode:
    """A function that encodes texts.

    Prompt and translation take the same route, with the checkpoint's own text before queries (E5's `query: `), as its
    authors advise where neither text is a passage.

    Args:
        name: a folder, or `ORG/NAME[@REVISION]`: any checkpoint that a retriever can start from.

    Raises:
        InputError: it cannot be loaded.
    """
    from mrs_suggest.models.retrieval.distillation import load_teacher
    from mrs_suggest.models.retrieval.encode import encode_messages

    checkpoint, revision = split_revision(name, None)
    try:
        model = load_teacher(checkpoint, TOKENS, TOKENS, None, revision)
    except InputError as error:
        raise InputError(str(error).replace("--teacher", "--encoder")) from None
    return lambda texts: np.asarray(encode_messages(model, texts).cpu().float().numpy())
