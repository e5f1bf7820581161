"""The options of pretraining: text, rows, objective, and what trains."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

from transformers import TrainingArguments

from mrs_datasets.prepared.prepared import open_prepared
from mrs_datasets.texts.text_sources import PairSource, Reading, TextSource, languages_of
from mrs_suggest.common.errors import InputError, require_least
from mrs_suggest.models.generation.tiny_generator import LAYERS
from mrs_suggest.models.pretraining.future_ngrams import STREAMS
from mrs_suggest.models.pretraining.masked_lm import SHARE
from mrs_suggest.models.pretraining.noising import SPAN_LENGTH, SPAN_SHARE, parse_noises
from mrs_suggest.models.retrieval.tiny import VOCABULARY
from mrs_suggest.models.starting_points import TINY
from mrs_suggest.training.generation.decoder_options import DecoderArguments, with_decoder
from mrs_suggest.training.options import TrainerDefaults, is_given, option, require_one_of, sound, trains_lora
from mrs_suggest.training.pretraining.texts import TextData, read_texts
from mrs_suggest.training.sampling import BATCHES, WINDOW, require_alpha

METRICS = ("perplexity", "loss", "mean_loss")  # the last one of several objectives alone
HELD_OUT = 5000  # Ponti et al. 2020 (XCOPA), section 4.4
ALPHA = 0.3  # XGLUE, section 3.1
STEPS = 500  # when neither epochs nor steps are given: minutes on two cores
# Options of the library's trainer that have no effect here, and why.
WITHOUT_EFFECT = {
    "train_sampling_strategy": "see --batches and --length_window",
    "label_smoothing_factor": "perplexity is that of the loss without it",
}
SEQ2SEQ = ("xdae", "xfnp")
# Options that other objectives have no use for -> those that do.
OPTIONS_OF = {
    **dict.fromkeys(("noise", "span_share", "span_length"), ("xdae",)),
    "future_tokens": ("xfnp",),
    "tiny_layers": ("xdae",),
    **dict.fromkeys(("decoder", "decoder_layers"), SEQ2SEQ),
}
KINDS = ((TextSource, "text"), (PairSource, "parallel"))
OF_ENCODERS = ("masked_share", "whole_words", "frozen_encoder")


@dataclass
class PretrainingArguments(DecoderArguments):
    """The text, the rows that it is cut into, and the model that trains on it."""

    advanced: ClassVar[tuple[str, ...]] = (
        "batches", "length_window", "vocabulary", "tiny_layers", "span_share", "span_length",
    )  # fmt: skip
    least: ClassVar[dict[str, int]] = {
        "held_out": 0, "max_tokens": 8, "length_window": 0, "future_tokens": 1, "tiny_layers": 1,
        "max_train_examples": 1,
    }  # fmt: skip
    data: str = option(
        "sample", "without --text: a prepared folder, a hub id, or `sample`, of which --languages are used"
    )
    objective: list[str] = option(
        ["mlm"],
        "for an encoder, mlm: masked language modelling (XGLUE, section 3.1), tlm: that of translations "
        "(3.2); xdae: denoising of a seq2seq model (4.1); xfnp: future n-gram prediction of a ProphetNet (4.2); "
        "several share a model: each step trains one, and the perplexity of the first chooses the checkpoint",
    )
    shares: list[float] = option(
        [], "relative number of steps of each objective (default: equal; XGLUE, 6.1: at random)"
    )
    text: list[str] = option(
        [],
        "LANG=SOURCE ...: a text file (one sentence a line) or Parquet file, a folder of them, or for a "
        "prepared folder or hub id LANG=SOURCE:CONFIG:SPLIT (default: the language's config, train); a language "
        "may be repeated",
    )
    parallel: list[str] = option(
        [],
        "tlm: LANG-LANG=SOURCE ..., such as en-ht=pairs.tsv (two columns), en-ht=en.txt,ht.txt (line by "
        "line), or as for --text a Parquet file, a folder, or a data set with a column for each language",
    )
    parallel_columns: list[str] = option(
        [], "columns of both sides of --parallel in tables (default: named as the languages, or `translation`)"
    )
    languages: list[str] = option(["all"], "languages of --data, or `all` in it")
    text_column: str = option("text", "column of Parquet files and of data sets that `mrs data list` does not know")
    streaming: bool = option(
        False, "read hub data sets without downloading them whole: the first --max_train_examples sentences"
    )
    validation_text: list[str] = option([], "LANG=SOURCE ...: held-out text (default: a part of --text)")
    test_text: list[str] = option([], "LANG=SOURCE ...: its perplexity is reported once, at the end")
    validation_parallel: list[str] = option([], "as --validation_text: held-out translations")
    test_parallel: list[str] = option([], "as --test_text: translations")
    validation: list[str] = option(
        [], "languages of --text, pairs of --parallel that are held out in part (default: all)"
    )
    held_out: int = option(
        HELD_OUT, "sentences held out of each language's first text, one in ten at most (XCOPA, 4.4: 5,000)"
    )
    max_train_examples: int | None = option(None, "limit on sentences per language; a seeded sample")
    max_tokens: int = option(128, "tokens of a row, special ones included (ours: what two cores can train)")
    packing: bool = option(
        True, "fill rows with several sentences (ours: no padding); false: one each, truncated (tlm: a pair)"
    )
    masked_share: float = option(SHARE, "share of tokens or words that are masked (BERT, section 3.1: .15)")
    whole_words: bool = option(False, "mask all pieces of a word or none (BERT's release of 2019-05-31)")
    sampling_alpha: float = option(ALPHA, "languages are drawn by n^alpha (XGLUE, section 3.1: .3); 1: by size")
    batches: str = option("mixed", "mixed: of all languages (XGLUE, section 3.1); language: of one each")
    length_window: int = option(WINDOW, "without packing: sort rows by length in windows of this many batches")
    noise: list[str] = option(
        ["spans"],
        "xdae: shuffle, drop, mask or spans (XGLUE, 4.1; default: spans, section 6.3.4), several on one "
        "text as shuffle+drop, or mixed by share: spans=.7 shuffle+drop+mask=.3",
    )
    span_share: float = option(SPAN_SHARE, "xdae: share of tokens in spans (BART, section 5.1: .3; mBART: .35)")
    span_length: float = option(SPAN_LENGTH, "xdae: mean length of a span (XGLUE, 4.1: 3; mBART: 3.5)")
    future_tokens: int = option(STREAMS, "xfnp: tokens predicted at a time, of a new model (XGLUE, 4.2: 2)")
    frozen_encoder: bool = option(False, "train the head alone: the control for a checkpoint without one")
    vocabulary: int = option(VOCABULARY, "tiny: largest vocabulary")
    tiny_layers: int = option(LAYERS, "xdae from tiny: layers of the encoder, and as many of the decoder")


@dataclass
class PretrainingTrainingArguments(TrainerDefaults, TrainingArguments):
    """The trainer's own arguments with other defaults: ours, for `tiny`, not tuned."""

    output_dir: str | None = option("build/pretraining", "the folder of the run")
    per_device_train_batch_size: int = option(16, "rows per batch and device")
    per_device_eval_batch_size: int = option(32, "held-out sentences at a time; affects memory only")
    num_train_epochs: float = option(0.0, f"passes over the text; 0: train {STEPS:,} steps (--max_steps sets others)")
    learning_rate: float = option(1e-3, "peak learning rate (a pre-trained encoder: 5e-5)")
    warmup_steps: float = option(0.06, "steps, or a share of them if below 1 (RoBERTa: .06)")
    eval_steps: float | None = option(0.1, "steps, or a share of the run if below 1")
    save_steps: float = option(0.1, "steps, or a share of the run if below 1")
    metric_for_best_model: str | None = option(METRICS[0], "metric that picks the checkpoint (XCOPA, 4.4: perplexity)")


