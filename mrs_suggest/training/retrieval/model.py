"""The dual encoder in a run: how it is built, trained and validated, and the systems that are compared with it."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from datasets import Dataset, concatenate_datasets
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator
from tqdm import tqdm
from transformers import TrainingArguments

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.comparison import MakeSystem, ValidationLog
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, LanguageData
from mrs_suggest.models.retrieval.distillation import DistilledReplyLoss, VectorLoss
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, prune_vocabulary
from mrs_suggest.models.retrieval.encoder_layers import attend_in_bfloat16, freeze, rate_factors, set_dropout
from mrs_suggest.models.retrieval.losses import ReplyLoss
from mrs_suggest.models.retrieval.retriever_start import DEFAULTS
from mrs_suggest.models.retrieval.routes import context_reader, prompts_of
from mrs_suggest.models.retrieval.tiny import start_folder
from mrs_suggest.models.saved.record import Record
from mrs_suggest.models.starting_points import ENCODER, TINY, start_kind
from mrs_suggest.suggest.answering import MODEL
from mrs_suggest.suggest.ranking.rankers import settings_and_weights, with_settings
from mrs_suggest.suggest.retrieval_suggester import Retriever
from mrs_suggest.training.reply.data import RunData, byte_lengths, texts_to_copy, with_reply_ids, with_rows
from mrs_suggest.training.retrieval.options import BEST_METRIC, DISTILL, RetrievalArguments, alpha_of, teacher_vectors
from mrs_suggest.training.retrieval.parts import RetrievalParts, build_index, response_sets
from mrs_suggest.training.retrieval.ranker_generator import require_language_of
from mrs_suggest.training.retrieval.ranker_tuning import ask, coverage
from mrs_suggest.training.sampling import make_sampler
from mrs_suggest.training.trainer import OurTrainer

WITHOUT_BONUS = f"{MODEL}, no bonus"
TOP, DIRECT = f"{MODEL}, top 3", f"{MODEL}, direct scores"


class RetrievalTrainer(OurTrainer, SentenceTransformerTrainer):
    """The library's trainer with our batches, and without its cards, which would hold training texts.

    Attributes:
        rate_factors: `id` of a parameter -> its share of the learning rate; 1 for those that are not listed. None: one
            rate, and the library's own groups.
    """

    rate_factors: Mapping[int, float] | None = None

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Leave the card's callback out: our card is rendered from `run.json`."""

    def get_optimizer_cls_and_kwargs(  # type: ignore[override]  # a method in sentence-transformers' trainer
        self, args: Any, model: Any = None
    ) -> tuple[Any, Any]:
        """The library's optimizer, its groups split by learning rate; InputError if it makes its own groups."""
        kind, kwargs = super().get_optimizer_cls_and_kwargs(args, model)
        if self.rate_factors:
            if "optimizer_dict" not in kwargs or "params" in kwargs:
                raise InputError(f"--layer_decay: --optim {args.optim} makes its own groups; leave one of them out.")
            kwargs["optimizer_dict"] = split_groups(kwargs["optimizer_dict"], self.rate_factors, args.learning_rate)
        return kind, kwargs

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The library's schedule, times `rate_decay` per 5,000 steps after the warm-up (official train.sh)."""
        scheduler: Any = super().create_scheduler(num_training_steps, optimizer)
        args: Any = self.args
        if args.rate_decay < 1:
            warmup, (own, *_) = args.get_warmup_steps(num_training_steps), scheduler.lr_lambdas

            def decayed(step: int) -> float:
                return float(own(step) * args.rate_decay ** (max(0, step - warmup) / 5000))

            scheduler.lr_lambdas = [decayed] * len(scheduler.lr_lambdas)
        return scheduler


class ReplyEvaluator(SentenceEvaluator):
    """Weighted ROUGE of the top three, MRR and P@1 in 1-of-100 pools, and the geometric mean of the first two, on
    validation, pooled over languages.

    Each evaluation prints a line with the model next to the baselines, which are evaluated once. ROUGE and MRR of each
    language (`weighted_rouge_es`, `mrr_es`) go to the log only.
    """

    def __init__(self, parts: list[LanguageData], alpha: float, seed: int) -> None:
        super().__init__()
        self.primary_metric = BEST_METRIC
        self._alpha = alpha
        self._log = ValidationLog(parts, seed, ranking=True)

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        figures, lines = self._log.evaluate(
            lambda part: Retriever(model, {part.language: build_index(model, part, self._alpha)})
        )
        tqdm.write(f"validation, step {steps}: " + "; ".join(lines))
        return {
            "rouge_mrr": math.sqrt(figures["weighted"] * figures["mrr"]),  # a tenth more of either counts the same
            "weighted_rouge": figures["weighted"],
            "mrr": figures["mrr"],
            "p_at_1": figures["p@1"],
            **{f"weighted_rouge_{code}": own["weighted"] for code, own in self._log.by_language.items()},
            **{f"mrr_{code}": own["mrr"] for code, own in self._log.by_language.items()},
        }


