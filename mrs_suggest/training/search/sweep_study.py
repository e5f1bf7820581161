"""The part of a sweep that Optuna decides: which runs end early (halving), and which values come next (TPE)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.search.pruning import STUDY, halving, journal, require_optuna
from mrs_suggest.training.search.sweep_file import HALVING, Range, Sweep, Values

if TYPE_CHECKING:
    import optuna

JOURNAL = "sweep.journal"


class Study:
    """The study of a sweep, kept in `sweep.journal`: after a kill it goes on where it was.

    Values do not depend on when the sweep was interrupted: those of halving were drawn at its start, and those of TPE
    follow from the seed, the run's number and the figures of the runs before it.

    Args:
        output: the folder of the sweep.
    """

    def __init__(self, sweep: Sweep, output: Path) -> None:
        self._optuna = require_optuna()
        self._sweep, self._path = sweep, output / JOURNAL
        self._study: optuna.Study | None = None

    def values(self, number: int) -> Values:
        """The values of a run; the runs before it have ended.

        Raises:
            InputError: the journal belongs to another sweep.
        """
        study = self._opened()
        trials = study.get_trials(deepcopy=False)
        if self._sweep.method == HALVING:
            if number > len(trials):
                study.ask()
            return self._sweep.trials[number - 1]
        try:
            params = trials[number - 1].params if number <= len(trials) else self._asked(number)
            return {name: self._plain(name, params[name]) for name in self._sweep.space}
        except (KeyError, ValueError, IndexError, TypeError):  # other options, or other values of them
            raise InputError(f"{self._path}: belongs to another sweep; choose another --output_dir.") from None

    def address(self, number: int) -> str:
        """Where the process of a run finds its trial: the value of its environment variable."""
        return f"{self._path}:{number - 1}:{self._sweep.min_steps}:{self._sweep.reduction}"

    def tell(self, number: int, found: Record) -> None:
        """Note the figure of a finished run."""
        study = self._opened()
        trial = study.get_trials(deepcopy=False)[number - 1]
        if not trial.state.is_finished():
            value = found["value"] if found["greater_is_better"] else -found["value"]
            study.tell(number - 1, value)

    def _asked(self, number: int) -> Values:
        """The next values of TPE; its sampler is made anew, so that an interrupted sweep has the same."""
        study = self._opened()
        study.sampler = self._optuna.samplers.TPESampler(seed=self._sweep.seed * 1_000_003 + number)
        return dict(study.ask(self._distributions()).params)

    def _plain(self, name: str, value: Any) -> Any:
        values = self._sweep.space[name]
        if isinstance(values, Range):
            return value if values.whole else float(f"{value:.3g}")
        return values[value]

    def _distributions(self) -> dict[str, Any]:
        kinds = self._optuna.distributions
        found: dict[str, Any] = {}
        for name, values in self._sweep.space.items():
            if not isinstance(values, Range):
                found[name] = kinds.CategoricalDistribution(range(len(values)))
            elif values.whole:
                found[name] = kinds.IntDistribution(int(values.low), int(values.high), log=values.log)
            else:
                found[name] = kinds.FloatDistribution(values.low, values.high, log=values.log)
        return found

    def _opened(self) -> optuna.Study:
        if self._study is None:
            sweep = self._sweep
            self._study = self._optuna.create_study(
                study_name=STUDY,
                storage=journal(self._path),
                direction="maximize",
                pruner=halving(sweep.min_steps, sweep.reduction) if sweep.halves else self._optuna.pruners.NopPruner(),
                load_if_exists=True,
            )
        return self._study
