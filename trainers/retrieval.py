"""Train the paper's dual encoder (Zhang et al. 2021, section 4.1) on message-reply pairs.

    accelerate launch trainers/retrieval.py                                     # a small model on the embedded sample
    accelerate launch trainers/retrieval.py --config trainers/configs/retrieval/mbert/monolingual_es.yaml --data DIR

The defaults train a small model from scratch in minutes on two CPU cores; the paper's settings are in the YAML files.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from datasets import concatenate_datasets
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

from mrs_core.arguments import make_dataclass_parser, parse_with_config
from mrs_core.errors import InputError, run_with_sentence
from mrs_evaluation.comparison import MakeSystem
from mrs_evaluation.language_data import EVALUATION_SEED
from mrs_models.answering import MODEL
from mrs_models.dual_encoder import MESSAGE_TOKENS, REPLY_TOKENS, build_dual_encoder, load_dual_encoder
from mrs_models.encoder_layers import freeze
from mrs_models.losses import ReplyLoss, require_temperature
from mrs_models.response_index import ResponseIndexes
from mrs_models.retrieval_suggester import Retriever
from mrs_models.routes import encoders, prompts_of
from mrs_models.starting_points import checkpoint_prompts
from mrs_models.tiny import build_tiny
from mrs_training.adapter_checkpoints import AdapterCheckpoints
from mrs_training.card import Record
from mrs_training.divergence import StopsWhenDiverged
from mrs_training.launch import train
from mrs_training.options import TINY, require_least, with_model_revision
from mrs_training.recipe import Fitted
from mrs_training.reply.data import RunData, byte_lengths, with_reply_ids
from mrs_training.reply.families import RETRIEVAL
from mrs_training.reply.options import ReplyArguments
from mrs_training.reply.recipe import ReplyRecipe
from mrs_training.reply.retrieval_evaluation import (
    BEST_METRIC,
    METRICS,
    ReplyEvaluator,
    RetrievalParts,
    build_index,
    sweep_alpha,
)
from mrs_training.sampling import SampledPairs, make_sampler

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor
    from transformers import HfArgumentParser, Trainer, TrainingArguments

STEPS = 1500  # when neither epochs nor steps are given: minutes on two cores, ten passes over the embedded sample
SWEEP = "sweep"
WITHOUT_BONUS = f"{MODEL}, no bonus"


@dataclass
class RetrievalArguments(ReplyArguments):
    """Model, data and loss. Defaults marked (tiny) were chosen on the validation split of the embedded sample."""

    length_window: int = field(
        default=0,
        metadata={
            "help": "steps whose pairs are sorted by length together; 0: not sorted (tiny), since negatives of similar "
            "length teach less"
        },
    )
    encoders: str = field(
        default="two", metadata={"help": "two (the paper's), one for both sides, or static (embeddings, very fast)"}
    )
    dimension: int = field(default=256, metadata={"help": "dimension of static embeddings"})
    pooling: str | None = field(
        default=None,
        metadata={
            "help": "pooler, mean, cls or max; default: a sentence-transformers checkpoint's own, else pooler as in "
            "the official code, mean for `tiny`"
        },
    )
    normalize: bool | None = field(
        default=None,
        metadata={
            "help": "give vectors length 1, so that the score is the cosine (then pass --temperature .05); default: "
            "the modules of a sentence-transformers checkpoint, else no (paper: the plain dot product)"
        },
    )
    query_prompt: str | None = field(
        default=None,
        metadata={
            "help": "text put before messages, such as `query: `; saved with the model; default: a "
            "sentence-transformers checkpoint's own prompt for queries, else none"
        },
    )
    reply_prompt: str | None = field(
        default=None,
        metadata={
            "help": "text put before replies; saved with the model; default: a sentence-transformers checkpoint's own "
            "prompt for documents, else none"
        },
    )
    message_tokens: int = field(
        default=MESSAGE_TOKENS, metadata={"help": "longer messages are cut (official train.sh)"}
    )
    reply_tokens: int = field(default=REPLY_TOKENS, metadata={"help": "longer replies are cut (official train.sh)"})
    loss: str = field(default="eq4", metadata={"help": "eq4 (the paper's), symsm or sm (the official code's)"})
    temperature: float = field(
        default=1.0,
        metadata={
            "help": "scores are divided by it in the loss (paper: 1, plain dot products); with --normalize true pass "
            ".05, the default of sentence-transformers (scale 20)"
        },
    )
    mask_duplicates: bool | None = field(
        default=None, metadata={"help": "do not use equal replies as negatives; default: on for eq4 alone"}
    )
    mini_batch_size: int = field(
        default=64, metadata={"help": "pairs embedded at a time (GradCache); affects memory only"}
    )
    gather_across_devices: bool = field(
        default=True,
        metadata={"help": "use the replies of all devices as negatives, so that the loss is that of one device"},
    )
    freeze_layers: int = field(default=0, metadata={"help": "freeze the lowest N layers (paper: 2)"})
    alpha: str = field(
        default="0",
        metadata={
            "help": "weight of the log-probability bonus in suggestions (paper, section 4.1: none), or `sweep`: the "
            "best one on validation"
        },
    )


@dataclass
class RetrievalTrainingArguments(SentenceTransformerTrainingArguments):
    """The trainer's own arguments with other defaults, chosen for `tiny` on the sample's validation split."""

    output_dir: str | None = field(default="build/retriever", metadata={"help": "the folder of the run"})
    per_device_train_batch_size: int = field(default=64, metadata={"help": "pairs per step and device (paper: 256)"})
    num_train_epochs: float = field(
        default=0.0,
        metadata={"help": f"passes over the pairs (paper: 20 en, 50 others); 0: train {STEPS:,} steps"},
    )
    learning_rate: float = field(default=1e-3, metadata={"help": "peak learning rate (paper: 1e-6)"})
    warmup_steps: float = field(default=0.05, metadata={"help": "steps, or a share of them if below 1 (paper: .01)"})
    lr_scheduler_type: str = field(default="linear", metadata={"help": "schedule after the warm-up"})
    logging_steps: float = field(default=50, metadata={"help": "steps between two points of the loss curve"})
    eval_strategy: str = field(default="steps", metadata={"help": "no, steps or epoch; must equal save_strategy"})
    eval_steps: float | None = field(default=0.1, metadata={"help": "steps, or a share of the run if below 1"})
    save_strategy: str = field(default="steps", metadata={"help": "no, steps or epoch"})
    save_steps: float = field(default=0.1, metadata={"help": "steps, or a share of the run if below 1"})
    save_total_limit: int | None = field(default=2, metadata={"help": "checkpoints kept: the best and the last"})
    load_best_model_at_end: bool = field(default=True, metadata={"help": "keep the best checkpoint"})
    metric_for_best_model: str | None = field(
        default=BEST_METRIC, metadata={"help": "the validation metric that picks the checkpoint"}
    )
    report_to: str = field(default="none", metadata={"help": "integrations such as tensorboard"})


class RetrievalTrainer(StopsWhenDiverged, SampledPairs, AdapterCheckpoints, SentenceTransformerTrainer):
    """The library's trainer with our batches, and without its cards, which would hold training texts."""

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Leave the card's callback out: our card is rendered from `run.json`."""


