"""Denoising pre-training of a seq2seq model (xDAE, Liang et al. 2020, XGLUE, section 4.1): rows to batches, the loss.

The loss of a text X is -sum_t log p(x_t | x_<t, c(X)), c(X) being the noised text (`noising.py`); the tokens
that end the text are predicted too, so that a generator that starts from the model can end its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor
from torch.nn import functional

from mrs_suggest.models.generation.language_tokens import TokenFrame
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.pretraining.noising import NoisingCollator


@dataclass
class RowNoising:
    """Rows of texts in several languages -> a batch for denoising.

    Args:
        noising: what noises the texts and makes batches of them.
        frame: of the checkpoint.
    """

    noising: NoisingCollator
    frame: TokenFrame

    def set_epoch(self, epoch: int) -> None:
        """Draw new noise from now on; equal numbers give equal noise."""
        self.noising.set_epoch(epoch)

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch.

        Args:
            features: `input_ids`, a text without special tokens around it, and `language`, the id of its language's
                token.

        Returns:
            As `seq2seq_batch`.
        """
        return self.noising(
            [
                {
                    "input_ids": feature["input_ids"],
                    "decoder_prompt": self.frame.start(feature["language"]),
                    "before": self.frame.begin(feature["language"]),
                }
                for feature in features
            ]
        )


def next_token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each token in nats, (batch, length), 0 where the label is -100.

    Args:
        logits: (batch, length, vocabulary).
        labels: (batch, length).
    """
    return functional.cross_entropy(logits.float().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")


class NextTokenLoss:
    """Cross-entropy averaged over the target tokens of the whole step.

    The sum is divided by the tokens of all ranks and accumulated batches, so that the gradient does not depend on how
    a step is cut into batches.
    """

    def __call__(self, outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
        """The loss of a batch: logits and labels as for `next_token_losses`."""
        count = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
        return next_token_losses(outputs["logits"], labels).sum() / count
