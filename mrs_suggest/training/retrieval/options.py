"""The options of the retrieval trainer, and what follows from them and from the checkpoint."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from sentence_transformers import SentenceTransformerTrainingArguments

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import split_revision
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.models.generation.reply_writer import MOST_SUGGESTIONS
from mrs_suggest.models.retrieval.distillation import TeacherVectors, load_teacher
from mrs_suggest.models.retrieval.dual_encoder import ENCODERS
from mrs_suggest.models.retrieval.losses import require_temperature
from mrs_suggest.models.retrieval.pruned_vocabulary import LEAST_PIECES
from mrs_suggest.models.retrieval.retriever_start import DEFAULTS, Start
from mrs_suggest.models.starting_points import RETRIEVAL, TINY, require_start
from mrs_suggest.suggest.ranking.choice import CHOICES
from mrs_suggest.suggest.ranking.language_ranker import PARTS
from mrs_suggest.suggest.ranking.memory import PROTOTYPES
from mrs_suggest.training.options import TrainerDefaults, option, require_one_of, trains_lora
from mrs_suggest.training.reply.options import ReplyArguments, sound_reply
from mrs_suggest.training.retrieval.ranker_generator import generator_folder, require_outside
from mrs_suggest.training.retrieval.ranker_tuning import MOST_REMEMBERED, RankerOptions

if TYPE_CHECKING:
    from transformers import TrainingArguments

METRICS = ("rouge_mrr", "weighted_rouge", "mrr", "p_at_1")
# Ours: on open chat ROUGE alone, the paper's main metric, kept checkpoints whose MRR had fallen.
BEST_METRIC = METRICS[0]
STEPS = 1500  # when neither epochs nor steps are given: minutes on two cores, ten passes over the embedded sample
SWEEP = "sweep"
WITHOUT_EFFECT = {
    "label_smoothing_factor": "the loss of replies is not smoothed",
    "ddp_find_unused_parameters": "a pass uses one of the two encoders, so ranks always look for unused ones",
}
DISTILL = ("similarities", "vectors")
TEACHER_OPTIONS = ("teacher_prompt", "teacher_temperature", "distill_weight", "distill", "perturbed", "distill_text")
PERTURBED = 20  # copies; ours: with --distill vectors on the sample, few epochs over many copies

GENERATED = SUGGESTIONS  # the search keeps five beams in any case, so as many replies cost the same


@dataclass
class RetrievalArguments(ReplyArguments):
    """Model, data and loss. Defaults marked (tiny) were chosen on the validation split of the embedded sample."""

    advanced: ClassVar[tuple[str, ...]] = (
        "dimension", "mask_duplicates", "teacher_prompt", "teacher_temperature", "distill_weight", "perturbed",
        "distill_text", "gather_across_devices", "layer_decay", "dropout", "ranker_parts", "memory_dimension",
        "memory_prototypes", "memory_messages", "generated",
    )  # fmt: skip
    least: ClassVar[dict[str, int]] = {
        **dict.fromkeys(("freeze_layers", "context_turns", "perturbed", "generated"), 0),
        **dict.fromkeys(("mini_batch_size", "layers", "dimension", "memory_dimension"), 1),
        **dict.fromkeys(("memory_prototypes", "memory_messages"), 1), "keep_pieces": LEAST_PIECES,
    }  # fmt: skip
    length_window: int = option(
        0,
        "steps whose pairs are sorted by length together; 0: not sorted (tiny), since negatives of similar "
        "length teach less",
    )
    encoders: str | None = option(
        None,
        "two, one for both sides, or static (embeddings, very fast); default: those of a trained "
        "retriever, static for a sentence-transformers model of token vectors, else two (the paper's)",
    )
    dimension: int | None = option(None, "dimension of untrained static embeddings; default: 256 (tiny)")
    pooling: str | None = option(
        None,
        "pooler, mean, cls or max; default: that of a trained retriever or of a sentence-transformers "
        "checkpoint, else pooler as in the official code, mean for `tiny`",
    )
    normalize: bool | None = option(
        None,
        "give vectors length 1, so that the score is the cosine (then pass --temperature .05); default: "
        "as a trained retriever or a sentence-transformers checkpoint does, else no (paper: plain dot product)",
    )
    query_prompt: str | None = option(
        None,
        "text put before messages, such as `query: `; saved with the model; default: the checkpoint's own "
        "prompt for queries, if it is a sentence-transformers model or a trained retriever, else none",
    )
    reply_prompt: str | None = option(
        None,
        "text put before replies; saved with the model; default: the checkpoint's own prompt for "
        "documents, if it is a sentence-transformers model or a trained retriever, else none",
    )
    message_tokens: int | None = option(
        None, "longer messages are truncated; default: that of a trained retriever, else 70 (official train.sh)"
    )
    reply_tokens: int | None = option(
        None, "longer replies are truncated; default: that of a trained retriever, else 30 (official train.sh)"
    )
    context_turns: int = option(
        0, "turns before a message that are read with it, from the column `context` of the data; 0: none (paper)"
    )
    loss: str = option("eq4", "eq4 (the paper's), symsm or sm (the official code's)")
    temperature: float = option(
        1.0,
        "divisor of the scores in the loss (paper: 1, plain dot products); with --normalize true pass "
        ".05, the default of sentence-transformers (scale 20)",
    )
    mask_duplicates: bool | None = option(None, "do not use equal replies as negatives; default: only for eq4")
    teacher: str | None = option(
        None,
        "a model whose similarities within a batch are learned, too: a trained retriever, a "
        "sentence-transformers model or an encoder; a hub id (also ORG/NAME@REVISION) or a folder",
    )
    teacher_prompt: str | None = option(
        None, "text put before the teacher's messages and replies; default: its own prompts"
    )
    teacher_temperature: float | None = option(
        None,
        "divisor of the teacher's similarities (the student's: --temperature); default: .05 for cosines, "
        "as sentence-transformers' scale of 20, else 1",
    )
    distill_weight: float | None = option(
        None, "weight of the teacher's loss; default: 1, as that of the replies (ours)"
    )
    distill: str | None = option(
        None,
        "similarities: learn replies, and the teacher's similarities within a batch; vectors: only copy "
        "the teacher's vectors, which teaches a small student most; default: similarities",
    )
    perturbed: int | None = option(
        None,
        "with --distill vectors: perturbed copies of each message that are learned, too; default: "
        f"{PERTURBED} (chosen on the sample's validation split)",
    )
    distill_text: list[str] = option(
        [],
        "LANG=SOURCE ...: with --distill vectors, sentences whose vectors are learned, too, as for --text of `mrs "
        "train pretraining`: a small student learns how its teacher reads words that the data lack",
    )
    keep_pieces: int | None = option(
        None,
        "cut the checkpoint's vocabulary to the N pieces that the training texts use most, and their "
        "characters (a small multilingual model is mostly embeddings); default: keep it",
    )
    mini_batch_size: int = option(64, "pairs embedded at a time (GradCache); affects memory only")
    gather_across_devices: bool = option(
        True, "use the replies of all devices as negatives, so that the loss is that of one device"
    )
    layers: int | None = option(None, "keep only the first N transformer layers of the checkpoint; default: all")
    layer_decay: float = option(
        1.0,
        "ratio of a layer's learning rate to that of the layer above; the top layer has --learning_rate, the "
        "embeddings the lowest; 1: one rate (paper)",
    )
    dropout: float | None = option(
        None,
        "dropout of the encoders while they train (on a CPU it takes a third of the time); default: the "
        "checkpoint's, usually .1",
    )
    freeze_layers: int = option(0, "freeze the lowest N layers (paper: 2)")
    alpha: str = option(
        "0",
        "weight of the log-probability bonus in suggestions (paper, section 4.1: none), or `sweep`: the "
        "best one on validation",
    )
    ranker: bool = option(
        False,
        "remember the training messages, mix several scores with weights from validation and choose three "
        "suggestions that complement each other (ours; the paper suggests the three best direct scores)",
    )
    ranker_parts: list[str] = option(
        list(PARTS),
        f"scores that the ranker mixes: {', '.join(PARTS)} (default: all), with weights from validation, or all with "
        "given ones, such as votes=0.5",
    )
    choice: str = option(
        CHOICES[0],
        "how a ranker chooses suggestions: expected (largest expected similarity of the best one, Towle "
        "and Zhou 2023) or top (best scores)",
    )
    memory_dimension: int | None = option(
        None, "dimension of the remembered vectors, on their principal axes (default: the encoder's)"
    )
    memory_prototypes: int = option(PROTOTYPES, "messages to remember per reply, the most typical ones (ours)")
    memory_messages: int = option(
        MOST_REMEMBERED, "maximum messages to remember per language; search stays exact (ours)"
    )
    generator: str | None = option(
        None,
        "a trained generator (a folder, ORG/NAME or ORG/NAME@REVISION) that scores the ranker's best "
        "candidates and adds its own; it is copied into the run (generate, then rerank: paper, section 6)",
    )
    generated: int | None = option(
        None,
        "replies of the generator that become candidates; 0: it only scores; default: "
        f"{GENERATED}, as many as it would suggest alone",
    )
    memory_candidates: bool = option(
        False, "also suggest training replies that the response set lacks (rare ones, which can be personal)"
    )


@dataclass
class RetrievalTrainingArguments(TrainerDefaults, SentenceTransformerTrainingArguments):
    """The trainer's own arguments with other defaults, chosen for `tiny` on the sample's validation split."""

    output_dir: str | None = option("build/retriever", "the folder of the run")
    per_device_train_batch_size: int = option(64, "pairs per step and device (paper: 256 on all devices)")
    num_train_epochs: float = option(0.0, f"passes over the pairs (paper: 20 en, 50 others); 0: train {STEPS:,} steps")
    learning_rate: float = option(1e-3, "peak learning rate (paper: 1e-6)")
    warmup_steps: float = option(0.05, "steps, or a share of them if below 1 (paper: .01)")
    lr_scheduler_type: str = option("linear", "schedule after the warm-up")
    rate_decay: float = option(1.0, "factor on the rate per 5,000 steps after the warm-up (official script: .999)")
    logging_steps: float = option(50, "steps between two points of the loss curve")
    eval_steps: float | None = option(0.1, "steps, or a share of the run if below 1")
    save_steps: float = option(0.1, "steps, or a share of the run if below 1")
    metric_for_best_model: str | None = option(BEST_METRIC, "the validation metric that picks the checkpoint")


def sound_retrieval(options: RetrievalArguments, training: RetrievalTrainingArguments) -> RetrievalArguments:
    """The options, once they go together with the library's and with the run's folder; else an InputError."""
    options = sound_reply(options, training, METRICS, WITHOUT_EFFECT)
    decays = 0 < training.rate_decay < 1 and training.lr_scheduler_type == "constant_with_warmup"
    if training.rate_decay != 1 and not decays:
        raise InputError("--rate_decay: expected more than 0 and less than 1, with constant_with_warmup as schedule.")
    if training.global_batch_size and training.gradient_accumulation_steps > 1:
        raise InputError(
            "--per_device_train_batch_size: too small for --global_batch_size, since all pairs of a step are compared; "
            "raise it, and pass --mini_batch_size to save memory."
        )
    if options.generator is not None:
        require_outside(options.generator, Path(training.output_dir or "."))
    return options


def resolved(options: RetrievalArguments) -> RetrievalArguments:
    """The options with defaults that depend on others and on the checkpoint; what a trained retriever has is kept."""
    if options.context_turns and (options.teacher is not None or options.generator is not None or trains_lora(options)):
        raise InputError(
            "--context_turns: does not go together with --teacher, --generator or --peft lora; leave one of them out."
        )
    if options.keep_pieces is not None and trains_lora(options):
        raise InputError(
            "--keep_pieces: with --peft lora the adapters' record can only name the model as it is, not one with a cut "
            "vocabulary; leave one of the two out."
        )
    require_temperature(options.temperature)
    if not 0 < options.layer_decay <= 1:
        raise InputError(f"--layer_decay: expected more than 0 and at most 1, found {options.layer_decay:g}.")
    alpha_of(options.alpha)
    ranker_options(options)
    if options.generator is not None:
        generator_folder(options.generator)
    if options.encoders is not None:
        require_one_of("encoders", options.encoders, ENCODERS)
    own = _own_settings(options)
    encoders = options.encoders or own["encoders"]
    if options.dimension is not None and encoders != "static":
        raise InputError(f"--dimension {options.dimension}: applies only to --encoders static; pass that too.")
    if encoders == "static" and options.pooling not in (None, "mean"):
        raise InputError(f"--pooling {options.pooling}: --encoders static supports only mean; leave it out.")
    if encoders == "static" and int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise InputError("--encoders static: trains in one process (it takes seconds); launch only one.")
    if encoders == "static" and (options.layers is not None or options.layer_decay != 1):
        option = "layers" if options.layers is not None else "layer_decay"
        raise InputError(f"--{option}: static vectors are one table without layers; leave it out.")
    _require_sound_teacher(options)
    if options.teacher is not None:
        own |= {"distill_weight": 1.0, "distill": DISTILL[0]}
        own["perturbed"] = PERTURBED if options.distill == DISTILL[1] else 0
    own["mask_duplicates"] = options.loss == "eq4"
    if options.generator is not None:
        own["generated"] = GENERATED
    return replace(options, **{key: value for key, value in own.items() if getattr(options, key) is None})


def _own_settings(options: RetrievalArguments) -> dict[str, Any]:
    """Defaults of the options that are not given."""
    name, revision = options.model_name_or_path, options.model_revision
    if name == TINY:
        return {**DEFAULTS, "pooling": "mean"}
    require_start(name, RETRIEVAL, revision)
    return Start(name, revision, options.encoders).settings()


def ranker_options(options: RetrievalArguments) -> RankerOptions:
    """The options with which a ranker is built.

    Raises:
        InputError: an option is out of its range, or given without --ranker true.
    """
    given = dict[str, float | None]()
    for part in options.ranker_parts:
        name, _, number = part.partition("=")
        require_one_of("ranker_parts", name, tuple(PARTS))
        given[name] = _at_least_0(number) if number else None
        if number and given[name] is None:
            raise InputError(f"--ranker_parts {part}: expected a number of at least 0 after the equals sign.")
    require_one_of("choice", options.choice, CHOICES)
    if not options.ranker_parts:
        raise InputError(f"--ranker_parts: expected at least one of {', '.join(PARTS)}.")
    names = tuple(name for name in PARTS if name in given)
    weights = tuple(weight for name in names if (weight := given[name]) is not None)
    if 0 < len(weights) < len(names) or (weights and not sum(weights)):
        raise InputError("--ranker_parts: expected a weight for each part, not all 0, or for none.")
    wanted = RankerOptions(
        names,
        options.choice,
        options.memory_dimension,
        options.memory_prototypes,
        options.memory_messages,
        tuple(weight / sum(weights) for weight in weights) or None,
    )
    if options.generated is not None:
        if options.generator is None:
            raise InputError("--generated: has no effect without --generator; pass that too, or leave it out.")
        if options.generated > MOST_SUGGESTIONS:
            raise InputError(f"--generated {options.generated}: expected at most {MOST_SUGGESTIONS}; lower it.")
    if not options.ranker and (wanted != RankerOptions() or options.generator is not None or options.memory_candidates):
        raise InputError(
            "--ranker_parts, --choice, --generator and --memory_...: apply only to a ranker; pass --ranker true, too."
        )
    return wanted


def _require_sound_teacher(options: RetrievalArguments) -> None:
    given = [name for name in TEACHER_OPTIONS if getattr(options, name) not in (None, [])]
    if options.teacher is None and given:
        raise InputError(f"--{given[0]}: has no effect without --teacher; pass that too, or leave it out.")
    if options.teacher_temperature is not None:
        require_temperature(options.teacher_temperature, "teacher_temperature")
    if options.distill_weight is not None and not 0 < options.distill_weight < float("inf"):
        raise InputError(f"--distill_weight: expected a number above 0, found {options.distill_weight:g}.")
    if options.distill is not None:
        require_one_of("distill", options.distill, DISTILL)
    if options.perturbed and options.distill != DISTILL[1]:
        raise InputError("--perturbed: applies to --distill vectors; perturbed messages have no reply to learn.")
    if options.distill_text and options.distill != DISTILL[1]:
        raise InputError("--distill_text: applies to --distill vectors; sentences alone have no reply to learn.")
    if options.distill == DISTILL[1]:
        for name in ("distill_weight", "teacher_temperature"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name}: has no effect with --distill vectors; leave it out.")
    if options.teacher is not None and int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise InputError(
            "--teacher: trains in one process, since similarities are those of a whole batch, of which each process "
            "has a part; launch only one."
        )


def teacher_vectors(
    options: RetrievalArguments, messages: Sequence[str], replies: Sequence[str], training: TrainingArguments
) -> TeacherVectors:
    """The vectors of training pairs by the options' teacher, in the training's precision; else an InputError."""
    name = str(options.teacher)
    name, revision = (name, None) if Path(name).exists() else split_revision(name, None)
    lengths = (options.message_tokens or 0, options.reply_tokens or 0)
    teacher = load_teacher(name, *lengths, options.teacher_prompt, revision).to(training.device)
    print(f"--teacher {options.teacher}: encoding the texts of {len(messages):,} pairs", file=sys.stderr)
    with torch.autocast(training.device.type, torch.bfloat16, enabled=training.bf16):
        return TeacherVectors.compute(teacher, messages, replies, options.teacher_temperature)


def alpha_of(text: str) -> float | None:
    """The weight of the bonus; None means the best one on validation."""
    alpha = None if text == SWEEP else _at_least_0(text)
    if alpha is None and text != SWEEP:
        raise InputError(f"--alpha {text}: expected 0 or more, or `{SWEEP}` for the best one on validation.")
    return alpha


def _at_least_0(text: str) -> float | None:
    """The number; None if it is not one of at least 0."""
    try:
        number = float(text)
    except ValueError:
        return None
    return number if 0 <= number < float("inf") else None
