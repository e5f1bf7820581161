"""A ranker for another response set, with the remembered messages that its replies need."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.suggest.index.response_index import ResponseIndex
from mrs_suggest.suggest.ranking.char_tfidf import CharTfidf
from mrs_suggest.suggest.ranking.language_ranker import LanguageRanker
from mrs_suggest.suggest.ranking.memory import MessageMemory
from mrs_suggest.suggest.ranking.reply_ngrams import ReplyNgrams

Rows = NDArray[np.int64]


def with_replies(
    ranker: LanguageRanker, index: ResponseIndex, ngrams: ReplyNgrams, own: int | None = None
) -> LanguageRanker:
    """The ranker, with the same weights, over the replies of another index of the same language and encoder.

    A known reply keeps its messages, or its share in those of the nearest remembered reply; a new one gets the share
    that `LanguageRanker.build` would give it. The messages of a removed reply count for the reply nearest to it, and
    messages that no reply needs are forgotten.

    Args:
        ngrams: of the replies of `index`.
        own: as for `LanguageRanker`.
    """
    before = {normalise_reply(reply): row for row, reply in enumerate(ranker.index.replies)}
    places = np.zeros(len(index.replies), np.int64)
    share = np.zeros(len(index.replies), np.float32)
    for row, reply in enumerate(index.replies):
        old = before.get(normalise_reply(reply))
        if old is None:
            places[row], cosine = ranker.nearest_remembered(reply)
            share[row] = cosine * ranker.share[ranker.memory.replies[places[row]]]
        else:
            places[row], share[row] = ranker.remembered[old], ranker.share[old]
    memory, order = _needed(ranker.memory, places, share)
    remembered = order[places]
    ranker = replace(ranker, index=index, memory=memory, remembered=remembered, share=share, ngrams=ngrams, own=own)
    return replace(ranker, kinds=None)  # tags are read with the model


def _needed(memory: MessageMemory, places: Rows, share: NDArray[np.float32]) -> tuple[MessageMemory, Rows]:
    """The memory of the remembered replies to which replies point, each named by the reply with the largest share in
    it; and the new place of each old one."""
    by_share = np.lexsort((np.arange(len(places)), -share))  # the first of equal ones
    used, first = np.unique(places[by_share], return_index=True)
    owners = by_share[first]
    by_owner = np.argsort(owners)  # a memory names its replies in ascending order
    order = np.full(len(memory.replies), -1, np.int64)
    order[used[by_owner]] = np.arange(len(used))
    groups, of_replies = np.unique(memory.groups[used[by_owner]], return_inverse=True)
    stored = memory.arrays()
    ends = np.append(memory.starts[1:], len(stored["vectors"]))
    lengths = (ends - memory.starts)[groups]
    kept = np.concatenate([np.arange(memory.starts[group], ends[group]) for group in groups])
    arrays = {
        "vectors": stored["vectors"][kept],
        "replies": np.sort(owners).astype(np.int64),
        "groups": of_replies.astype(np.int64),
        "starts": (np.cumsum(lengths) - lengths).astype(np.int64),
    }
    if memory.axes is not None:
        arrays["axes"] = memory.axes
    if memory.ngrams is not None:
        arrays |= {f"ngrams.{name}": array for name, array in _texts(memory.ngrams, kept).items()}
    return MessageMemory.from_arrays(arrays), order


def _texts(ngrams: CharTfidf, kept: Rows) -> dict[str, np.ndarray]:
    """The arrays of some of the texts, with the weights that n-grams have among all texts."""
    numbers = np.full(ngrams.size, -1, np.int32)
    numbers[kept] = np.arange(len(kept), dtype=np.int32)
    stay = numbers[ngrams.texts] >= 0
    counts = np.diff(np.concatenate([[0], np.cumsum(stay)])[ngrams.starts])
    found = counts > 0
    starts = np.concatenate([[0], np.cumsum(counts[found])]).astype(np.int64)
    texts, weights = numbers[ngrams.texts[stay]], ngrams.weights[stay]
    return CharTfidf(ngrams.grams[found], ngrams.idf[found], starts, texts, weights, len(kept)).arrays()
