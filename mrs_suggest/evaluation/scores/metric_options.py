"""The options of all metrics together: their help, which of them a metric takes, and a metric with its options set."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.metrics import SPECS
from mrs_suggest.evaluation.scores.metric_spec import DeclaredOption, Metric, MetricSpec, declared_options

ALWAYS = ("language",)  # accepted for every metric, even if it has no effect


@dataclass(frozen=True)
class SharedOption:
    """An option of the command, and the metrics that take it.

    Attributes:
        name: of the field.
        metrics: name of a metric -> the option as that one declares it.
    """

    name: str
    metrics: Mapping[str, DeclaredOption]

    @property
    def first(self) -> DeclaredOption:
        """How the first of the metrics declares it; flag, type and metavar are those of all."""
        return next(iter(self.metrics.values()))

    @property
    def choices(self) -> tuple[str, ...]:
        """What any of the metrics takes."""
        return tuple(dict.fromkeys(choice for option in self.metrics.values() for choice in option.about.choices))

    @property
    def help(self) -> str:
        """What it sets, with the default; metrics with the same text are grouped."""
        texts: dict[str, list[str]] = {}
        for metric, option in self.metrics.items():
            texts.setdefault(_help(option), []).append(metric)
        return "; ".join(f"{', '.join(metrics)}: {text}" for text, metrics in texts.items())


def _help(option: DeclaredOption) -> str:
    about = option.about
    if option.default is None:
        return about.help + (about.unset and f" (default: {about.unset})")
    return f"{about.help} (default {option.default}{about.source and f', {about.source}'})"


def shared_options() -> dict[str, SharedOption]:
    """The options of the command that belong to metrics, by name, in the order in which the metrics declare them."""
    found: dict[str, dict[str, DeclaredOption]] = {}
    for spec in SPECS.values():
        for name, option in declared_options(spec.metric).items():
            found.setdefault(name, {})[spec.name] = option
    return {name: SharedOption(name, metrics) for name, metrics in found.items()}


def require_options_of(spec: MetricSpec, given: Iterable[str]) -> None:
    """Refuse options that belong to other metrics only.

    Raises:
        InputError: an option belongs to other metrics.
    """
    options = shared_options()
    for name in given:
        if spec.name not in options[name].metrics and name not in ALWAYS:
            owners = ", ".join(options[name].metrics)
            raise InputError(f"{options[name].first.flag} does not apply to {spec.name}; it belongs to {owners}.")


def make_metric(spec: MetricSpec, given: Mapping[str, object]) -> Metric:
    """The metric with its options set and checked.

    Args:
        spec: of the metric.
        given: option -> value; the others have their defaults.

    Raises:
        InputError: the metric needs an option that is not given, or cannot use a value.
    """
    declared = declared_options(spec.metric)
    for name, option in declared.items():
        about = option.about
        if option.required and name not in given:
            known = about.known and f"; {about.known}"
            raise InputError(f"{option.flag}: {spec.name} needs {about.help}{known}.")
        if about.choices and name in given and given[name] not in about.choices:
            raise InputError(f"{option.flag} {given[name]}: {spec.name} takes {' or '.join(about.choices)}.")
    own = {name: value for name, value in given.items() if name in declared}
    metric = spec.metric(**{name: tuple(value) if isinstance(value, list) else value for name, value in own.items()})
    metric.check()
    return metric
