"""The options of pretraining: text, rows, objective, and what trains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from mrs_core.errors import InputError
from mrs_datasets.prepared import open_prepared
from mrs_models.masking import SHARE
from mrs_models.tiny import VOCABULARY
from mrs_training import options as shared
from mrs_training.options import TINY, LoraArguments, require_least, require_one_of, trains_lora
from mrs_training.pretraining.texts import TextData, TextSource, read_texts
from mrs_training.sampling import BATCHES, WINDOW, require_alpha

if TYPE_CHECKING:
    from transformers import TrainingArguments

METRICS = ("perplexity", "loss")
HELD_OUT = 5000  # Ponti et al. 2020 (XCOPA), section 4.4
ALPHA = 0.3  # XGLUE, section 3.1
# Options of the library's trainer that have no effect here, and why.
WITHOUT_EFFECT = {
    "data_seed": "--seed draws the batches",
    "train_sampling_strategy": "see --batches and --length_window",
    "bf16_full_eval": "evaluation is in the model's precision",
    "fp16_full_eval": "evaluation is in the model's precision",
    "label_smoothing_factor": "perplexity is that of the loss without it",
}


@dataclass
class PretrainingArguments(LoraArguments):
    """Which text, how it is cut into rows, and what trains on it."""

    data: str = field(
        default="sample",
        metadata={"help": "without --text: a prepared folder, a hub id, or `sample`, of which --languages are used"},
    )
    objective: str = field(default="mlm", metadata={"help": "mlm: masked language modelling (XGLUE, section 3.1)"})
    text: list[str] = field(
        default_factory=list,
        metadata={
            "help": "LANG=SOURCE ...: a text file (one sentence a line), a folder of *.txt, or for a prepared folder "
            "or hub id LANG=SOURCE:CONFIG:SPLIT (default: the language's config, train); a language may come repeatedly"
        },
    )
    languages: list[str] = field(default_factory=lambda: ["all"], metadata={"help": "of --data, or `all` in it"})
    text_column: str = field(default="text", metadata={"help": "of a data set that `mrs data list` does not know"})
    validation_text: list[str] = field(
        default_factory=list, metadata={"help": "LANG=SOURCE ...: held-out text; without it, a part of --text is"}
    )
    test_text: list[str] = field(
        default_factory=list, metadata={"help": "LANG=SOURCE ...: its perplexity is reported once, at the end"}
    )
    validation: list[str] = field(
        default_factory=list, metadata={"help": "languages of --text that are held out in part (default: all)"}
    )
    held_out: int = field(
        default=HELD_OUT,
        metadata={"help": "sentences held out of each language's first text, one in ten at most (XCOPA, 4.4: 5,000)"},
    )
    max_train_examples: int | None = field(
        default=None, metadata={"help": "train on so many sentences of each language, drawn with the seed"}
    )
    max_tokens: int = field(
        default=128, metadata={"help": "tokens of a row, special ones included (ours: what two cores can train)"}
    )
    packing: bool = field(
        default=True, metadata={"help": "fill rows with several sentences (ours: no padding); else one each, cut off"}
    )
    masked_share: float = field(default=SHARE, metadata={"help": "of the tokens or words (BERT, section 3.1: .15)"})
    whole_words: bool = field(
        default=False, metadata={"help": "mask all pieces of a word or none (BERT's release of 2019-05-31)"}
    )
    sampling_alpha: float = field(
        default=ALPHA, metadata={"help": "languages are drawn by n^alpha (XGLUE, section 3.1: .3); 1: by size"}
    )
    batches: str = field(
        default="mixed", metadata={"help": "mixed: of all languages (XGLUE, section 3.1), or language: of one each"}
    )
    length_window: int = field(
        default=WINDOW, metadata={"help": "with --packing false: sort rows by length in windows of this many batches"}
    )
    frozen_encoder: bool = field(
        default=False, metadata={"help": "train the head alone: the control for a checkpoint without one"}
    )
    new_pieces: int = field(
        default=0, metadata={"help": "add so many pieces of the text to the vocabulary, for unseen scripts; 0: none"}
    )
    vocabulary: int = field(default=VOCABULARY, metadata={"help": "tiny: largest vocabulary"})


def require_sound(options: PretrainingArguments, training: TrainingArguments, objectives: Sequence[str]) -> None:
    """Refuse options that cannot go together.

    Raises:
        InputError: it names the option.
    """
    shared.require_sound(options, training, METRICS, WITHOUT_EFFECT)
    require_one_of("objective", options.objective, objectives)
    require_one_of("batches", options.batches, BATCHES)
    for name, least in (("held_out", 0), ("max_tokens", 8), ("length_window", 0), ("new_pieces", 0)):
        require_least(options, name, least)
    require_least(training, "per_device_eval_batch_size", 1)
    if options.max_train_examples is not None:
        require_least(options, "max_train_examples", 1)
    require_alpha(options.sampling_alpha)
    if options.text and options.languages != ["all"]:
        raise InputError("--languages: chooses among those of --data, and --text names its own; leave it out.")
    if options.validation_text and options.validation:
        raise InputError("--validation: holds a part of --text out, and there is --validation_text; leave one out.")
    if trains_lora(options):
        for name in ("frozen_encoder", "new_pieces"):
            if getattr(options, name):
                raise InputError(f"--{name}: adapters leave embeddings and head as they are; leave --peft lora out.")
    if options.new_pieces and options.model_name_or_path == TINY:
        raise InputError("--new_pieces: the tokenizer of `tiny` is trained on the text already; leave it out.")


def resolved(options: PretrainingArguments) -> PretrainingArguments:
    """The options with `--text` for every language of `--data`.

    Raises:
        InputError: a language is not in the data.
    """
    if options.text:
        return options
    have = open_prepared(options.data, options.data_revision)
    found = have.languages() if options.languages == ["all"] else options.languages
    at = f"@{options.data_revision}" if options.data_revision and "@" not in options.data else ""
    return replace(options, text=[f"{language}={options.data}{at}" for language in found])


def load_texts(options: PretrainingArguments, training: TrainingArguments) -> TextData:
    """The text of a run.

    Raises:
        InputError: see `read_texts`; or validation is asked for and nothing is held out.
    """
    train, validation, test = (
        [TextSource.parse(value, f"--{name}") for value in getattr(options, name)]
        for name in ("text", "validation_text", "test_text")
    )
    data = read_texts(
        train, validation, test, options.text_column, options.held_out, options.validation,
        options.max_train_examples, training.seed,
    )  # fmt: skip
    if not data.validation and training.eval_strategy != "no":
        raise InputError(
            "--held_out 0: nothing is held out for validation; pass --validation_text, or --eval_strategy no with "
            "--save_strategy no and --load_best_model_at_end false."
        )
    return data
