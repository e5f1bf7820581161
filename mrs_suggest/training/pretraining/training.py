"""The library's trainer with our batches, and held-out perplexity that all ranks share."""

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any

import numpy as np
import torch
from accelerate.utils import gather_object
from torch import Tensor
from transformers import TrainingArguments

from mrs_metrics.perplexity import aggregate, score_losses
from mrs_suggest.common.errors import diverged
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.training.pretraining.mixture import WHICH, Part
from mrs_suggest.training.pretraining.objective import Batch, Collator, Objective, Pretrained
from mrs_suggest.training.pretraining.options import PretrainingArguments
from mrs_suggest.training.pretraining.rows import TokenRows
from mrs_suggest.training.pretraining.streams import TextRows, TextSampler, written_ahead
from mrs_suggest.training.pretraining.texts import TextData
from mrs_suggest.training.sampling import KeyedCollator, KeyedRows, MixedSampler, PairSampler, make_sampler
from mrs_suggest.training.trainer import MeasuringTrainer

MOST_NATS = 700.0  # per token; exp of more overflows


@dataclass(frozen=True)
class HeldOut:
    """Held-out rows by language, and how their perplexity is measured.

    Attributes:
        rows: language -> a row for each sentence, cut at the end: perplexities of packed and unpacked runs compare.
    """

    objective: Objective
    parts: Pretrained
    collator: Collator
    rows: Mapping[str, TokenRows]

    def losses(self, batch_size: int, rank: int = 0, world: int = 1) -> dict[str, tuple[list[float], list[int]]]:
        """Summed losses and numbers of predicted tokens of this rank's rows, by language."""
        model = self.parts.model
        found: dict[str, tuple[list[float], list[int]]] = {}
        for language, rows in self.rows.items():
            mine = np.arange(rank, len(rows), world)
            mine = mine[np.argsort(rows.lengths[mine], kind="stable")]
            sums: list[float] = []
            counts: list[int] = []
            for first in range(0, len(mine), batch_size):
                batch = self.collator([rows[int(number)] for number in mine[first : first + batch_size]])
                both = self._batch({name: value.to(model.device) for name, value in batch.items()})
                sums += both[0].tolist()
                counts += both[1].tolist()
            found[language] = sums, counts
        return found

    @torch.no_grad()
    def _batch(self, batch: Batch) -> tuple[Tensor, Tensor]:
        labels = batch.pop("labels")
        with self.objective.forward(self.parts, labels):
            outputs = self.parts.model(**batch)
        return self.objective.row_losses(outputs, labels)


Losses = Mapping[str, tuple[Sequence[float], Sequence[int]]]  # by language: of each row, summed; tokens predicted


def mixed_figures(found: Mapping[str, Losses], shares: Mapping[str, float]) -> dict[str, float]:
    """The figures of several objectives.

    Those of the first are named as if it were alone: its perplexity compares with that of other runs, whatever else
    they trained, so it chooses the checkpoint by default. Those of the others have the objective's name before theirs.
    `mean_loss` is the mean of all by their shares of the steps: what the run minimizes, on held-out text.
    """
    own = {name: figures(losses) for name, losses in found.items() if losses}
    first = next(iter(shares))
    named = {
        metric if name == first else f"{name}_{metric}": value
        for name, values in own.items()
        for metric, value in values.items()
    }
    if 1 < len(shares) == len(own):
        named["mean_loss"] = sum(share * own[name]["loss"] for name, share in shares.items())
    return named


def figures(found: Losses) -> dict[str, float]:
    """`perplexity` and `loss` (nats) over all predicted tokens, and `perplexity_LANG` of each language."""
    sums, counts = ([value for both in found.values() for value in both[column]] for column in (0, 1))
    pooled = aggregate(score_losses(sums, counts))
    own = {f"perplexity_{language}": aggregate(score_losses(*both))["perplexity"] for language, both in found.items()}
    return {"perplexity": pooled["perplexity"], "loss": pooled["loss"], **own}


