"""Reply suggestion: three short answers to a message, the models that give them, and the tools to train and serve them.

Names are imported from their modules on first use, so that `import mrs_suggest` costs nothing.
"""

from typing import TYPE_CHECKING

from mrs_suggest.common import __version__
from mrs_suggest.common.lazy import after_import, lazy_names

if TYPE_CHECKING:
    from mrs_suggest.models.generation.decoding.settings import Decoding
    from mrs_suggest.models.generation.generator import Generator
    from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
    from mrs_suggest.suggest.answering import Ranker, Suggestion, System
    from mrs_suggest.suggest.index.response_index import ResponseIndex
    from mrs_suggest.suggest.suggester import Suggester
    from mrs_suggest.training.api import CausalTrainer, GenerationTrainer, RetrievalTrainer, Trainer, TrainingArguments

__all__ = [
    "CausalTrainer",
    "Decoding",
    "GenerationTrainer",
    "Generator",
    "Ranker",
    "ResponseIndex",
    "RetrievalTrainer",
    "Suggester",
    "Suggestion",
    "System",
    "Trainer",
    "TrainingArguments",
    "__version__",
    "build_dual_encoder",
]
if not TYPE_CHECKING:  # a type checker would accept every name of the package
    __getattr__, __dir__ = lazy_names(__name__)


def _register_pipeline() -> None:
    from mrs_suggest.suggest import pipelines  # noqa: F401  registers `pipeline("reply-suggestion")`


def _register_config() -> None:
    from mrs_suggest.suggest.pipeline_config import register_config

    register_config()


after_import("transformers.pipelines", _register_pipeline)
after_import("transformers.models.auto.configuration_auto", _register_config)
