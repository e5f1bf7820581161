"""Interpolation of the trained weights with those at the start (WiSE-FT, Wortsman et al. 2022, section 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import torch
from tqdm import tqdm

from mrs_suggest.training.export.card import Record

if TYPE_CHECKING:
    from torch import Tensor, nn

    from mrs_suggest.training.generation.training import GenerationTrainer


def copied_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all parameters on the CPU, those that are shared once."""
    return {name: value.detach().cpu().clone() for name, value in model.named_parameters()}


def set_between(model: nn.Module, start: Mapping[str, Tensor], trained: Mapping[str, Tensor], share: float) -> None:
    """Set the parameters to (1 - share) * start + share * trained, in place; 0 and 1 are exact.

    Args:
        start, trained: what `copied_weights` returned for the same model.
    """
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mixed = trained[name] if share == 1 else (1 - share) * start[name] + share * trained[name]
            parameter.copy_(mixed)


def interpolate(trainer: GenerationTrainer, start: Mapping[str, Tensor], shares: Sequence[float]) -> Record:
    """Set the weights to the best of several interpolations, by the metric that chooses the checkpoint.

    Each is evaluated on validation, in the declared languages alone. One whose replies to watched languages are too
    often in another language (`--wrong_language_limit`) is taken only where all are.

    Args:
        start: the weights that training started from.
        shares: of the trained weights.

    Returns:
        For the record: `shares`, each with its figures, and `kept`, the one that was taken.
    """
    model, metric = trainer.generator.model, str(trainer.args.metric_for_best_model)
    trained, rows = copied_weights(model), []
    for share in dict.fromkeys(shares):
        set_between(model, start, trained, share)
        rows.append({"share": share, **trainer.measured()})
        if trainer.is_world_process_zero():
            tqdm.write(f"{share:g} of the trained weights: {metric} {rows[-1][metric]:.4f}")
    sign = -1.0 if trainer.args.greater_is_better else 1.0
    best = min(rows, key=lambda row: (trainer.is_above(row), sign * row[metric]))
    set_between(model, start, trained, best["share"])
    return {"shares": rows, "kept": best["share"]}
