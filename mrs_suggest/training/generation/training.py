"""Training and validation of a generator: encoded pairs, the smoothed loss, and an evaluation that all ranks share."""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property, partial
from typing import Any

import numpy as np
import torch
from datasets import Dataset, Features, Value, concatenate_datasets
from datasets import Sequence as Sequence_
from torch import Tensor, nn
from torch.nn import functional
from tqdm import tqdm
from transformers import Seq2SeqTrainer

from mrs_datasets.prepared.prepared import bars_for_long_work
from mrs_metrics.perplexity import aggregate, perplexity_signature, score_losses
from mrs_suggest.common.errors import diverged
from mrs_suggest.evaluation.comparison import POOLED, ValidationLog
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, LanguageData
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.generation.text_coder import TextCoder
from mrs_suggest.models.saved.record import Record
from mrs_suggest.suggest.answering import MODEL, Suggestion
from mrs_suggest.suggest.generation_suggester import Writer
from mrs_suggest.training.generation.remedies import SHARE, DenoisingSteps, WatchesLanguages
from mrs_suggest.training.reply.data import LONG_WORK, RunData
from mrs_suggest.training.trainer import MeasuringTrainer

METRICS = ("weighted_rouge", "perplexity", "loss", "dist1", "dist2")
MOST_NATS = 700.0  # per token; exp of more overflows
BEST_METRIC = METRICS[1]  # fairseq, the official code's toolkit, picks by the loss; early ROUGE is often 0


