"""Models of reply suggestion: texts and tensors in, suggestions out; no data-set names.

Names are imported from their modules on first use, so that `import mrs_models` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrs_core.lazy import lazy_names

if TYPE_CHECKING:
    from mrs_models.answering import Ranker, Suggestion, System
    from mrs_models.decoding_settings import Decoding
    from mrs_models.dual_encoder import build_dual_encoder
    from mrs_models.generator import Generator
    from mrs_models.response_index import ResponseIndex
    from mrs_models.suggester import Suggester

__all__ = [
    "Decoding",
    "Generator",
    "Ranker",
    "ResponseIndex",
    "Suggester",
    "Suggestion",
    "System",
    "build_dual_encoder",
]
if not TYPE_CHECKING:  # a type checker would accept every name of the package
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Decoding": "decoding",
            "Generator": "generator",
            **dict.fromkeys(["Ranker", "Suggestion", "System"], "answering"),
            "ResponseIndex": "response_index",
            "Suggester": "suggester",
            "build_dual_encoder": "dual_encoder",
        },
    )
