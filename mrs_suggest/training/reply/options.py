"""The options of the message-reply task: setting and languages, batches, and how much is evaluated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeVar

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import LanguageIdentifier
from mrs_suggest.models.retrieval.tiny import VOCABULARY
from mrs_suggest.training.options import LoraArguments, require_least, require_one_of, sound, trains_lora
from mrs_suggest.training.sampling import BATCHES, WINDOW

if TYPE_CHECKING:
    from transformers import TrainingArguments

# Options of the libraries' trainers that have no effect here, and why.
WITHOUT_EFFECT = {
    "data_seed": "--seed draws the batches",
    "train_sampling_strategy": "see --batches and --length_window",
    "bf16_full_eval": "evaluation is in the model's precision",
    "fp16_full_eval": "evaluation is in the model's precision",
    "predict_with_generate": "every evaluation generates",
    "generation_num_beams": "see --beams",
    "generation_max_length": "see --max_tokens",
    "generation_config": "see --beams and the options beside it",
    "prompts": "see --query_prompt and --reply_prompt",
    "batch_sampler": "see --batches and --sampling_alpha",
    "multi_dataset_batch_sampler": "see --batches and --sampling_alpha",
    "router_mapping": "messages and replies each have their encoder",
    "per_device_eval_batch_size": "evaluation has its own batches",
    "sortish_sampler": "see --length_window",
}


@dataclass
class ReplyArguments(LoraArguments):
    """Where training pairs come from, how they are drawn, and what is evaluated."""

    advanced: ClassVar[tuple[str, ...]] = (
        "batches",
        "length_window",
        "vocabulary",
    )
    setting: str | None = field(
        default=None,
        metadata={
            "help": "monolingual, zero_shot, mt or multilingual (paper, section 3.2): the data for training, "
            "validation and test; default: --languages for all three"
        },
    )
    languages: list[str] = field(
        default_factory=lambda: ["all"], metadata={"help": "languages to test on, or `all` in the data"}
    )
    train: list[str] | None = field(
        default=None, metadata={"help": "training sources in place of the setting's, such as `en mt-es`"}
    )
    validation: list[str] | None = field(
        default=None, metadata={"help": "languages that choose the checkpoint, in place of the setting's"}
    )
    sampling_alpha: float | None = field(
        default=None,
        metadata={"help": "sources are drawn by n^alpha: 0 equal sizes (multilingual), .3 (XGLUE), 1 by size (others)"},
    )
    batches: str = field(
        default=BATCHES[0], metadata={"help": "language: one in each batch, as in the official code; or mixed"}
    )
    length_window: int = field(
        default=WINDOW, metadata={"help": "steps whose examples are sorted by length together; 0: not sorted"}
    )
    language_model: str | None = field(
        default=None,
        metadata={
            "help": "fastText's file (lid.176.ftz), for the share of suggestions in a wrong language; default: the "
            "installed one, if there is one"
        },
    )
    vocabulary: int = field(default=VOCABULARY, metadata={"help": "largest vocabulary of `tiny`"})
    freeze_embeddings: bool = field(default=False, metadata={"help": "freeze the embeddings (paper, 4.3: yes)"})
    max_train_examples: int | None = field(default=None, metadata={"help": "limit per source; a seeded sample"})
    max_validation_examples: int | None = field(
        default=10_000, metadata={"help": "limit per language; a seeded sample"}
    )
    max_test_examples: int | None = field(
        default=100_000, metadata={"help": "limit per language; a seeded sample (TF-IDF takes 10 ms per example)"}
    )


Arguments = TypeVar("Arguments", bound=ReplyArguments)


def sound_reply(
    options: Arguments,
    training: TrainingArguments,
    metrics: Sequence[str],
    without_effect: Mapping[str, str] | None = None,
) -> Arguments:
    """The options, once the libraries would not fail with them; see `mrs_suggest.training.options.sound`."""
    options = sound(options, training, metrics, {**WITHOUT_EFFECT, **(without_effect or {})})
    require_least(options, "vocabulary", 100)
    require_least(options, "length_window", 0)
    require_one_of("batches", options.batches, BATCHES)
    for name in ("max_train_examples", "max_validation_examples", "max_test_examples"):
        if getattr(options, name) is not None:
            require_least(options, name, 1)
    if trains_lora(options) and (options.freeze_embeddings or getattr(options, "freeze_layers", False)):
        raise InputError("--peft lora: already freezes all but the adapters; leave the --freeze options out.")
    if options.language_model is not None:
        if not Path(options.language_model).is_file():
            raise InputError(
                f"--language_model {options.language_model}: no such file; pass a fastText model, such as lid.176.ftz."
            )
        LanguageIdentifier.open(options.language_model)  # refused now, not after hours of training
    return options
