"""A run of the message-reply task: its data, and its comparison with the baselines on test."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from mrs_datasets.prepared.prepared import open_prepared
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import LanguageIdentifier
from mrs_suggest.common.text.predictions import Prediction, predictions_name, write_predictions
from mrs_suggest.evaluation.comparison import Comparison, MakeSystem, compare_on_test
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, LanguageData
from mrs_suggest.evaluation.paper_results import paper_rows
from mrs_suggest.evaluation.results import EvaluationConfig
from mrs_suggest.evaluation.tables import print_results
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.options import FROM_SCRATCH
from mrs_suggest.training.recipe import Built, Evaluation, Fitted, Recipe
from mrs_suggest.training.reply.data import RunData, load_run_data, warn_about_small_sources
from mrs_suggest.training.reply.options import ReplyArguments, require_sound

if TYPE_CHECKING:
    from transformers import TrainingArguments

# Options that must not change when a run is resumed.
RESUME_KEYS = (
    "setting", "sampling_alpha", "batches", "length_window", "message_tokens", "reply_tokens", "max_train_examples",
    "freeze_embeddings",
)  # fmt: skip
ReplyOptions = TypeVar("ReplyOptions", bound=ReplyArguments)


class ReplyRecipe(Recipe[ReplyOptions, RunData, Built]):
    """What the families of reply models share in a run.

    Attributes:
        ranks: whether systems also rank replies, for which a response set is needed.
    """

    ranks: bool
    curves = MappingProxyType({"weighted_rouge": "weighted ROUGE", "mrr": "MRR (1 of 100)"})

    def require_sound(self, options: ReplyOptions, training: TrainingArguments) -> None:
        require_sound(options, training, self.metrics, self.without_effect)
        if options.language_model is not None:
            if not Path(options.language_model).is_file():
                raise InputError(
                    f"--language_model {options.language_model}: no such file; pass a fastText model, such as "
                    "lid.176.ftz."
                )
            LanguageIdentifier.open(options.language_model)  # refused now, not after hours of training

    def load(self, options: ReplyOptions, training: TrainingArguments) -> RunData:
        source = open_prepared(options.data, options.data_revision)
        data = load_run_data(source, options, training.seed, need_responses=self.ranks)
        _require_tokenizers([*data.validation, *data.test])
        if training.process_index == 0:
            step = training.train_batch_size * training.world_size * training.gradient_accumulation_steps
            warn_about_small_sources(data, options.batches, step)
        return data

    def resume_identity(self, options: ReplyOptions, facts: Record) -> Record:
        return {
            **super().resume_identity(options, facts),
            "train": facts["plan"]["train"],
            "validation": facts["plan"]["validation"],
            "vocabulary": options.vocabulary if options.model_name_or_path in FROM_SCRATCH else None,
            **{name: getattr(options, name) for name in RESUME_KEYS},
        }

    @abstractmethod
    def systems(self, parts: Built) -> list[MakeSystem]:
        """The systems to compare on test, the trained model first."""

    def add_figures(self, fitted: Fitted[ReplyOptions, RunData, Built], figures: Record) -> None:
        """Add the figures that only this family has."""

    def evaluate(self, fitted: Fitted[ReplyOptions, RunData, Built]) -> Evaluation:
        """The model and the baselines on the test split of each language, its suggestions, and the paper's rows."""
        parts = fitted.data.test
        config = EvaluationConfig.available(self.ranks, fitted.options.language_model)
        compared = compare_on_test(self.systems(fitted.parts), parts, EVALUATION_SEED, config)
        self.add_figures(fitted, compared.figures)
        languages = [part.language for part in parts]
        compared.figures["paper"] = published_figures(self.family.name, fitted.options, languages)
        told = predictions_name(languages[0] if len(languages) == 1 else "LANG")
        return Evaluation(compared.figures, compared.milliseconds, _predictions(parts, compared), told)

    def show(self, record: Record) -> None:
        print_results(record)


def _predictions(parts: Sequence[LanguageData], compared: Comparison) -> Mapping[str, Callable[[Path], None]]:
    """Test messages, their replies and the suggestions: one file per language."""

    def write(part: LanguageData, path: Path) -> None:
        suggestions = compared.suggestions[part.language]
        rows = zip(part.test["message"][:], part.test["reply"][:], suggestions, strict=True)
        write_predictions(path, (Prediction(message, reply, tuple(three)) for message, reply, three in rows))

    return {predictions_name(part.language): partial(write, part) for part in parts}


def _require_tokenizers(parts: Sequence[LanguageData]) -> None:
    """Refuse a language now if the metrics would lack its tokenizer after training."""
    for part in parts:
        try:
            get_tokenizer(part.language)
        except (ImportError, ValueError) as error:
            raise InputError(f"--languages {part.language}: {error}") from None


def published_figures(family: str, options: ReplyArguments, languages: Sequence[str]) -> list[dict[str, Any]]:
    """The paper's rows for this setting, of all models of the family; none if the run has no setting of the paper."""
    if options.setting is None or options.train is not None:
        return []
    rows = paper_rows(family, setting=options.setting)
    return [asdict(row) for row in rows if row.language in languages]
