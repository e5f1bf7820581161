"""Features of pooled hypotheses that follow from their texts and their list, and from an encoder.

The consensus is how similar a translation is to the others that the system believes in, as in minimum Bayes risk
decoding (Kumar and Byrne 2004); its similarity is the F1 of character n-grams, as chrF's (Popovic 2015), here of sets
of 2- and 3-grams so that all pairs of a list are one product of matrices.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from mrs_metrics.translations_f1 import read_texts
from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.hypotheses import Hypotheses
from mrs_suggest.staple.lists import lists_of
from mrs_suggest.staple.pooling import Floats, Ints, known_or_null

MEANINGS = {
    "characters": "of the translation",
    "length_ratio": "characters of the translation by those of the prompt",
    "repeated_words": "share of the words that stand earlier in the translation, too",
    "consensus": "mean similarity to the prompt's other translations, weighted by probability_in_list",
    "list_size": "translations of the prompt",
    "list_entropy": "entropy of probability_in_list, in nats",
    "prompt_words": "words of the prompt",
}
SIMILARITY = "prompt_similarity"
Encode = Callable[[list[str]], NDArray[np.floating]]
LEAST_SHARE = 1e-9  # added to each translation's probability in the consensus, so that it is always defined


def add_features(pooled: Hypotheses, encode: Encode | None = None, encoder: str = "") -> Hypotheses:
    """Pooled hypotheses with the features of `MEANINGS`, and with an encoder the similarity to the prompt.

    Raises:
        InputError: a feature that the members brought has the name of one of these.
    """
    meanings = dict(MEANINGS)
    if encode is not None:
        meanings[SIMILARITY] = f"cosine of prompt and translation by the encoder {encoder}"
    if clash := sorted(meanings.keys() & pooled.features.keys()):
        raise InputError(f"The members have a column {clash[0]!r}, which `combine` computes; rename it.")
    columns = _columns(pooled)
    if encode is not None:
        columns[SIMILARITY] = prompt_similarity(pooled.table["prompt"], pooled.table["text"], encode)
    table = pooled.table
    for name in meanings:
        table = table.append_column(pa.field(name, pa.float64()), known_or_null(columns[name]))
    return replace(pooled, table=table, features={**pooled.features, **meanings})


def _columns(pooled: Hypotheses) -> dict[str, Floats]:
    lists = lists_of(pooled)
    texts = pooled.table["text"].to_pylist()
    read = read_texts(texts)
    prompts = list(pooled.prompts.values())
    share, place = lists.features["probability_in_list"], lists.prompt
    characters = np.array([len(text) for text in texts], np.float64)
    surprise = np.where(share > 0, -share * np.log(np.where(share > 0, share, 1.0)), np.where(share == 0, 0.0, np.nan))
    return {
        "characters": characters,
        "length_ratio": characters / np.array([max(1, len(prompt)) for prompt in prompts], np.float64)[place],
        "repeated_words": np.array([repeated_words(text) for text in read]),
        "consensus": consensus(read, share, lists.starts),
        "list_size": np.diff(lists.starts).astype(np.float64)[place],
        "list_entropy": np.bincount(place, surprise, minlength=lists.prompts)[place],
        "prompt_words": np.array([len(prompt.split()) for prompt in prompts], np.float64)[place],
    }


def repeated_words(text: str) -> float:
    """The share of words that stand earlier in the text, too.

    >>> repeated_words("no no no yes")
    0.5
    """
    words = text.split()
    return 1 - len(set(words)) / len(words) if words else 0.0


def consensus(read: Sequence[str], share: Floats, starts: Ints) -> Floats:
    """(n,) mean similarity of each text to the others of its list, weighted by their share.

    Args:
        share: (n,) of probability in the list; where one of a list is not known, all of it count the same.
        starts: (lists + 1,) the rows of each list.

    Returns:
        0 to 1; NaN for a text that is alone.
    """
    keys, rows = _ngrams(read)
    bounds = np.searchsorted(rows, starts)
    found = np.full(len(read), np.nan)
    for at in range(len(starts) - 1):
        begin, end = int(starts[at]), int(starts[at + 1])
        if end - begin < 2:
            continue
        inside = slice(bounds[at], bounds[at + 1])
        different, column = np.unique(keys[inside], return_inverse=True)
        has = np.zeros((end - begin, len(different)), np.float32)
        has[rows[inside] - begin, column] = 1
        size = has.sum(axis=1, dtype=np.float64)
        similar = 2 * (has @ has.T).astype(np.float64) / (size[:, None] + size)
        weight = share[begin:end] + LEAST_SHARE
        if np.isnan(weight).any():
            weight = np.ones(end - begin)
        found[begin:end] = (similar @ weight - weight) / (weight.sum() - weight)
    return np.clip(found, 0.0, 1.0)


def _ngrams(texts: Sequence[str]) -> tuple[Ints, Ints]:
    """The character 2- and 3-grams of texts with a space at both ends, as numbers, and the text of each, ascending."""
    joined = "\n".join(f" {text} " for text in texts) + "\n" if texts else ""
    codes = np.frombuffer(joined.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)
    ends = codes == ord("\n")
    row = np.cumsum(ends) - ends
    pairs = ~(codes[:-1] << 21 | codes[1:])  # below 0, so that no pair is a triple
    triples = codes[:-2] << 42 | codes[1:-1] << 21 | codes[2:]
    in_pair = ~(ends[:-1] | ends[1:])
    in_triple = ~(ends[:-2] | ends[1:-1] | ends[2:])
    keys = np.concatenate([pairs[in_pair], triples[in_triple]])
    rows = np.concatenate([row[:-1][in_pair], row[:-2][in_triple]])
    order = np.argsort(rows, kind="stable")
    return keys[order], rows[order]


def prompt_similarity(prompts: pa.ChunkedArray, texts: pa.ChunkedArray, encode: Encode) -> Floats:
    """(n,) cosine of the vectors of each prompt and translation; each different text is encoded once."""
    before, after = prompts.combine_chunks().dictionary_encode(), texts.combine_chunks().dictionary_encode()
    vectors = [_unit(encode(column.dictionary.to_pylist())) for column in (before, after)]
    rows = [np.asarray(column.indices.to_numpy(zero_copy_only=False)) for column in (before, after)]
    return np.einsum("ij,ij->i", vectors[0][rows[0]], vectors[1][rows[1]])


def _unit(vectors: NDArray[np.floating]) -> Floats:
    wide = np.asarray(vectors, np.float64)
    return np.asarray(wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12))
