"""The metrics of `mrs score`: each file declares one, as its `SPEC`; heavy libraries are imported when one scores."""

from importlib import import_module
from pkgutil import iter_modules

from mrs_suggest.evaluation.scores.metric_spec import MetricSpec

_FILES = sorted(module.name for module in iter_modules(__path__))
SPECS: dict[str, MetricSpec] = {name: import_module(f"mrs_suggest.evaluation.metrics.{name}").SPEC for name in _FILES}