class Retrieval(ReplyRecipe[RetrievalArguments, RetrievalParts]):
    """The dual encoder in a run."""

    family, metrics, ranks, steps = RETRIEVAL, METRICS, True, STEPS
    without_effect = MappingProxyType(
        {
            "label_smoothing_factor": "the loss of replies is not smoothed",
            "ddp_find_unused_parameters": "a pass uses one of the two encoders, so ranks always look for unused ones",
        }
    )
    resume_keys = (
        "encoders", "dimension", "pooling", "normalize", "query_prompt", "reply_prompt", "loss", "temperature",
        "mask_duplicates", "freeze_layers",
    )  # fmt: skip

    def resolved(self, options: RetrievalArguments) -> RetrievalArguments:
        require_least(options, "mini_batch_size", 1)
        require_least(options, "freeze_layers", 0)
        require_least(options, "dimension", 1)
        require_temperature(options.temperature)
        _alpha(options.alpha)
        if options.encoders != "static" and options.dimension != RetrievalArguments.dimension:
            raise InputError(f"--dimension {options.dimension}: applies only to --encoders static; pass that too.")
        if options.encoders == "static" and options.pooling not in (None, "mean"):
            raise InputError(f"--pooling {options.pooling}: --encoders static supports only mean; leave it out.")
        if options.encoders == "static" and int(os.environ.get("WORLD_SIZE", 1)) > 1:
            raise InputError("--encoders static: trains in one process (it takes seconds); launch only one.")
        logging.getLogger("sentence_transformers.base.modules.router").setLevel(
            logging.ERROR
        )  # two lengths are intended
        tiny = options.model_name_or_path == TINY
        options = with_model_revision(options)
        plain = tiny or options.encoders == "static"
        own = ("", "") if plain else checkpoint_prompts(options.model_name_or_path, options.model_revision)
        return replace(
            options,
            query_prompt=own[0] if options.query_prompt is None else options.query_prompt,
            reply_prompt=own[1] if options.reply_prompt is None else options.reply_prompt,
            pooling=options.pooling or ("mean" if tiny else None),
            mask_duplicates=options.loss == "eq4" if options.mask_duplicates is None else options.mask_duplicates,
        )

    def saves_memory(self, options: RetrievalArguments, training: TrainingArguments, trains: bool) -> str:
        if not trains:
            return "lower --message_tokens, --max_validation_examples or --max_test_examples"
        batch = training.per_device_train_batch_size
        if options.encoders == "static":
            return f"lower --per_device_train_batch_size (now {batch:,})"
        at_a_time = min(options.mini_batch_size, batch)
        if at_a_time > 1:
            return f"lower --mini_batch_size to less than {at_a_time:,}, which does not change the loss"
        return f"lower --message_tokens or --per_device_train_batch_size (now {batch:,}), or pass --peft lora"

    def build(self, options: RetrievalArguments, training: TrainingArguments, data: RunData) -> RetrievalParts:
        if options.model_name_or_path == TINY:
            with tempfile.TemporaryDirectory() as folder:
                build_tiny(data.texts(), Path(folder), training.seed, options.vocabulary)
                model = _built(options, folder, training.seed)
        else:
            model = _built(options, options.model_name_or_path, training.seed)
        if options.freeze_embeddings or options.freeze_layers:
            freeze(model, options.freeze_embeddings, options.freeze_layers)
        return RetrievalParts(model)

    def make_trainer(
        self, parts: RetrievalParts, options: RetrievalArguments, training: TrainingArguments, data: RunData
    ) -> Trainer:
        assert isinstance(training, SentenceTransformerTrainingArguments)
        for part in data.test if _alpha(options.alpha) != 0 else []:
            if not any(value is not None for value in part.responses.log_probs):
                raise InputError(
                    f"--alpha {options.alpha}: the response set of {part.language} has no log-probabilities."
                )
        training.router_mapping = {"message": "query", "reply": "document"}
        texts = zip(training.router_mapping, prompts_of(parts.model), strict=True)
        training.prompts = {column: prompt for column, prompt in texts if prompt}
        with training.main_process_first(local=False):
            pairs = concatenate_datasets([with_reply_ids(source) for source in data.sources.values()])
        gather = options.gather_across_devices and training.world_size > 1
        trainer = RetrievalTrainer(
            model=parts.model,
            args=training,
            train_dataset=pairs,
            loss=ReplyLoss(
                parts.model,
                options.loss,
                bool(options.mask_duplicates),
                options.mini_batch_size,
                gather,
                options.temperature,
            ),
            evaluator=ReplyEvaluator(data.validation, _alpha(options.alpha) or 0.0, EVALUATION_SEED),
        )
        sizes = [len(source) for source in data.sources.values()]
        lengths = byte_lengths(pairs) if options.length_window else None
        trainer.pair_sampler = make_sampler(sizes, options, training, data.plan.sampling_alpha, lengths)
        return trainer

    def weights(self, parts: RetrievalParts) -> dict[str, Tensor]:
        return _weights(parts.model)

    def stored_weights(self, parts: RetrievalParts, checkpoint: Path) -> dict[str, Tensor]:
        return _weights(load_dual_encoder(checkpoint))

    def complete(self, fitted: Fitted[RetrievalArguments, RunData, RetrievalParts]) -> RetrievalParts:
        model, alpha, sweep = fitted.parts.model, _alpha(fitted.options.alpha), None
        if alpha is None:
            sweep = sweep_alpha(model, fitted.data.validation, 0)
            alpha = sweep.alpha
        indexes = {part.language: build_index(model, part, alpha) for part in fitted.data.test}
        return RetrievalParts(model, indexes, sweep)

    def save(self, parts: RetrievalParts, folder: Path) -> None:
        parts.model.save_pretrained(str(folder), create_model_card=False, safe_serialization=True)
        for language, index in parts.indexes.items():
            index.save(folder / ResponseIndexes.FOLDER / language)

    def systems(self, parts: RetrievalParts) -> list[MakeSystem]:
        systems: list[MakeSystem] = [lambda part: Retriever(parts.model, parts.indexes, MODEL)]
        if any(index.alpha for index in parts.indexes.values()):
            plain = {code: replace(index, alpha=0.0) for code, index in parts.indexes.items()}
            systems.append(lambda part: Retriever(parts.model, plain, WITHOUT_BONUS))
        return systems

    def add_figures(self, fitted: Fitted[RetrievalArguments, RunData, RetrievalParts], figures: Record) -> None:
        figures["alpha"] = next(iter(fitted.parts.indexes.values())).alpha
        if sweep := fitted.parts.sweep:
            figures["alpha_unit"] = sweep.unit
            figures["alpha_on_validation"] = {f"{alpha:g}": rouge for alpha, rouge in sweep.rouge.items()}


