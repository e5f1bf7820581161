"""Callbacks that end a run, and go on counting where a resumed run left off."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformers import EarlyStoppingCallback, TrainerControl, TrainerState, TrainingArguments

if TYPE_CHECKING:
    from transformers import TrainerCallback as Base
else:
    Base = object


class Resumable(Base):
    """Mixin, placed before a callback that is an `ExportableState`: its attributes are those of the checkpoint.

    The library does so only where it may build the callback anew.
    """

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any
    ) -> None:
        """Read the attributes that `state` of the callback gave when the checkpoint was written."""
        super().on_train_begin(args, state, control, **kwargs)
        stored: Any = state.stateful_callbacks or {}
        for name, value in stored.get(type(self).__name__, {}).get("attributes", {}).items():
            setattr(self, name, value)


class Patience(Resumable, EarlyStoppingCallback):
    """The library's, which alone would count from 0 again in a resumed run."""
