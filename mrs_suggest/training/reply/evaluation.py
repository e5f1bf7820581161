"""What runs of reply models share: what must match when one is resumed, and the comparison on test."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from mrs_suggest.common.text.predictions import Prediction, predictions_name, write_predictions
from mrs_suggest.evaluation.comparison import MakeSystem, compare_on_test
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, LanguageData
from mrs_suggest.evaluation.paper_results import paper_rows
from mrs_suggest.evaluation.results import EvaluationConfig
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.options import FROM_SCRATCH
from mrs_suggest.training.reply.options import ReplyArguments

# Options that must not change when a run is resumed.
RESUME_KEYS = (
    "setting", "sampling_alpha", "batches", "length_window", "message_tokens", "reply_tokens", "max_train_examples",
    "freeze_embeddings",
)  # fmt: skip
CURVES = {"weighted_rouge": "weighted ROUGE", "mrr": "MRR (1 of 100)"}


@dataclass(frozen=True)
class Compared:
    """A trained model and the baselines on the test split of each language.

    Attributes:
        figures: for the record, with the paper's rows.
        milliseconds: to answer a message, by system.
        files: name -> writes a language's test messages, their replies and the suggestions.
        named: how a run's last line names these files.
    """

    figures: Record
    milliseconds: dict[str, float]
    files: Mapping[str, Callable[[Path], None]]
    named: str


def reply_identity(options: ReplyArguments, facts: Record) -> Record:
    """What must match when a run of a reply model is resumed."""
    return {
        "train": facts["plan"]["train"],
        "validation": facts["plan"]["validation"],
        "vocabulary": options.vocabulary if options.model_name_or_path in FROM_SCRATCH else None,
        **{name: getattr(options, name) for name in RESUME_KEYS},
    }


def compare_replies(
    systems: list[MakeSystem], parts: list[LanguageData], options: ReplyArguments, family: str, ranks: bool
) -> Compared:
    """Compare systems, the trained model first, with the baselines.

    Args:
        ranks: whether systems also rank replies, for which a response set is needed.
    """
    config = EvaluationConfig.available(ranks, options.language_model)
    compared = compare_on_test(systems, parts, EVALUATION_SEED, config)
    languages = [part.language for part in parts]
    figures = {**compared.figures, "paper": published_figures(family, options, languages)}
    files = {predictions_name(part.language): partial(_write, part, compared.suggestions) for part in parts}
    named = predictions_name(languages[0] if len(languages) == 1 else "LANG")
    return Compared(figures, compared.milliseconds, files, named)


def _write(part: LanguageData, suggestions: Mapping[str, Sequence[Sequence[str]]], path: Path) -> None:
    rows = zip(part.test["message"][:], part.test["reply"][:], suggestions[part.language], strict=True)
    write_predictions(path, (Prediction(message, reply, tuple(three)) for message, reply, three in rows))


def published_figures(family: str, options: ReplyArguments, languages: Sequence[str]) -> list[dict[str, Any]]:
    """The paper's rows for this setting, of all models of the family; none if the run has no setting of the paper."""
    if options.setting is None or options.train is not None:
        return []
    rows = paper_rows(family, setting=options.setting)
    return [asdict(row) for row in rows if row.language in languages]
