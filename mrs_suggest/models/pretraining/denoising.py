"""Denoising pre-training of a seq2seq model (xDAE, Liang et al. 2020, XGLUE, section 4.1): texts to batches, the loss.

The loss of a text X is -sum_t log p(x_t | x_<t, c(X)), c(X) being the noised text (`noising.py`); the tokens that end
the text are predicted too, so that a generator that starts from the model can end its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from numpy.random import Generator
from torch import Tensor
from torch.nn import functional

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.language_tokens import TokenFrame
from mrs_suggest.models.generation.padding import IGNORED, seq2seq_batch
from mrs_suggest.models.pretraining.noising import MAX_TOKENS, NOISES, SPAN_LENGTH, SPAN_SHARE, DrawsByEpoch, seeded_by


@dataclass
class NoisingCollator(DrawsByEpoch):
    """Texts in several languages -> a batch for denoising: the source is the noised text, the target the clean one.

    Special tokens come after the noise, so that none is ever masked, dropped or moved.

    Args:
        pad_id, mask_id: ids of the padding and of [MASK].
        frame: of the checkpoint: what stands around source and target.
        noises: names from `NOISES`, applied in this order -> their share; each text gets one of these recipes.
        special_ids: stand between texts of one row: they stay in their places, and each text is noised by itself.
        max_tokens: no row of the batch is longer; the end of a text is cut, and of a source where masks were inserted.
    """

    pad_id: int
    mask_id: int
    frame: TokenFrame
    noises: Mapping[tuple[str, ...], float] = field(default_factory=lambda: {("spans",): 1.0})
    seed: int = 0
    max_tokens: int = MAX_TOKENS
    span_share: float = SPAN_SHARE
    span_length: float = SPAN_LENGTH
    special_ids: Sequence[int] = ()

    def noise(self, tokens: Sequence[int]) -> list[int]:
        """The noised text of this epoch."""
        rng = seeded_by(self.seed, int(self._epoch), tokens)
        noised: list[int] = []
        for is_special, group in groupby(tokens, set(self.special_ids).__contains__):
            part = list(group)
            noised += part if is_special else self._noised(part, rng)
        return noised

    def _noised(self, part: list[int], rng: Generator) -> list[int]:
        options: dict[str, dict[str, Any]] = {
            "mask": {"mask_id": self.mask_id},
            "spans": {"mask_id": self.mask_id, "share": self.span_share, "mean_length": self.span_length},
        }
        chosen = 0
        if len(self.noises) > 1:
            chosen = int(np.searchsorted(np.cumsum(list(self.noises.values()))[:-1], rng.random(), side="right"))
        for name in list(self.noises)[chosen]:
            part = NOISES[name](part, rng, **options.get(name, {}))
        return part

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch.

        Args:
            features: `input_ids`, a text without special tokens around it, and `language`, the id of its language's
                token.

        Returns:
            As `seq2seq_batch`.
        """
        end = list(self.frame.end)
        sources, prompts, targets = [], [], []
        for feature in features:
            before, prompt = self.frame.begin(feature["language"]), self.frame.start(feature["language"])
            room = self.frame.room(self.max_tokens)
            if room < 1:
                raise InputError(
                    f"--max_tokens {self.max_tokens}: leaves no room for text next to the special tokens; raise it."
                )
            text = list(feature["input_ids"])[:room]
            sources.append([*before, *self.noise(text)[: self.max_tokens - len(before) - len(end)], *end])
            prompts.append(prompt)
            targets.append([*text, *end])
        return seq2seq_batch(sources, prompts, targets, self.pad_id)


def next_token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each token in nats, (batch, length), 0 where the label is -100.

    Args:
        logits: (batch, length, vocabulary).
        labels: (batch, length).
    """
    return functional.cross_entropy(logits.float().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")


def next_token_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Cross-entropy averaged over the target tokens of the whole step, of all ranks and accumulated batches, so that
    the gradient does not depend on how a step is cut into batches."""
    count = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return next_token_losses(outputs["logits"], labels).sum() / count