def sound_pretraining(options: PretrainingArguments, training: TrainingArguments) -> PretrainingArguments:
    """The options, once they are known to go together; else an InputError names the option."""
    options = sound(options, training, METRICS, WITHOUT_EFFECT)
    _require_own(options)
    require_one_of("batches", options.batches, BATCHES)
    require_least(training, 1, "per_device_eval_batch_size")
    require_alpha(options.sampling_alpha)
    if options.text and options.languages != ["all"]:
        raise InputError("--languages: chooses among those of --data, and --text names its own; leave it out.")
    if training.metric_for_best_model == "mean_loss" and len(options.objective) < 2:
        raise InputError(
            "--metric_for_best_model mean_loss: is the mean of several objectives; pass perplexity or loss."
        )
    if options.parallel_columns and len(options.parallel_columns) != 2:
        raise InputError(f"--parallel_columns: expected two names, found {len(options.parallel_columns)}.")
    if options.streaming and options.max_train_examples is None:
        raise InputError(
            "--streaming: text is read before training; limit it to a number of sentences with --max_train_examples."
        )
    for kind, named in (("text", False), ("parallel", True)):
        some = any(bool(languages_of(name)) is named for name in options.validation)
        if some and getattr(options, f"validation_{kind}"):
            raise InputError(
                f"--validation: holds a part of --{kind} out, which --validation_{kind} replaces; leave one out."
            )
    if trains_lora(options) and options.frozen_encoder:
        raise InputError("--frozen_encoder: adapters leave embeddings and head as they are; leave --peft lora out.")
    if is_given(options, "tiny_layers") and options.model_name_or_path != TINY:
        raise InputError(f"--tiny_layers: {options.model_name_or_path} has its own layers; leave it out.")
    return options


