"""Models of reply suggestion: texts and tensors in, suggestions out; no data-set names.

`Suggester` and `Suggestion` are read when they are first asked for, so that `import mrs_models` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mrs_models.answering import Suggestion
    from mrs_models.suggester import Suggester

__all__ = ["Suggester", "Suggestion"]
_HOMES = {"Suggester": "mrs_models.suggester", "Suggestion": "mrs_models.answering"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
