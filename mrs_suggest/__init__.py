"""Reply suggestion: three short answers to a message, the models that give them, and the tools to train and serve them.

Names are imported from their modules on first use, so that `import mrs_suggest` costs nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mrs_suggest.common import __version__
from mrs_suggest.common.lazy import lazy_names

if TYPE_CHECKING:
    from mrs_suggest.models.generation.decoding.settings import Decoding
    from mrs_suggest.models.generation.generator import Generator
    from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
    from mrs_suggest.suggest.answering import Ranker, Suggestion, System
    from mrs_suggest.suggest.index.response_index import ResponseIndex
    from mrs_suggest.suggest.suggester import Suggester

__all__ = [
    "Decoding",
    "Generator",
    "Ranker",
    "ResponseIndex",
    "Suggester",
    "Suggestion",
    "System",
    "__version__",
    "build_dual_encoder",
]
if not TYPE_CHECKING:  # a type checker would accept every name of the package
    __getattr__, __dir__ = lazy_names(__name__)
