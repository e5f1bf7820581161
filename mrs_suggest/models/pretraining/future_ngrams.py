"""Future n-gram prediction (xFNP of Liang et al. 2020, XGLUE, section 4.2): which spans are masked, and the loss.

Of a text X, spans are masked (section 6.1, after Yan et al. 2020, ProphetNet): nine consecutive tokens in every 64. Of
their tokens 80 % become [MASK], 10 % a random token and 10 % stay; the length stays. The decoder writes Y, the masked
tokens of all spans one after the other, and at each step predicts the next n = 2 tokens:

    loss = -sum_{t=1..|Y|} log p(y_t | y_<t, X') - sum_{t=1..|Y|-1} log p(y_{t+1} | y_<t, X')

transformers' ProphetNet has the mean of its streams instead of their sum, and lets the second one predict y_1, too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor

from mrs_suggest.models.generation.language_tokens import TokenFrame
from mrs_suggest.models.generation.padding import IGNORED, seq2seq_batch
from mrs_suggest.models.pretraining.masked_lm import Vocabulary, corrupt
from mrs_suggest.models.pretraining.noising import DrawsByEpoch, next_token_losses, seeded_by

STREAMS = 2  # XGLUE, section 4.2: n = 2
BLOCK, SPAN = 64, 9  # XGLUE, section 6.1: nine tokens in every 64


def choose_spans(special: NDArray[np.bool_], rng: Generator, block: int = BLOCK, span: int = SPAN) -> NDArray[np.bool_]:
    """Choose a span of `span` tokens in every `block`, at a place drawn for itself; (n) whether a token is in one.

    Special tokens are not counted and not chosen: a span continues behind one. The rest at the end, and a text of
    fewer tokens than a block, has a span in proportion, `length * span / block` rounded up or down at random so that
    the share holds on the average; but a text of one block has one token at least.

    Example:
        >>> choose_spans(np.zeros(10, dtype=bool), np.random.default_rng(0), block=5, span=2).astype(int).tolist()
        [0, 0, 0, 1, 1, 0, 0, 1, 1, 0]
    """
    places = np.flatnonzero(~special)
    chosen = np.zeros(len(special), dtype=bool)
    full, rest = divmod(len(places), block)
    lengths = np.full(full, span)
    sizes = np.full(full, block)
    if rest:
        last = int(rest * span / block + rng.random())
        lengths = np.append(lengths, last if full else max(1, last))
        sizes = np.append(sizes, rest)
    starts = np.arange(len(sizes)) * block + rng.integers(0, sizes - lengths + 1) if len(sizes) else sizes
    for start, length in zip(starts.tolist(), lengths.tolist(), strict=True):
        chosen[places[start : start + length]] = True
    return chosen


@dataclass
class SpanMaskingCollator(DrawsByEpoch):
    """Rows of texts in several languages -> a batch for future n-gram prediction; `frame` is the checkpoint's."""

    pad_id: int
    vocabulary: Vocabulary
    frame: TokenFrame
    seed: int = 0

    def masked(self, text: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """X' and Y of a text: what the encoder reads, (n), and the tokens of its spans."""
        rng = seeded_by(self.seed, int(self._epoch), text)
        tokens = np.asarray(text, dtype=np.int64)
        chosen = choose_spans(self.vocabulary.special[tokens], rng)
        return corrupt(text, chosen, rng, self.vocabulary), tokens[chosen]

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch, as `NoisingCollator`."""
        sources, prompts, targets = [], [], []
        for feature in features:
            read, spans = self.masked(feature["input_ids"])
            sources.append([*self.frame.begin(feature["language"]), *read.tolist(), *self.frame.end])
            prompts.append(self.frame.start(feature["language"]))
            targets.append([*spans.tolist(), *self.frame.end])
        return seq2seq_batch(sources, prompts, targets, self.pad_id)


def future_labels(labels: Tensor, stream: int) -> Tensor:
    """The labels that a stream predicts: stream 0 all, stream 1 not the first of a row, stream i not the first i.

    In the library's ProphetNet, stream i predicts at each step the same token as stream 0, and sees i tokens less.
    """
    number = (labels != IGNORED).cumsum(1)
    return labels.masked_fill(number <= stream, IGNORED)


def future_ngram_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """The losses of all streams, each with weight 1 (XGLUE, section 4.2: alpha_0 = alpha_1 = 1).

    The sum is divided by the tokens that the first stream predicts, of all ranks and accumulated batches.

    Args:
        outputs: `logits` (batch, length, vocabulary) of the first stream, and `logits_ngram` (batch, streams - 1,
            length, vocabulary) of the others, if there are any.
    """
    later = outputs.get("logits_ngram")
    streams = [outputs["logits"], *(() if later is None else later.unbind(1))]
    total = sum(next_token_losses(logits, future_labels(labels, n)).sum() for n, logits in enumerate(streams))
    count = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return torch.as_tensor(total) / count
