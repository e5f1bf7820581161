"""Train the paper's dual encoder (Zhang et al. 2021, section 4.1) on message-reply pairs.

    accelerate launch trainers/retrieval.py                                     # a small model on the embedded sample
    accelerate launch trainers/retrieval.py --config trainers/configs/retrieval/mbert_es.yaml --data ORG/mrs

The defaults train a small model from scratch in minutes on two CPU cores; the paper's settings are in the YAML files.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.training_args import MultiDatasetBatchSamplers
from transformers.utils.logging import disable_progress_bar

from mrs_core import hub
from mrs_core.arguments import make_dataclass_parser, parse_with_config
from mrs_core.errors import InputError, run_with_sentence
from mrs_datasets.prepared import open_prepared
from mrs_models.dual_encoder import MESSAGE_TOKENS, REPLY_TOKENS, build_dual_encoder, freeze
from mrs_models.losses import ReplyLoss
from mrs_models.tiny import VOCABULARY, build_tiny
from mrs_training.card import retrieval_card
from mrs_training.data import ALL_LANGUAGES, LanguageData, chosen_languages, load_language, rows_used, with_reply_ids
from mrs_training.progress import show_loss_bar
from mrs_training.retrieval_evaluation import BEST_METRIC, METRICS, ReplyEvaluator, build_index, compare_on_test
from mrs_training.run import RunFolder, assert_best_weights, last_checkpoint, publication, run_record
from mrs_training.tables import print_results

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import HfArgumentParser

TINY = "tiny"
STEPS = 1500  # of a run whose length nobody gave: minutes on two cores, ten passes over the embedded sample


@dataclass
class RetrievalArguments:
    """Model, data and loss. Defaults marked (tiny) were chosen on the validation split of the embedded sample."""

    data: str = field(default="sample", metadata={"help": "a prepared folder, a hub id, or `sample`"})
    data_revision: str | None = field(default=None, metadata={"help": "revision of a hub data set"})
    language: list[str] = field(
        default_factory=lambda: [ALL_LANGUAGES],
        metadata={"help": "languages to train and test on, or `all` that the data have; one language per batch"},
    )
    model_name_or_path: str = field(
        default=TINY, metadata={"help": "a hub id, a local folder, or `tiny` (built and trained from scratch)"}
    )
    model_revision: str | None = field(default=None, metadata={"help": "revision of a hub model"})
    vocabulary: int = field(default=VOCABULARY, metadata={"help": "largest vocabulary of `tiny`"})
    pooling: str | None = field(
        default=None,
        metadata={"help": "pooler, mean, cls or max; default pooler as in the official code, mean for `tiny`"},
    )
    message_tokens: int = field(
        default=MESSAGE_TOKENS, metadata={"help": "longer messages are cut (official train.sh)"}
    )
    reply_tokens: int = field(default=REPLY_TOKENS, metadata={"help": "longer replies are cut (official train.sh)"})
    loss: str = field(default="eq4", metadata={"help": "eq4 (the paper's), symsm or sm (the official code's)"})
    mask_duplicates: bool | None = field(
        default=None, metadata={"help": "an equal reply is no negative; default on for eq4, off for the official two"}
    )
    mini_batch_size: int = field(default=64, metadata={"help": "pairs embedded at a time (GradCache); memory only"})
    gather_across_devices: bool = field(
        default=True, metadata={"help": "replies of all devices are negatives, so that the loss is that of one device"}
    )
    freeze_embeddings: bool = field(default=False, metadata={"help": "freeze the embeddings (paper: yes)"})
    freeze_layers: int = field(default=0, metadata={"help": "freeze the lowest N layers (paper: 2)"})
    alpha: float = field(
        default=0.0, metadata={"help": "weight of the log-probability bonus in suggestions (paper, section 4.1: none)"}
    )
    max_train_examples: int | None = field(default=None, metadata={"help": "a seeded sample of each language"})
    max_validation_examples: int | None = field(default=10_000, metadata={"help": "of each language; a seeded sample"})
    max_test_examples: int | None = field(
        default=100_000, metadata={"help": "of each language; a seeded sample (TF-IDF takes 10 ms an example)"}
    )
    overwrite: bool = field(default=False, metadata={"help": "replace a finished run in --output_dir"})


@dataclass
class RetrievalTrainingArguments(SentenceTransformerTrainingArguments):
    """The trainer's own arguments with other defaults, chosen for `tiny` on the sample's validation split."""

    output_dir: str | None = field(default="build/retriever", metadata={"help": "the folder of the run"})
    per_device_train_batch_size: int = field(default=64, metadata={"help": "pairs per step and device (paper: 256)"})
    num_train_epochs: float = field(
        default=0.0,
        metadata={"help": f"passes over the pairs (paper: 20 en, 50 others); 0: as many as {STEPS:,} steps take"},
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
    metric_for_best_model: str | None = field(default=BEST_METRIC, metadata={"help": "on validation"})
    multi_dataset_batch_sampler: str = field(
        default=MultiDatasetBatchSamplers.PROPORTIONAL.value,
        metadata={"help": "one language per batch; languages in proportion to their size, or round_robin"},
    )
    report_to: str = field(default="none", metadata={"help": "integrations such as tensorboard"})


class RetrievalTrainer(SentenceTransformerTrainer):
    """The library's trainer without its cards, which would hold training texts; ours come from `run.json`."""

    def add_model_card_callback(self, default_args_dict: dict[str, Any]) -> None:
        """Leave the card's callback out."""


