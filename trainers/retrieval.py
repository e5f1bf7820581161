"""Train the paper's dual encoder (Zhang et al. 2021, section 4.1) on message-reply pairs.

    accelerate launch trainers/retrieval.py         # the baseline that ships, further, on the embedded sample
    accelerate launch trainers/retrieval.py --data DIR                          # a small model from scratch
    accelerate launch trainers/retrieval.py --config trainers/configs/retrieval/mbert/monolingual_es.yaml --data DIR

Without any option, `configs/retrieval/quickstart.yaml` is taken. The defaults train a small model from scratch in
minutes on two CPU cores; the paper's settings are in the YAML files.
"""

from __future__ import annotations

import logging
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from datasets import Dataset, concatenate_datasets
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments

from mrs_suggest.common.arguments import make_dataclass_parser, parse_with_config
from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.evaluation.comparison import MakeSystem
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.retrieval.distillation import DistilledReplyLoss, VectorLoss
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder, prune_vocabulary
from mrs_suggest.models.retrieval.encoder_layers import attend_in_bfloat16, freeze, rate_factors, set_dropout
from mrs_suggest.models.retrieval.losses import ReplyLoss
from mrs_suggest.models.retrieval.routes import encoders, prompts_of
from mrs_suggest.models.retrieval.tiny import build_tiny
from mrs_suggest.models.starting_points import ENCODER, start_kind
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.suggest.index.response_index import ResponseIndexes
from mrs_suggest.suggest.pipeline_config import save_config
from mrs_suggest.suggest.ranking.rankers import save_rankers, settings_and_weights, with_settings
from mrs_suggest.suggest.retrieval_suggester import Retriever
from mrs_suggest.training.callbacks.adapter_checkpoints import AdapterCheckpoints
from mrs_suggest.training.callbacks.divergence import StopsWhenDiverged
from mrs_suggest.training.callbacks.layer_rates import LayerRates
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.launch import train
from mrs_suggest.training.options import TINY
from mrs_suggest.training.recipe import Fitted
from mrs_suggest.training.reply.data import RunData, byte_lengths, with_perturbed, with_reply_ids, with_rows
from mrs_suggest.training.reply.families import RETRIEVAL
from mrs_suggest.training.reply.recipe import ReplyRecipe
from mrs_suggest.training.reply.retrieval.derived_parts import coverage_on_test, derived_parts
from mrs_suggest.training.reply.retrieval.memory_candidates import response_sets
from mrs_suggest.training.reply.retrieval.ranker_generator import require_language_of, require_outside
from mrs_suggest.training.reply.retrieval.retrieval_evaluation import (
    METRICS,
    ReplyEvaluator,
    RetrievalParts,
)
from mrs_suggest.training.reply.retrieval.retrieval_options import (
    STEPS,
    RetrievalArguments,
    RetrievalTrainingArguments,
    alpha_of,
    resolved,
    teacher_vectors,
)
from mrs_suggest.training.sampling import SampledPairs, make_sampler

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from torch import Tensor
    from transformers import HfArgumentParser, Trainer, TrainingArguments

QUICKSTART = Path(__file__).parent / "configs" / "retrieval" / "quickstart.yaml"  # what a bare command trains
WITHOUT_BONUS = f"{MODEL}, no bonus"
DIRECT = f"{MODEL}, direct scores"
# A run with a ranker compares: the ranker as it is stored, and its three best scores.
RANKED: Mapping[str, Mapping[str, Any]] = {MODEL: {}, f"{MODEL}, top 3": {"choice": "top"}}


