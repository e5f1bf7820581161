"""Stop a run at the first loss that is not finite, before the optimizer updates the weights with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from mrs_suggest.common.errors import diverged

if TYPE_CHECKING:
    from transformers import Trainer as Base
else:
    Base = object


class StopsWhenDiverged(Base):
    """Mixin, placed before the library's trainer: checks the loss and the gradient of every step.

    The losses of accumulated batches are summed on the device, and those of the ranks by reducing one number per step,
    so that all ranks stop together. The library's own check of each batch (`logging_nan_inf_filter`, which only hides
    such a loss from the log) is turned off: the host waits for the device once per step instead of twice per batch.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.args.logging_nan_inf_filter = False
        self._losses: Tensor | None = None
        self._norm: Tensor | float | None = None
        self.add_callback(_BeforeEachUpdate(self))

    def training_step(self, *args: Any, **kwargs: Any) -> Tensor:
        """The library's step; its loss is kept for the check."""
        loss: Tensor = super().training_step(*args, **kwargs)
        self._losses = loss if self._losses is None else self._losses + loss
        return loss

    def _get_grad_norm(self, *args: Any, **kwargs: Any) -> Any:
        self._norm = super()._get_grad_norm(*args, **kwargs)
        return self._norm

    def require_finite(self) -> None:
        """Refuse to update the weights from a loss or a gradient that is not finite.

        With a gradient scaler (`--fp16`) only the loss is checked: the scaler finds its scale by letting gradients
        overflow, and skips those steps.

        Raises:
            InputError: on every rank.
        """
        loss, norm, self._losses, self._norm = self._losses, self._norm, None, None
        if loss is None:
            return
        if self.args.world_size > 1:
            loss = self.accelerator.reduce(loss.float(), reduction="sum")
        assert loss is not None
        if norm is None or self.accelerator.scaler is not None:
            norm = 0.0
        if math.isfinite(loss + norm):  # one wait for the device
            return
        what = f"the loss is {float(loss):g}" if not math.isfinite(loss) else f"the gradient's norm is {float(norm):g}"
        advice = ", or leave --fp16 out" if self.args.fp16 else ""
        raise diverged(f"at step {self.state.global_step + 1:,} {what}", advice)


class _BeforeEachUpdate(TrainerCallback):
    def __init__(self, trainer: StopsWhenDiverged) -> None:
        self._trainer = trainer

    def on_pre_optimizer_step(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        self._trainer.require_finite()


def require_finite_weights(weights: Mapping[str, Tensor]) -> None:
    """Refuse to keep a model whose weights are not all finite.

    Raises:
        InputError: it names the first such weight.
    """
    for name, value in weights.items():
        if value.is_floating_point() and not bool(torch.isfinite(value).all()):
            raise diverged(f"the weights {name} are not finite at the end; nothing was saved")