def _require_own(options: PretrainingArguments) -> None:
    """Refuse options of other objectives, and noise that cannot be."""
    for name, objectives in OPTIONS_OF.items():
        if is_given(options, name) and not set(objectives) & set(options.objective):
            raise InputError(f"--{name}: applies only to --objective {' and '.join(objectives)}; leave it out.")
    for name in OF_ENCODERS:
        if is_given(options, name) and set(options.objective) <= set(SEQ2SEQ):
            raise InputError(
                f"--{name}: applies only to encoders, not to --objective {' '.join(options.objective)}; leave it out."
            )
    parse_noises(options.noise)
    if not 0 < options.span_share <= 1:  # refuses NaN too
        raise InputError(f"--span_share {options.span_share:g}: expected more than 0 and at most 1.")
    if not 0 < options.span_length < math.inf:
        raise InputError(f"--span_length {options.span_length:g}: expected a mean length above 0 tokens.")


def resolved(options: PretrainingArguments) -> PretrainingArguments:
    """The options with `--text` for every language of `--data`, and with a decoder for an encoder that needs one."""
    if set(options.objective) & set(SEQ2SEQ):
        options = with_decoder(options)
    if options.text or options.objective == ["tlm"]:  # which reads translations alone
        return options
    have = open_prepared(options.data, options.data_revision)
    found = have.languages() if options.languages == ["all"] else options.languages
    at = f"@{options.data_revision}" if options.data_revision and "@" not in options.data else ""
    return replace(options, text=[f"{language}={options.data}{at}" for language in found])


def load_texts(options: PretrainingArguments, training: TrainingArguments) -> TextData:
    """The text of a run, by `read_texts`; InputError if validation is asked for and nothing is held out."""
    parts = [
        [kind.parse(value, f"--{split}{name}") for kind, name in KINDS for value in getattr(options, split + name)]
        for split in ("", "validation_", "test_")
    ]
    reading = Reading(options.text_column, options.parallel_columns, options.streaming)
    data = read_texts(parts, reading, options.held_out, options.validation, options.max_train_examples, training.seed)
    for kind, own in (("text", data), ("parallel", data.pairs)):
        if own.train and not own.validation and training.eval_strategy != "no":
            raise InputError(
                f"--held_out 0: nothing is held out for validation; pass --validation_{kind}, or --eval_strategy no "
                "with --save_strategy no."
            )
    return data