def smoothed_loss(
    outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None, *, smoothing: float
) -> Tensor:
    """Cross-entropy with label smoothing, averaged over the reply tokens of the whole step.

    (1 - e) * -log p(token) + e * mean over the vocabulary of -log p (Szegedy et al. 2016), as fairseq's criterion of
    the official script. The sum is divided by the tokens of all ranks and accumulated batches, so that the gradient
    does not depend on how a step is cut into batches.

    Args:
        outputs: `logits` (n, length, vocabulary).
        labels: (n, length), -100 where ignored.
        smoothing: e (official script: .2).
    """
    total = functional.cross_entropy(
        outputs["logits"].float().flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum",
        label_smoothing=smoothing,
    )  # fmt: skip
    return total / ((labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch)


def encode_sources(data: RunData, coder: TextCoder) -> tuple[Dataset, np.ndarray]:
    languages = {source.config: source.language for source in data.plan.sources}
    return encode_pairs([(pairs, languages[config]) for config, pairs in data.sources.items()], coder)


def encode_pairs(sources: Iterable[tuple[Dataset, str]], coder: TextCoder) -> tuple[Dataset, np.ndarray]:
    """All training sources, concatenated: `input_ids`, `labels` and `prompt`, and (rows, 2) numbers of tokens.

    Args:
        sources: columns `message` and `reply`, and their language.
    """
    encoded = [_encode(pairs, coder, language) for pairs, language in sources]
    rows = concatenate_datasets(encoded)
    lengths = [
        np.asarray(batch["length"].combine_chunks().flatten()).reshape(-1, 2)
        for batch in rows.select_columns(["length"]).with_format("arrow").iter(batch_size=100_000)
    ]
    return rows.remove_columns("length"), np.concatenate(lengths)


def _fingerprint(pairs: Dataset, coder: TextCoder, language: str) -> str:
    """The hash of the encoded pairs: equal runs share one file in the cache, on every rank."""
    backend = getattr(coder.tokenizer, "backend_tokenizer", None)
    vocabulary = backend.to_str() if backend is not None else str(sorted(coder.tokenizer.get_vocab().items()))
    lengths, direction = (coder.message_tokens, coder.reply_tokens), asdict(coder.direction)
    around = coder.row.name, coder.messages([""], language)
    facts = [pairs._fingerprint, vocabulary, *around, *lengths, language, direction]
    return hashlib.blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()


def _encode(pairs: Dataset, coder: TextCoder, language: str) -> Dataset:
    prompt = coder.prompt(language)

    def encode(batch: dict[str, list[str]]) -> dict[str, list[Any]]:
        sources, targets = coder.messages(batch["message"], language), coder.replies(batch["reply"])
        lengths = [[len(source), len(target)] for source, target in zip(sources, targets, strict=True)]
        return {"input_ids": sources, "labels": targets, "prompt": [prompt] * len(sources), "length": lengths}

    with bars_for_long_work(len(pairs) > LONG_WORK):
        return pairs.map(
            encode,
            batched=True,
            remove_columns=pairs.column_names,
            features=Features(
                {name: Sequence_(Value("int32")) for name in ("input_ids", "labels", "prompt", "length")}
            ),
            desc="tokens",
            new_fingerprint=_fingerprint(pairs, coder, language),
        )


class PairTrainer(MeasuringTrainer, Seq2SeqTrainer):
    """The library's trainer with our batches and our evaluation."""

    generator: Generator

    def answers(
        self, rows: Mapping[str, Dataset], answer: Callable[..., list[tuple[Any, float, int]]]
    ) -> tuple[dict[str, list[Any]], dict[str, float], dict[str, float]]:
        """The answers to the rows of each language, `perplexity` and `loss` over all tokens of the texts to be written,
        and `perplexity_LANG` of each language; InputError if the run has diverged.

        Args:
            answer: (generator, language, rows) -> of each row its answer, and nats and tokens of its text.
        """
        found = {
            code: self.answered(own.to_list(), partial(answer, self.generator, code)) for code, own in rows.items()
        }
        sums = {code: ([loss for _, loss, _ in own], [count for _, _, count in own]) for code, own in found.items()}
        losses, tokens = ([one for both in sums.values() for one in both[column]] for column in (0, 1))
        mean = sum(losses) / max(1, sum(tokens))
        if not mean < MOST_NATS:  # NaN fails too
            raise diverged(f"at step {self.state.global_step:,} the loss on validation is {mean:.4g} nats per token")
        fit = aggregate(score_losses(losses, tokens))
        each = {code: aggregate(score_losses(*both))["perplexity"] for code, both in sorted(sums.items())}
        answers = {code: [one for one, _, _ in own] for code, own in found.items()}
        own = {f"perplexity_{code}": value for code, value in each.items()}
        return answers, {name: fit[name] for name in ("perplexity", "loss")}, own


class GenerationTrainer(WatchesLanguages, DenoisingSteps, PairTrainer):
    validation: list[LanguageData]

    def figures(self) -> dict[str, float]:
        """Weighted ROUGE of the top three, perplexity and Dist on validation, pooled over the languages."""
        rows = {part.language: part.validation.select_columns(["message", "reply"]) for part in self.validation}
        found, fit, of_each = self.answers(rows, answer)
        watched = self.watched_figures()
        if not self.is_world_process_zero():
            return {}
        known = {code: dict(zip(rows[code]["message"][:], own, strict=True)) for code, own in found.items()}
        figures, lines = self._log.evaluate(lambda part: _Known(known))
        lines[0] += f" perplexity {fit['perplexity']:.1f}"
        lines[0] += f", in a wrong language {watched[SHARE]:.3f}" if SHARE in watched else ""
        tqdm.write(f"validation, step {self.state.global_step}: " + "; ".join(lines))
        rouge = {f"weighted_rouge_{code}": own["weighted"] for code, own in self._log.by_language.items()}
        own = {"dist1": figures["dist1"], "dist2": figures["dist2"], **rouge, **of_each}
        return {"weighted_rouge": figures["weighted"], **fit, **own, **watched}

    @cached_property
    def _log(self) -> ValidationLog:
        return ValidationLog(self.validation, EVALUATION_SEED, ranking=False)


def answer(generator: Generator, language: str, rows: Sequence[Record]) -> list[tuple[list[Suggestion], float, int]]:
    """Of each pair: the best three replies to its message, and nats and tokens of its reply."""
    messages, replies = ([row[column] for row in rows] for column in ("message", "reply"))
    different = list(dict.fromkeys(messages))
    written = dict(zip(different, Writer(generator).suggest(different, language, 3), strict=True))
    losses, tokens = generator.losses(messages, replies, language)
    return list(zip([written[message] for message in messages], losses.tolist(), tokens.tolist(), strict=True))


class _Known:
    """A system with precomputed answers."""

    name = MODEL

    def __init__(self, answers: Mapping[str, Mapping[str, list[Suggestion]]]) -> None:
        self._answers = answers

    def suggest(self, messages: Sequence[str], language: str, k: int) -> list[list[Suggestion]]:
        return [self._answers[language][message][:k] for message in messages]


def perplexities(generator: Generator, parts: list[LanguageData]) -> dict[str, float]:
    """Perplexity of the real replies by language, and `pooled`, over all their tokens."""
    found = {
        part.language: generator.losses(part.test["message"][:], part.test["reply"][:], part.language) for part in parts
    }
    figures = {code: aggregate(score_losses(*both))["perplexity"] for code, both in found.items()}
    losses, tokens = (np.concatenate([both[column] for both in found.values()]) for column in (0, 1))
    return {**figures, POOLED: aggregate(score_losses(losses, tokens))["perplexity"]}


def add_perplexity(figures: Record, generator: Generator, data: RunData) -> None:
    """Add the perplexity of the real replies to the figures of a model on test, with its signature."""
    for scope, value in perplexities(generator, data.test).items():
        figures["systems"][MODEL][scope]["perplexity"] = value
    coder = generator.coder
    tokens = f"{coder.config.model_type}-{coder.vocabulary_hash()}+{'+'.join(coder.row.end)}"  # not where it began
    signature = perplexity_signature(tokens, cut=coder.reply_tokens)
    for signatures in figures["signatures"].values():
        signatures["reply_perplexity"] = signature


# --- interpolation with the weights at the start (WiSE-FT, Wortsman et al. 2022, section 3)


def copied_weights(model: nn.Module) -> dict[str, Tensor]:
    """Copies of all parameters on the CPU, those that are shared once."""
    return {name: value.detach().cpu().clone() for name, value in model.named_parameters()}


def set_between(model: nn.Module, start: Mapping[str, Tensor], trained: Mapping[str, Tensor], share: float) -> None:
    """Set the parameters to (1 - share) * start + share * trained, in place; 0 and 1 are exact."""
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            mixed = trained[name] if share == 1 else (1 - share) * start[name] + share * trained[name]
            parameter.copy_(mixed)


def interpolate(trainer: GenerationTrainer, start: Mapping[str, Tensor], shares: Sequence[float]) -> Record:
    """Set the weights to the best of several interpolations, by the metric that chooses the checkpoint.

    Each is evaluated on validation, in the declared languages alone. One whose replies to watched languages are too
    often in another language (`--wrong_language_limit`) is taken only where all are.

    Returns:
        For the record: `shares`, each with its figures, and `kept`, the one that was taken.
    """
    model, metric = trainer.generator.model, str(trainer.args.metric_for_best_model)
    trained, rows = copied_weights(model), []
    for share in dict.fromkeys(shares):
        set_between(model, start, trained, share)
        rows.append({"share": share, **trainer.measured()})
        if trainer.is_world_process_zero():
            tqdm.write(f"{share:g} of the trained weights: {metric} {rows[-1][metric]:.4f}")
    sign = -1.0 if trainer.args.greater_is_better else 1.0
    best = min(rows, key=lambda row: (trainer.is_above(row), sign * row[metric]))
    set_between(model, start, trained, best["share"])
    return {"shares": rows, "kept": best["share"]}