class PretrainingTrainer(MeasuringTrainer):
    """The library's trainer with our batches, loss and evaluation."""

    mixture: Sequence[Part]
    held_out: Mapping[str, HeldOut]
    texts: Sequence[TextRows]

    def train(self, *args: Any, **kwargs: Any) -> Any:
        """The library's, while one process of each machine writes the rows of the next parts."""
        ahead = self.args.local_process_index == 0 and any(text.parts > 1 for text in self.texts)
        with written_ahead(self.texts) if ahead else nullcontext():
            return super().train(*args, **kwargs)

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The library's, with the forward pass and the loss of the batch's objective."""
        part = self.mixture[inputs.pop(WHICH)]
        self.compute_loss_func = part.objective.loss
        with part.objective.forward(part.parts, inputs["labels"]):
            return super().compute_loss(model, inputs, *args, **kwargs)

    def figures(self) -> dict[str, float]:
        """Perplexity of the held-out text, of each objective, per language and pooled (see `mixed_figures`)."""
        world, rank = self.args.world_size, self.args.process_index
        with self.compute_loss_context_manager():
            found = {
                name: rows.losses(self.args.per_device_eval_batch_size, rank, world)
                for name, rows in self.held_out.items()
            }
        if world > 1:
            ranks = gather_object([found])
            for name, language in [(name, language) for name, losses in found.items() for language in losses]:
                sums, counts = zip(*(share[name][language] for share in ranks), strict=True)
                found[name][language] = list(chain(*sums)), list(chain(*counts))
        for name, losses in found.items():
            total, tokens = (sum(sum(both[part]) for both in losses.values()) for part in (0, 1))
            if not total / max(1, tokens) < MOST_NATS:  # refuses NaN too
                raise diverged(f"the held-out loss of {name} is {total / max(1, tokens):g} nats a token")
        return mixed_figures(found, {part.name: part.share for part in self.mixture})


def make_trainer(
    mixture: Sequence[Part], options: PretrainingArguments, training: TrainingArguments, data: TextData
) -> PretrainingTrainer:
    texts: list[dict[str, TextRows]] = []
    samplers: list[PairSampler] = []
    for part in mixture:
        rows_of = partial(
            TextRows, encode=part.objective.encoder(part.parts, options, options.packing), seed=training.seed
        )
        own = _encoded(part, part.texts(data).train, f"--{part.objective.reads}", rows_of)
        lengths = not (options.packing and part.objective.packs)
        samplers.append(make_sampler([*own.values()], options, training, options.sampling_alpha, lengths, TextSampler))
        texts.append(own)
        if training.process_index == 0:
            _tell(own, "pairs" if part.objective.reads == "parallel" else "sentences")
    tokens = [{language: text.notes["tokens"] for language, text in own.items()} for own in texts]
    first, names, shares = mixture[0].parts, [part.name for part in mixture], [part.share for part in mixture]
    first.notes["train_tokens"] = dict(zip(names, tokens, strict=True)) if names[1:] else tokens[0]
    rows = [(number, text) for number, own in enumerate(texts) for text in own.values()]
    collators = [part.objective.collator(part.parts, training.seed, options) for part in mixture]
    trainer = PretrainingTrainer(
        model=first.model,
        args=training,
        train_dataset=KeyedRows(rows, sum(text.size for _, text in rows)),
        eval_dataset=[],  # ours is in `held_out`
        data_collator=KeyedCollator(dict(enumerate(collators)), WHICH),
        compute_loss_func=mixture[0].objective.loss,
    )
    trainer.sampler = samplers[0]
    if samplers[1:]:
        sizes = [sum(map(len, own.values())) for own in texts]
        trainer.sampler = MixedSampler(samplers, sizes, shares, training.seed)
    trainer.texts = [text for _, text in rows]
    trainer.sampler.told += [collator.set_epoch for collator in collators]
    trainer.mixture = mixture
    trainer.held_out = held_out(mixture, options, data, "validation")
    return trainer


def held_out(mixture: Sequence[Part], options: PretrainingArguments, data: TextData, split: str) -> dict[str, HeldOut]:
    """The held-out sentences or translations of a split, ready to be measured, by the objectives that have some."""
    found = {}
    for part in mixture:
        objective, parts, texts = part.objective, part.parts, part.texts(data).by_name()[split]
        if texts:
            encode = objective.encoder(parts, options, options.packing and objective.packs_held_out)
            rows = _encoded(part, texts, f"--{split}_{objective.reads}", encode)
            found[part.name] = HeldOut(objective, parts, objective.collator(parts, EVALUATION_SEED), rows)
    return found


def _encoded(part: Part, texts: Mapping[str, Any], option: str, encode: Callable[..., Any]) -> dict[str, Any]:
    """The rows of an objective by language."""
    found = {}
    for language, own in texts.items():
        found[language] = encode(own, where=f"{option} {language}")
        found[language].shared = part.objective.shared(language, part.parts)
    return found


def _tell(texts: Mapping[str, TextRows], what: str) -> None:
    for language, text in texts.items():
        about = "about " if text.parts > 1 else ""
        for name, why in (
            ("cut", "are longer than a row and were cut"),
            ("unknown", "have no piece that the tokenizer knows and were left out"),
        ):
            if number := text.notes[name]:
                print(f"note: {language}: {about}{number:,} {what} {why}.", file=sys.stderr)