def make_parser() -> HfArgumentParser:
    """The parser of this trainer; `mrs train retrieval` uses it too."""
    return make_dataclass_parser((RetrievalArguments, RetrievalTrainingArguments), RETRIEVAL.name, __doc__ or "")


def _built(options: RetrievalArguments, name: str, seed: int) -> SentenceTransformer:
    return build_dual_encoder(
        name,
        options.pooling,
        options.message_tokens,
        options.reply_tokens,
        options.model_revision,
        options.encoders,
        options.dimension,
        seed,
        options.query_prompt,
        options.reply_prompt,
        options.normalize,
    )


def _weights(model: SentenceTransformer) -> dict[str, Tensor]:
    both = enumerate(encoders(model))
    return {f"{number}.{name}": value for number, part in both for name, value in part.state_dict().items()}


def _alpha(text: str) -> float | None:
    """The weight of the bonus; None means the best one on validation."""
    if text == SWEEP:
        return None
    try:
        alpha = float(text)
        if 0 <= alpha < float("inf"):
            return alpha
        raise ValueError
    except ValueError:
        raise InputError(f"--alpha {text}: expected 0 or more, or `{SWEEP}` for the best one on validation.") from None


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence(RETRIEVAL.name, lambda: train(Retrieval(), *parse_with_config(make_parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
