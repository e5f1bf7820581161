"""One run from options to a published model: what the trainers of both families do in the same way."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from transformers import EarlyStoppingCallback, Trainer
from transformers.utils.logging import disable_progress_bar

from mrs_core import hub
from mrs_core.errors import InputError
from mrs_core.launcher import end_with_launcher
from mrs_core.publishing import Change, publish
from mrs_core.text import visible
from mrs_datasets.prepared import open_prepared
from mrs_evaluation.comparison import MakeSystem, compare_on_test
from mrs_evaluation.language_data import EVALUATION_SEED, LanguageData, examples_hash
from mrs_evaluation.paper_results import paper_rows
from mrs_evaluation.results import EvaluationConfig
from mrs_evaluation.tables import print_results
from mrs_metrics.tokenize import get_tokenizer
from mrs_models.adapters import Lora, add_lora, has_lora, lora_state, merge_lora, read_lora_state, save_adapter
from mrs_training.base_model import base_license
from mrs_training.card import model_card
from mrs_training.divergence import require_finite_weights
from mrs_training.memory import out_of_memory_told
from mrs_training.options import TINY, SharedArguments, require_sound, with_model_revision
from mrs_training.progress import bar_ended, show_loss_bar
from mrs_training.reply.data import RunData, load_run_data, tell_of_small_sources
from mrs_training.run import ADAPTER, RunFolder, last_checkpoint, publication, require_best_weights, run_record

if TYPE_CHECKING:
    from torch import Tensor
    from transformers import TrainingArguments

# Options, and arguments of the trainer, that a resumed run must share with its beginning.
RESUME_KEYS = (
    "setting", "sampling_alpha", "batches", "length_window", "message_tokens", "reply_tokens", "max_train_examples",
    "freeze_embeddings", "peft", "lora_rank", "lora_alpha", "lora_dropout",
)  # fmt: skip
SCHEDULE = (
    "learning_rate", "lr_scheduler_type", "warmup_steps", "weight_decay", "label_smoothing_factor", "optim",
    "adam_beta1", "adam_beta2", "adam_epsilon", "max_grad_norm",
)  # fmt: skip
Options = TypeVar("Options", bound=SharedArguments)


class Recipe(ABC, Generic[Options]):
    """What is a family's own in a run; `train` below is the rest.

    Attributes:
        trainer: the family's name in records and cards.
        metrics: on validation, one of which chooses the checkpoint.
        ranks: whether systems also rank replies, for which a response set is needed.
        steps: of a run whose length nobody gave.
        lower_is_better: those of the metrics that should be small.
        without_effect: options of the library's trainer that it has no use for, and why.
        resume_keys: its own options that a resumed run must share with its beginning.
    """

    trainer: str
    metrics: tuple[str, ...]
    ranks: bool
    steps: int
    lower_is_better: tuple[str, ...] = ()
    resume_keys: tuple[str, ...] = ()
    without_effect: Mapping[str, str] = MappingProxyType({})

    @abstractmethod
    def resolved(self, options: Options) -> Options:
        """The options with the defaults that depend on others filled in; InputError where they cannot go together."""

    @abstractmethod
    def saves_memory(self, options: Options, training: Any, trains: bool) -> str:
        """What to do where the memory does not suffice for a step (`trains`), or for an evaluation."""

    @abstractmethod
    def make_model(self, options: Options, training: Any, data: RunData) -> Any:
        """The model to train; adapters come into it afterwards."""

    @abstractmethod
    def make_trainer(self, model: Any, options: Options, training: Any, data: RunData) -> Trainer:
        """The library's trainer with our batches, loss and evaluation."""

    @abstractmethod
    def weights(self, model: Any) -> dict[str, Tensor]:
        """The weights by the names that they have in a checkpoint."""

    @abstractmethod
    def stored_weights(self, checkpoint: Path) -> dict[str, Tensor]:
        """The weights of a checkpoint."""

    @abstractmethod
    def systems(self, model: Any, options: Options, data: RunData) -> list[MakeSystem]:
        """What is compared on test, the trained model first."""

    def more_figures(self, model: Any, options: Options, data: RunData, figures: dict[str, Any]) -> None:
        """Add the figures that only this family has."""

    def complete_adapter(self, folder: Path) -> None:
        """Add to the folder of the adapters what else `mrs suggest` needs."""

    @abstractmethod
    def save(self, model: Any, options: Options, folder: Path) -> None:
        """Write all that `mrs suggest` needs."""