def build(options: RetrievalArguments, training: TrainingArguments, data: RunData) -> RetrievalParts:
    """The model to train; adapters are added afterwards."""
    if options.generator is not None:
        require_language_of(options.generator, [part.language for part in data.test])
    with start_folder(options.model_name_or_path, data.texts, training.seed, options.vocabulary) as name:
        shape = {key: getattr(options, key) for key in DEFAULTS}
        model = build_dual_encoder(name, revision=options.model_revision, seed=training.seed, **shape)
    if options.keep_pieces is not None:
        prune_vocabulary(model, data.texts(), options.keep_pieces)
    if options.freeze_embeddings or options.freeze_layers:
        freeze(model, options.freeze_embeddings, options.freeze_layers)
    if options.dropout is not None:
        set_dropout(model, options.dropout)
    if training.bf16 and training.device.type == "cpu":
        attend_in_bfloat16(model)
    turns = options.context_turns
    return RetrievalParts(model, context=context_reader(model, turns) if turns else None)


def make_trainer(
    parts: RetrievalParts, options: RetrievalArguments, training: TrainingArguments, data: RunData
) -> RetrievalTrainer:
    """The library's trainer with our batches, loss and validation."""
    assert isinstance(training, SentenceTransformerTrainingArguments)
    for part in data.test if alpha_of(options.alpha) != 0 else []:
        if not any(value is not None for value in part.responses.log_probs):
            raise InputError(f"--alpha {options.alpha}: the response set of {part.language} has no log-probabilities.")
    training.router_mapping = {"message": "query", "reply": "document"}
    texts = zip(training.router_mapping, prompts_of(parts.model), strict=True)
    training.prompts = {column: prompt for column, prompt in texts if prompt}
    with training.main_process_first(local=False):
        sources = list(data.sources.values())
        if options.distill == DISTILL[1]:
            sources = texts_to_copy(data, options.perturbed or 0, training.seed)
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
    trainer.sampler = make_sampler(sizes, options, training, data.plan.sampling_alpha, lengths)
    return trainer


def systems(parts: RetrievalParts) -> list[MakeSystem]:
    """The systems to compare on test, the trained model first."""
    if parts.rankers:
        best = with_settings(parts.rankers, choice="top")
        return [
            lambda part: Retriever(parts.model, parts.indexes, MODEL, parts.rankers.get(part.language)),
            lambda part: Retriever(parts.model, parts.indexes, TOP, best.get(part.language)),
            lambda part: Retriever(parts.model, response_sets(parts.indexes, parts.rankers), DIRECT),
        ]
    systems: list[MakeSystem] = [lambda part: Retriever(parts.model, parts.indexes, MODEL)]
    if any(index.alpha for index in parts.indexes.values()):
        plain = {code: replace(index, alpha=0.0) for code, index in parts.indexes.items()}
        systems.append(lambda part: Retriever(parts.model, plain, WITHOUT_BONUS))
    return systems


def own_figures(parts: RetrievalParts, options: RetrievalArguments, data: RunData) -> Record:
    """The figures that only retrievers have."""
    figures: Record = {}
    name, revision = options.model_name_or_path, options.model_revision
    if name != TINY and (kind := start_kind(name, revision)) != ENCODER:
        figures["start"] = kind
    if parts.rankers:
        figures["ranker"] = settings_and_weights(parts.rankers)
        tested = {part.language: part.test for part in data.test if part.language in parts.rankers}
        figures["coverage"] = coverage(parts.rankers, ask(parts.encode, tested))
    figures["alpha"] = next(iter(parts.indexes.values())).alpha
    if sweep := parts.sweep:
        figures["alpha_unit"] = sweep.unit
        figures["alpha_on_validation"] = {f"{alpha:g}": rouge for alpha, rouge in sweep.rouge.items()}
    return figures


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


def split_groups(
    groups: Iterable[Mapping[str, Any]], factors: Mapping[int, float], learning_rate: float
) -> list[dict[str, Any]]:
    """Parameter groups of an optimizer by learning rate, the highest first, whose rate the trainer logs.

    >>> first, second = object(), object()
    >>> groups = split_groups([{"params": [first, second]}], {id(first): 0.5}, 0.1)
    >>> [(group["params"] == [second], group["lr"]) for group in groups]
    [(True, 0.1), (False, 0.05)]
    """
    split: dict[tuple[float, int], dict[str, Any]] = {}
    for number, group in enumerate(groups):
        for parameter in group["params"]:
            factor = factors.get(id(parameter), 1.0)
            fresh = {**group, "params": [], "lr": learning_rate * factor}
            split.setdefault((-factor, number), fresh)["params"].append(parameter)
    return [split[key] for key in sorted(split)]
