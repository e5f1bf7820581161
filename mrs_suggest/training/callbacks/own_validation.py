"""What trainers share that evaluate by themselves, in place of the library's loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from accelerate.utils import gather_object
from tqdm import tqdm

if TYPE_CHECKING:
    from transformers import Trainer as Base
else:
    Base = object

Row = TypeVar("Row")
Answer = TypeVar("Answer")


class OwnValidation(Base):
    """Mixin, placed before the library's trainer."""

    def answered(self, rows: Sequence[Row], answer: Callable[[Sequence[Row]], Sequence[Answer]]) -> list[Answer]:
        """The answers to all rows, on every rank: each takes its share, however uneven, and they are gathered.

        Args:
            answer: rows -> an answer to each.
        """
        world, rank = self.args.world_size, self.args.process_index
        mine = answer(rows[rank::world])
        if world == 1:
            return list(mine)
        shares = gather_object([mine])
        return [shares[number % world][number // world] for number in range(len(rows))]

    def write_figures(self, figures: Mapping[str, float]) -> None:
        """Write the figures above the bar, once."""
        if self.is_world_process_zero():
            lines = ", ".join(f"{name} {value:.3f}" for name, value in figures.items())
            tqdm.write(f"validation, step {self.state.global_step}: {lines}")

    def tell_figures(self, figures: Mapping[str, float], prefix: str) -> dict[str, float]:
        """Hand the figures to the log and to the callbacks, which choose the checkpoint and stop the run.

        Returns:
            The figures, each name with the prefix before it.
        """
        metrics = {f"{prefix}_{name}": value for name, value in figures.items()}
        self.log(metrics)
        callbacks: Any = self.callback_handler
        self.control = callbacks.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics
