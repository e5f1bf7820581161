"""A training run as a trial of a sweep that ends bad trials early (successive halving, by Optuna).

The sweep is one process and its runs are others: they meet in the sweep's journal, a file that Optuna writes. A run
that finds itself in one reports its figure on validation after each evaluation and stops where the pruner says so.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from mrs_suggest.common.errors import MissingExtraError

if TYPE_CHECKING:
    import optuna

TRIAL = "MRS_SWEEP_TRIAL"  # the environment variable of a run: JOURNAL:NUMBER:MIN_STEPS:REDUCTION
STUDY = "sweep"


def require_optuna() -> Any:
    """Optuna, without its log on every trial.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import optuna
    except ImportError:
        raise MissingExtraError("optuna", "sweep", "a sweep with this method") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def journal(path: Path) -> optuna.storages.JournalStorage:
    """The trials of a sweep, in a file that a killed process leaves readable."""
    require_optuna()
    import optuna
    from optuna.storages.journal import JournalFileBackend

    return optuna.storages.JournalStorage(JournalFileBackend(str(path)))


def halving(min_steps: int, reduction: int) -> optuna.pruners.SuccessiveHalvingPruner:
    """Asynchronous successive halving (Li et al. 2020): at `min_steps`, and at each `reduction` times as many, a trial
    goes on if it is among the best 1/`reduction` of those that came so far."""
    pruner: optuna.pruners.SuccessiveHalvingPruner = require_optuna().pruners.SuccessiveHalvingPruner(
        min_resource=min_steps, reduction_factor=reduction
    )
    return pruner


def trial_of_sweep(value: str) -> TrainerCallback:
    """The callback of a process that is a trial of a sweep that ends trials early; `value` is that of `TRIAL`."""
    path, number, min_steps, reduction = value.rsplit(":", 3)
    return StopsWhenPruned(Path(path), int(number), int(min_steps), int(reduction))


class StopsWhenPruned(TrainerCallback):
    """Reports the metric that chooses the checkpoint, and stops the run where the pruner says so."""

    def __init__(self, path: Path, number: int, min_steps: int, reduction: int) -> None:
        self._path, self._number = path, number
        self._pruner = min_steps, reduction
        self._trial: optuna.Trial | None = None

    def on_evaluate(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **kwargs: Any) -> None:
        """Report and ask on the first rank, and stop on all."""
        value: float = kwargs["metrics"][f"eval_{args.metric_for_best_model}"]
        greater = value if args.greater_is_better else -value
        stops = state.is_world_process_zero and self._is_pruned(state.global_step, greater)
        if args.world_size > 1:
            from accelerate.utils import broadcast_object_list

            stops = broadcast_object_list([stops])[0]
        if stops:
            control.should_training_stop = True

    def _is_pruned(self, step: int, value: float) -> bool:
        if self._trial is None:
            optuna = require_optuna()
            study = optuna.load_study(study_name=STUDY, storage=journal(self._path), pruner=halving(*self._pruner))
            self._trial = optuna.Trial(study, study.get_trials(deepcopy=False)[self._number]._trial_id)
        known = self._trial.study.get_trials(deepcopy=False)[self._number]
        if known.state.is_finished():  # its folder was lost: the run ends where it ended before
            return step >= max(known.intermediate_values, default=0)
        if step not in known.intermediate_values:  # else it was reported before an interruption
            self._trial.report(value, step)
        return bool(self._trial.should_prune())