def make_parser() -> HfArgumentParser:
    """The parser of this trainer; `mrs train retrieval` uses it too."""
    return make_dataclass_parser((RetrievalArguments, RetrievalTrainingArguments), "retrieval", __doc__ or "")


def train(options: RetrievalArguments, training: RetrievalTrainingArguments) -> None:
    """Train, keep the best checkpoint, compare with the baselines on test, and write the folder of the run."""
    run = RunFolder(Path(training.output_dir or "."), options.overwrite, training.resume_from_checkpoint)
    checkpoint = last_checkpoint(run.folder, training.resume_from_checkpoint)
    started = time.time()
    options = resolved(options)
    _require_sound(options, training)
    repo_id = _publishing(training)
    training.dataloader_pin_memory &= torch.cuda.is_available()
    if training.num_train_epochs <= 0 and training.max_steps <= 0:
        training.max_steps = STEPS
    logging.getLogger("sentence_transformers.base.modules.router").setLevel(logging.ERROR)  # two lengths are meant
    disable_progress_bar()  # of loading and saving weights; the trainer's own bar stays
    source = open_prepared(options.data, options.data_revision)
    limits = {
        "train": options.max_train_examples,
        "validation": options.max_validation_examples,
        "test": options.max_test_examples,
    }
    languages = chosen_languages(source, options.language)
    with training.main_process_first(local=False):  # one rank fills the cache, the others read it
        parts = [load_language(source, code, limits, training.seed) for code in languages]
    data = {**source.identity(languages), "rows": rows_used(parts)}
    model = make_model(options, training, parts)
    trainer = make_trainer(model, options, training, parts)
    with training.main_process_first(local=False):
        run.begin()
    trainer.train(resume_from_checkpoint=checkpoint)
    if training.load_best_model_at_end:
        assert_best_weights(model, trainer.state.best_model_checkpoint)
    if not trainer.is_world_process_zero():
        return
    model.eval()
    indexes = {part.language: build_index(model, part, options.alpha) for part in parts}
    figures, suggestions = compare_on_test(model, parts, indexes, training.seed)
    record = run_record(
        trainer="retrieval",
        options=(options, training),
        seed=training.seed,
        data=data,
        state=trainer.state,
        figures=figures,
        seconds=time.time() - started,
    )
    run.finish(model, indexes, record, parts, suggestions, trainer.state.log_history)
    print_results(figures)
    print(f"wrote {run.folder}: model, response_index/, run.json, curves.png, {run.predictions_name(languages)}")
    if repo_id:
        _publish(run.folder, repo_id, record, training)