class RetrievalTrainer(StopsWhenDiverged, SampledPairs, AdapterCheckpoints, LayerRates, SentenceTransformerTrainer):
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
        "mask_duplicates", "freeze_layers", "dropout", "layers", "layer_decay",
        "teacher", "teacher_prompt", "teacher_temperature", "distill_weight", "distill", "perturbed", "keep_pieces",
    )  # fmt: skip

    def resolved(self, options: RetrievalArguments) -> RetrievalArguments:
        router = logging.getLogger("sentence_transformers.base.modules.router")
        router.setLevel(logging.ERROR)  # two lengths are intended
        return resolved(options)

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

    def require_sound(self, options: RetrievalArguments, training: TrainingArguments) -> None:
        super().require_sound(options, training)
        if options.generator is not None:
            require_outside(options.generator, Path(training.output_dir or "."))

    def build(self, options: RetrievalArguments, training: TrainingArguments, data: RunData) -> RetrievalParts:
        if options.generator is not None:
            require_language_of(options.generator, [part.language for part in data.test])
        if options.model_name_or_path == TINY:
            with tempfile.TemporaryDirectory() as folder:
                build_tiny(data.texts(), Path(folder), training.seed, options.vocabulary)
                model = _built(options, folder, training.seed)
        else:
            model = _built(options, options.model_name_or_path, training.seed)
        if options.keep_pieces is not None:
            prune_vocabulary(model, data.texts(), options.keep_pieces)
        if options.freeze_embeddings or options.freeze_layers:
            freeze(model, options.freeze_embeddings, options.freeze_layers)
        if options.dropout is not None:
            set_dropout(model, options.dropout)
        if training.bf16 and training.device.type == "cpu":
            attend_in_bfloat16(model)
        return RetrievalParts(model)

    def make_trainer(
        self, parts: RetrievalParts, options: RetrievalArguments, training: TrainingArguments, data: RunData
    ) -> Trainer:
        assert isinstance(training, SentenceTransformerTrainingArguments)
        for part in data.test if alpha_of(options.alpha) != 0 else []:
            if not any(value is not None for value in part.responses.log_probs):
                raise InputError(
                    f"--alpha {options.alpha}: the response set of {part.language} has no log-probabilities."
                )
        training.router_mapping = {"message": "query", "reply": "document"}
        texts = zip(training.router_mapping, prompts_of(parts.model), strict=True)
        training.prompts = {column: prompt for column, prompt in texts if prompt}
        with training.main_process_first(local=False):
            sources = with_perturbed(data, options.perturbed or 0, training.seed)
            pairs = concatenate_datasets([with_reply_ids(source) for source in sources])
        if options.teacher is not None:
            pairs = with_rows(pairs)
        trainer = RetrievalTrainer(
            model=parts.model,
            args=training,
            train_dataset=pairs,
            loss=_loss(parts.model, options, training, pairs),
            evaluator=ReplyEvaluator(data.validation, alpha_of(options.alpha) or 0.0, EVALUATION_SEED),
        )
        if options.layer_decay != 1:
            trainer.rate_factors = rate_factors(parts.model, options.layer_decay)
            trainer.get_optimizer_cls_and_kwargs(training)  # refuses one that cannot have them, before the run begins
        sizes = [len(source) for source in sources]
        lengths = byte_lengths(pairs) if options.length_window else None
        trainer.pair_sampler = make_sampler(sizes, options, training, data.plan.sampling_alpha, lengths)
        return trainer

    def weights(self, parts: RetrievalParts) -> dict[str, Tensor]:
        return _weights(parts.model)

    def stored_weights(self, parts: RetrievalParts, checkpoint: Path) -> dict[str, Tensor]:
        return _weights(load_dual_encoder(checkpoint))

    def complete(self, fitted: Fitted[RetrievalArguments, RunData, RetrievalParts]) -> RetrievalParts:
        return derived_parts(fitted)

    def save(self, parts: RetrievalParts, folder: Path) -> None:
        parts.model.save_pretrained(str(folder), create_model_card=False, safe_serialization=True)
        save_config(folder)
        for language, index in parts.indexes.items():
            index.save(folder / ResponseIndexes.FOLDER / language)
        save_rankers(parts.rankers, folder)
        if parts.generator is not None and parts.rankers:
            parts.generator.copy_to(folder)
        if parts.detector:
            parts.detector.save(folder)
        if parts.guard:
            parts.guard.save(folder)

    def systems(self, parts: RetrievalParts) -> list[MakeSystem]:
        if parts.rankers:
            return [_ranked(parts, name, changes) for name, changes in RANKED.items()] + [
                lambda part: Retriever(parts.model, response_sets(parts.indexes, parts.rankers), DIRECT)
            ]
        systems: list[MakeSystem] = [lambda part: Retriever(parts.model, parts.indexes, MODEL)]
        if any(index.alpha for index in parts.indexes.values()):
            plain = {code: replace(index, alpha=0.0) for code, index in parts.indexes.items()}
            systems.append(lambda part: Retriever(parts.model, plain, WITHOUT_BONUS))
        return systems

    def add_figures(self, fitted: Fitted[RetrievalArguments, RunData, RetrievalParts], figures: Record) -> None:
        name, revision = fitted.options.model_name_or_path, fitted.options.model_revision
        if name != TINY and (kind := start_kind(name, revision)) != ENCODER:
            figures["start"] = kind
        if rankers := fitted.parts.rankers:
            figures["ranker"] = settings_and_weights(rankers)
            figures["coverage"] = coverage_on_test(fitted)
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
        options.layers,
    )


def _ranked(parts: RetrievalParts, name: str, changes: Mapping[str, Any]) -> MakeSystem:
    rankers = with_settings(parts.rankers, **changes)
    return lambda part: Retriever(parts.model, parts.indexes, name, rankers.get(part.language))


def _loss(
    model: SentenceTransformer, options: RetrievalArguments, training: TrainingArguments, pairs: Dataset
) -> ReplyLoss:
    shared: dict[str, Any] = {
        "kind": options.loss,
        "mask_duplicates": bool(options.mask_duplicates),
        "mini_batch_size": options.mini_batch_size,
        "temperature": options.temperature,
    }
    if options.teacher is None:
        gather = options.gather_across_devices and training.world_size > 1
        return ReplyLoss(model, gather_across_devices=gather, **shared)
    vectors = teacher_vectors(options, pairs["message"][:], pairs["reply"][:], training)
    if options.distill == "vectors":
        return VectorLoss(model, options.mini_batch_size, teacher=vectors)
    return DistilledReplyLoss(model, teacher=vectors, weight=options.distill_weight or 1.0, **shared)


def _weights(model: SentenceTransformer) -> dict[str, Tensor]:
    both = enumerate(encoders(model))
    return {f"{number}.{name}": value for number, part in both for name, value in part.state_dict().items()}


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    given = list(sys.argv[1:] if argv is None else argv) or ["--config", str(QUICKSTART)]
    return run_with_sentence(RETRIEVAL.name, lambda: train(Retrieval(), *parse_with_config(make_parser(), given)))


if __name__ == "__main__":
    sys.exit(main())
