"""Checkpoints of a model with adapters: they hold only the adapters, since nothing else changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from mrs_suggest.models.adapters import has_lora, load_lora_state, read_lora_state, write_lora_state

if TYPE_CHECKING:
    from torch import nn
    from transformers import Trainer as Base
else:
    Base = object


class AdapterCheckpoints(Base):
    """Mixin, placed before the library's trainer: saves and loads only the adapters of a model that has them.

    The library itself would silently write and read such a model without its adapted layers.
    """

    @property
    def _adapted(self) -> nn.Module:
        return cast("nn.Module", self.model)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        if not has_lora(self._adapted):
            super()._save(output_dir, state_dict)
            return
        folder = Path(output_dir or str(self.args.output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        write_lora_state(self._adapted, folder)

    def _load_from_checkpoint(self, *args: Any, **kwargs: Any) -> None:
        if has_lora(self._adapted):
            load_lora_state(self._adapted, read_lora_state(Path(args[0])))
        else:
            super()._load_from_checkpoint(*args, **kwargs)

    def _load_best_model(self) -> None:
        if has_lora(self._adapted):
            load_lora_state(self._adapted, read_lora_state(Path(str(self.state.best_model_checkpoint))))
        else:
            super()._load_best_model()