def _require_sound(options: RetrievalArguments, training: RetrievalTrainingArguments) -> None:
    """Refuse what the libraries would stumble over later, before anything is replaced."""
    if int(os.environ.get("WORLD_SIZE", 1)) > 1 and training.world_size == 1:
        raise InputError("several processes were launched, but each believes it is alone; on CPUs pass --use_cpu true.")
    for name, value, least in (
        ("per_device_train_batch_size", training.per_device_train_batch_size, 1),
        ("mini_batch_size", options.mini_batch_size, 1),
        ("freeze_layers", options.freeze_layers, 0),
        ("vocabulary", options.vocabulary, 100),
    ):
        if value < least:
            raise InputError(f"--{name}: expected {least} or more, found {value}.")
    if training.metric_for_best_model not in METRICS:
        found = training.metric_for_best_model
        raise InputError(f"--metric_for_best_model: expected one of {', '.join(METRICS)}, found {found!r}.")


def _publishing(training: RetrievalTrainingArguments) -> str | None:
    """The repository to publish to, checked before hours of training; the library's own push stays off."""
    if not training.push_to_hub:
        return None
    training.push_to_hub = False
    if not training.hub_model_id:
        raise InputError("--push_to_hub needs --hub_model_id ORG/NAME.")
    hub.require_repo_id(training.hub_model_id)
    if training.process_index == 0:
        hub.require_token(training.hub_model_id, training.hub_token)
    return training.hub_model_id


def _publish(folder: Path, repo_id: str, record: dict[str, Any], training: RetrievalTrainingArguments) -> None:
    what = publication(folder, repo_id, retrieval_card(record, repo_id))
    try:
        commit = hub.publish(what, "Train a retriever", training.hub_private_repo, training.hub_token)
    except InputError as error:
        raise InputError(
            f"{error} The run is whole: `mrs models publish {folder} --repo {repo_id}` publishes it."
        ) from None
    print(f"published {repo_id} at {commit[:12]}")


def resolved(options: RetrievalArguments) -> RetrievalArguments:
    """The options with the defaults that depend on others filled in."""
    return replace(
        options,
        pooling=options.pooling or ("mean" if options.model_name_or_path == TINY else "pooler"),
        mask_duplicates=options.loss == "eq4" if options.mask_duplicates is None else options.mask_duplicates,
    )


def make_model(
    options: RetrievalArguments, training: RetrievalTrainingArguments, parts: list[LanguageData]
) -> SentenceTransformer:
    """The dual encoder, from a checkpoint or `tiny`, with what is to be frozen frozen."""
    lengths = (options.message_tokens, options.reply_tokens)
    if options.model_name_or_path == TINY:
        with tempfile.TemporaryDirectory() as folder:
            texts = (text for part in parts for column in ("message", "reply") for text in part.train[column][:])
            build_tiny(texts, Path(folder), training.seed, options.vocabulary)
            model = build_dual_encoder(folder, str(options.pooling), *lengths)
    else:
        model = build_dual_encoder(options.model_name_or_path, str(options.pooling), *lengths, options.model_revision)
    if options.freeze_embeddings or options.freeze_layers:
        freeze(model, options.freeze_embeddings, options.freeze_layers)
    return model.to(training.device)


def make_trainer(
    model: SentenceTransformer,
    options: RetrievalArguments,
    training: RetrievalTrainingArguments,
    parts: list[LanguageData],
) -> SentenceTransformerTrainer:
    """The library's trainer with our loss, one data set per language, and our evaluator."""
    training.router_mapping = {"message": "query", "reply": "document"}
    with training.main_process_first(local=False):
        labelled = {part.language: with_reply_ids(part.train) for part in parts}
    gather = options.gather_across_devices and training.world_size > 1
    loss = ReplyLoss(model, options.loss, bool(options.mask_duplicates), options.mini_batch_size, gather)
    trainer = RetrievalTrainer(
        model=model,
        args=training,
        train_dataset=labelled,
        loss=loss,
        evaluator=ReplyEvaluator(parts, options.alpha, training.seed),
    )
    show_loss_bar(trainer)
    return trainer


def main(argv: Sequence[str] | None = None) -> int:
    """Parse, train; return the exit code."""
    return run_with_sentence("retrieval", lambda: train(*parse_with_config(make_parser(), argv)))


if __name__ == "__main__":
    sys.exit(main())
