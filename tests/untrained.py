"""A retriever that was never trained, for tests of what answers do with it."""

from collections.abc import Sequence
from pathlib import Path

SILENCES_NOTHING = {"en": {"grief": ["see you"] * 8, "everyday": ["see you"] * 8}}  # examples that tell nothing apart


def untrained_retriever(folder: Path, replies: Sequence[str], languages: Sequence[str]) -> Path:
    """Save an untrained retriever as a run saves it, with the same replies in each language; return its folder."""
    from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
    from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
    from mrs_suggest.models.retrieval.tiny import build_tiny
    from mrs_suggest.suggest.guard.guard_space import GuardSpace
    from mrs_suggest.suggest.index.response_index import ResponseIndex, ResponseIndexes
    from mrs_suggest.suggest.pipeline_config import save_config

    build_tiny([*replies, *replies], folder / "tiny", seed=1, vocabulary=200)
    dual = build_dual_encoder(str(folder / "tiny"), "mean")
    dual.save_pretrained(str(folder / "model"))
    save_config(folder / "model")
    index = ResponseIndex.build(lambda texts: encode_replies(dual, texts), replies)
    for language in languages:
        index.save(folder / "model" / ResponseIndexes.FOLDER / language)
    GuardSpace.fit(lambda texts: encode_messages(dual, texts).numpy(), SILENCES_NOTHING).save(folder / "model")
    return folder / "model"