def train(recipe: Recipe[Options], options: Options, training: TrainingArguments) -> None:
    """Train, keep the best checkpoint, compare with the baselines on test, and write the folder of the run."""
    end_with_launcher()
    run = RunFolder(Path(training.output_dir or "."), options.overwrite, training.resume_from_checkpoint)
    checkpoint = last_checkpoint(run.folder, training.resume_from_checkpoint)
    started = time.time()
    require_sound(options, training, recipe.metrics, recipe.without_effect)
    options = with_model_revision(recipe.resolved(options))
    repo_id = _publishing(training)
    training.greater_is_better = training.metric_for_best_model not in recipe.lower_is_better
    training.dataloader_pin_memory &= torch.cuda.is_available()
    if training.num_train_epochs <= 0 and training.max_steps <= 0:
        training.max_steps = recipe.steps
    disable_progress_bar()  # of loading and saving weights; the trainer's own bar stays
    source = open_prepared(options.data, options.data_revision)
    with training.main_process_first(local=False):  # one rank fills the cache, the others read it
        data = load_run_data(source, options, training.seed, need_responses=recipe.ranks)
    languages = [part.language for part in data.test]
    facts = {**source.identity(languages, data.sources), "rows": data.rows(), "test_hash": examples_hash(data.test)}
    _require_tokenizers([*data.validation, *data.test])
    identity = {
        "trainer": recipe.trainer,
        "data": facts.get("revision") or facts.get("content_hash"),
        "train": [source.config for source in data.plan.sources],
        "validation": list(data.plan.validation),
        "model": f"{options.model_name_or_path}@{options.model_revision}",
        "vocabulary": options.vocabulary if options.model_name_or_path == TINY else None,
        "seed": training.seed,
        **{name: getattr(options, name) for name in (*RESUME_KEYS, *recipe.resume_keys)},
        "pairs a step": training.train_batch_size * training.world_size * training.gradient_accumulation_steps,
        **{name: getattr(training, name) for name in SCHEDULE},
    }
    identity = json.loads(json.dumps(identity, default=str))  # as the file will give it back
    run.require_same(identity)
    if training.process_index == 0:
        tell_of_small_sources(data, options.batches, int(identity["pairs a step"]))
    with out_of_memory_told(lambda: "while the model was loaded; choose a smaller one"):
        model = recipe.make_model(options, training, data)
        if options.peft == "lora":
            add_lora(model, Lora(options.lora_rank, options.lora_alpha, options.lora_dropout), training.seed)
        model.to(training.device)
    trainer = recipe.make_trainer(model, options, training, data)
    if options.patience:
        trainer.add_callback(EarlyStoppingCallback(options.patience))
    show_loss_bar(trainer)
    with training.main_process_first(local=False):
        run.begin(identity)
    with out_of_memory_told(lambda: _what_saves_memory(recipe, options, training, trainer)), bar_ended(trainer):
        trainer.train(resume_from_checkpoint=checkpoint)
    if training.load_best_model_at_end:
        best = trainer.state.best_model_checkpoint
        read, weigh = (read_lora_state, lora_state) if has_lora(model) else (recipe.stored_weights, recipe.weights)
        require_best_weights(weigh(model), read(Path(best)) if best else None, best)
    require_finite_weights(recipe.weights(model))
    if not trainer.is_world_process_zero():
        return
    model.eval()
    if has_lora(model):
        base = options.model_name_or_path, options.model_revision
        save_adapter(model, run.folder / ADAPTER, *base, training.seed)
        recipe.complete_adapter(run.folder / ADAPTER)
        merge_lora(model)
    with out_of_memory_told(lambda: _what_saves_memory(recipe, options, training, trainer)):
        systems = recipe.systems(model, options, data)
        run.reopen()
        recipe.save(model, options, run.folder)  # before hours of evaluation
        compared = compare_on_test(systems, data.test, EVALUATION_SEED, EvaluationConfig.available(recipe.ranks))
        recipe.more_figures(model, options, data, compared.figures)
    compared.figures["paper"] = _paper(recipe.trainer, options, languages)
    record = run_record(
        trainer=recipe.trainer,
        options=(options, training),
        seed=training.seed,
        data=facts,
        plan=data.plan,
        state=trainer.state,
        figures=compared.figures,
        milliseconds=compared.milliseconds,
        seconds=time.time() - started,
    )
    record["base_license"] = base_license(options.model_name_or_path, options.model_revision)
    run.finish(record, data.test, compared.suggestions, trainer.state.log_history)
    print_results(record)
    predictions = run.predictions_name(languages[0] if len(languages) == 1 else "LANG")
    print(f"wrote {visible(run.folder)}: model, run.json, curves.png, {predictions}")
    if repo_id:
        _publish(run.folder, repo_id, record, training)


def _what_saves_memory(recipe: Recipe[Options], options: Options, training: TrainingArguments, trainer: Trainer) -> str:
    trains = trainer.is_in_train and bool(trainer.model and trainer.model.training)
    when = f"at step {trainer.state.global_step + 1:,} of the training" if trains else "in the evaluation"
    return f"{when}; {recipe.saves_memory(options, training, trains)}"


def _require_tokenizers(parts: Sequence[LanguageData]) -> None:
    """Refuse now what the metrics would miss after training."""
    for part in parts:
        try:
            get_tokenizer(part.language)
        except (ImportError, ValueError) as error:
            raise InputError(f"--languages {part.language}: {error}") from None


def _paper(family: str, options: SharedArguments, languages: Sequence[str]) -> list[dict[str, Any]]:
    """The paper's rows for this setting, of all models of the family; none where the run has no setting of it."""
    if options.setting is None or options.train is not None:
        return []
    rows = paper_rows(family, setting=options.setting)
    return [asdict(row) for row in rows if row.language in languages]


def _publishing(training: TrainingArguments) -> str | None:
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


def _publish(folder: Path, repo_id: str, record: dict[str, Any], training: TrainingArguments) -> None:
    change = Change(f"Train a model ({record['trainer']})", training.hub_private_repo)
    try:
        what = publication(folder, record, repo_id, model_card(record, repo_id))
        commit = publish(what, change, training.hub_token).commit
    except InputError as error:
        raise InputError(
            f"{error} The run is whole: `mrs models publish {folder} --repo {repo_id}` publishes it."
        ) from None
    print(f"published {repo_id} at {commit[:12]}")
