"""Masked language models: an encoder with its head, the head at the predicted positions alone, and the loss.

The vocabulary of a multilingual encoder has 250,000 pieces. Logits for every position of 32 texts of 128 tokens would
take 4 GB; 15 % of the positions are predicted, so that is what the head is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from torch.nn import functional

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import starting_point
from mrs_suggest.models.checkpoint_loading import drawn, from_pretrained, without_report
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.starting_points import PRETRAINING, require_start

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def load_masked_lm(name: str, revision: str | None, seed: int) -> tuple[PreTrainedModel, list[str]]:
    """An encoder with a language-model head, by `AutoModelForMaskedLM`, in float32.

    Args:
        name: a baseline, a hub id or a folder: an encoder, with or without such a head.
        seed: of the head, where the checkpoint lacks it; it shares the embeddings where the architecture does so.

    Returns:
        The model, and the names of its fresh weights, sorted.

    Raises:
        InputError: it cannot be loaded, its architecture has no such head, it is a retriever, a generator or adapters,
            or the encoder itself lacks weights.
    """
    require_start(name, PRETRAINING, revision)
    with drawn(seed), without_report():
        place = starting_point(name)
        model, found = from_pretrained("AutoModelForMaskedLM", place, revision, output_loading_info=True)
    if model.config.is_encoder_decoder:
        raise InputError(f"--model_name_or_path {name}: is a sequence-to-sequence model; pass an encoder.")
    fresh = sorted(found["missing_keys"])
    own = f"{model.base_model_prefix}."
    lacking = [key for key in fresh if key.startswith(own)]
    if lacking:
        raise InputError(
            f"--model_name_or_path {name}: lacks weights of the encoder ({lacking[0]}); pass a whole checkpoint."
        )
    return model, fresh


def freeze_encoder(model: PreTrainedModel) -> int:
    """Let the head alone train, in place: not the encoder, nor embeddings that the head shares; how many train."""
    model.base_model.requires_grad_(False)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    if not trained:
        raise InputError(
            f"--frozen_encoder: the head of {type(model).__name__} shares all its weights; leave the option out."
        )
    return trained


class HeadAt:
    """Gives the head of a masked language model some positions only.

    The encoder's last hidden states are gathered before the head reads them, so that the model's own `forward` gives
    logits (1, positions, vocabulary). Heads read each position by itself in every architecture of
    `AutoModelForMaskedLM`.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._positions: Tensor | None = None
        model.base_model.register_forward_hook(self._gather)

    @contextmanager
    def __call__(self, positions: Tensor) -> Iterator[None]:
        """In the block, the model gives logits for these positions of its batch, (batch, length) bool."""
        self._positions = positions
        try:
            yield
        finally:
            self._positions = None

    def _gather(self, module: nn.Module, args: Any, output: Any) -> Any:
        if self._positions is not None:
            output.last_hidden_state = output.last_hidden_state[self._positions].unsqueeze(0)
        return output


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each predicted token in nats, (positions).

    Args:
        logits: (1, positions, vocabulary), of a model in the block of `HeadAt`.
        labels: (batch, length), -100 where nothing is predicted.
    """
    targets = labels[labels != IGNORED]
    rows = logits.reshape(-1, logits.shape[-1])
    if len(rows) != len(targets):
        raise InputError("--model_name_or_path: its head does not read positions one by one; choose another encoder.")
    return functional.cross_entropy(rows.float(), targets, reduction="none")


def masked_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Cross-entropy averaged over the predicted tokens of the whole step, of all ranks and accumulated batches, so that
    the gradient does not depend on how a step is cut into batches; logits as for `token_losses`."""
    losses = token_losses(outputs["logits"], labels)
    return losses.sum() / (len(losses) if num_items_in_batch is None else num_items_in_batch)
