"""Remedies against forgetting, while a generator trains, the languages that have no pairs (docs/forgetting.md).

Steps of denoising text in these languages (xDAE; XGLUE, Liang et al. 2020, section 4.1), mixed into training, keep a
generator writing them (Vu et al. 2022). A watch stops a run when too many replies are in another language.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Tensor
from tqdm import tqdm

from mrs_datasets.prepared.prepared import PreparedData
from mrs_metrics.language_match import score_languages
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import LanguageIdentifier
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, sample_rows
from mrs_suggest.evaluation.results import wrong_and_decided
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.language_tokens import TokenFrame
from mrs_suggest.models.generation.text_coder import TextCoder
from mrs_suggest.models.pretraining.noising import NoisingCollator, next_token_loss
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.pretraining.mixture import WHICH
from mrs_suggest.training.pretraining.options import ALPHA
from mrs_suggest.training.pretraining.rows import encode
from mrs_suggest.training.pretraining.seq2seq import separators
from mrs_suggest.training.pretraining.streams import TextRows, TextSampler
from mrs_suggest.training.pretraining.texts import Streamed
from mrs_suggest.training.sampling import KeyedCollator, KeyedRows, MixedSampler, StepSampler, make_sampler
from mrs_suggest.training.trainer import OurTrainer

if TYPE_CHECKING:
    from transformers import TrainerState

PAIRS, DENOISING = 0, 1  # in a batch, under `WHICH`
NAMES = {PAIRS: "reply_loss", DENOISING: "denoising_loss"}  # in the log
SHARE = "wrong_language"  # in the log, after `eval_`


# --- steps of denoising


class DenoisingSteps(OurTrainer):
    """Mixin, placed before the library's trainer: some steps denoise; `mix` prepares them.

    The log has the mean loss of either kind of step next to that of all.
    """

    _losses_of_kinds: Mapping[int, Any] | None = None

    def mix(
        self, texts: Mapping[str, Streamed[str]], share: float, coder: TextCoder, sampler: Any, options: Any
    ) -> StepSampler:
        """Mix steps of text into those of the pairs, which alone decide how long an epoch is.

        Args:
            texts: sentences by language; languages are drawn by size to the power of .3 (XGLUE, section 3.1).

        Returns:
            The sampler of all steps.

        Raises:
            InputError: the tokenizer has no mask token, or knows none of a language's text.
        """
        noising, frame = noising_of(coder, next(iter(texts)), self.args.seed)
        rows = [_rows(sentences, language, coder, frame, self.args.seed) for language, sentences in texts.items()]
        own = make_sampler(rows, options, self.args, ALPHA, True, TextSampler)
        pairs: Any = self.train_dataset
        sources = [(PAIRS, pairs), *((DENOISING, found) for found in rows)]
        self.train_dataset = KeyedRows(sources, len(pairs) + sum(found.size for found in rows))
        self.data_collator = KeyedCollator({PAIRS: self.data_collator, DENOISING: noising}, WHICH)
        self._losses_of_kinds = {PAIRS: self.compute_loss_func, DENOISING: next_token_loss}
        self._sums: dict[int, tuple[Tensor | float, int]] = {}
        mixed = MixedSampler(
            [sampler, own], [len(pairs), sum(map(len, rows))], [1 - share, share], self.args.seed, epoch_of=PAIRS
        )
        mixed.told.append(noising.set_epoch)
        return mixed

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The library's, with the loss of the batch's kind."""
        if self._losses_of_kinds is None:
            return super().compute_loss(model, inputs, *args, **kwargs)
        which = inputs.pop(WHICH)
        self.compute_loss_func = self._losses_of_kinds[which]
        loss: Any = super().compute_loss(model, inputs, *args, **kwargs)
        total, batches = self._sums.get(which, (0.0, 0))
        self._sums[which] = total + loss.detach(), batches + 1
        return loss

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """The library's, with the losses of both kinds of steps since the last point of the curve."""
        if self._losses_of_kinds is not None and "loss" in logs:
            logs |= {NAMES[which]: self._mean(*found) for which, found in sorted(self._sums.items())}
            self._sums = {}
        super().log(logs, *args, **kwargs)

    def _mean(self, total: Any, batches: int) -> float:
        if self.args.world_size > 1:
            total = self.accelerator.reduce(total.float(), reduction="mean")
        return float(total) / (batches / self.args.gradient_accumulation_steps)


def noising_of(coder: TextCoder, language: str, seed: int) -> tuple[NoisingCollator, TokenFrame]:
    """The noise for the texts of a generator, as in pretraining: spans (XGLUE, section 6.3.4).

    Args:
        language: one that the model has; the frame is the same for all.

    Raises:
        InputError: the tokenizer has no mask token.
    """
    tokenizer: Any = coder.tokenizer
    if tokenizer.mask_token_id is None:
        raise InputError(
            "--denoising_share: the tokenizer has no mask token, so the checkpoint was not made for denoising; use "
            "mBART-50, a converted Unicoder-xDAE, or an encoder, or leave it out."
        )
    frame, _ = TokenFrame.of(coder.row, language, coder.config, tokenizer)
    noising = NoisingCollator(
        int(tokenizer.pad_token_id or 0), int(tokenizer.mask_token_id), frame, seed=seed,
        special_ids=separators(tokenizer), max_tokens=coder.message_tokens,
    )  # fmt: skip
    return noising, frame


def _rows(sentences: Streamed[str], language: str, coder: TextCoder, frame: TokenFrame, seed: int) -> TextRows:
    tokenizer: Any = coder.tokenizer
    encoder = partial(encode, tokenizer=tokenizer, most=frame.room(coder.message_tokens), pack=False, framed=False)
    rows = TextRows(sentences, encoder, f"--denoising_text {language}", seed)
    rows.shared = {"language": TokenFrame.of(coder.row, language, coder.config, tokenizer)[1]}
    return rows


# --- the watch


@dataclass(frozen=True)
class Watch:
    """The messages and limit of a watch.

    Attributes:
        messages: language -> validation messages, each once.
        limit: the largest share of wrong replies, of those whose language can be identified.
    """

    messages: Mapping[str, Sequence[str]]
    limit: float
    identifier: LanguageIdentifier


def watched_messages(source: PreparedData, languages: Sequence[str], most: int | None) -> dict[str, list[str]]:
    """The validation messages of languages, each once; InputError if a language has no messages."""
    found = {}
    for code in dict.fromkeys(languages):
        if code not in source.configs():
            raise InputError(
                f"--watch_languages {code}: the data have {' '.join(source.configs())}; pass some of these."
            )
        rows = sample_rows(source.load(code, "validation"), most, EVALUATION_SEED)
        found[code] = list(dict.fromkeys(rows["message"][:]))
        if not found[code]:
            raise InputError(f"--watch_languages {code}: its validation split is empty; leave it out.")
    return found


def make_watch(messages: Mapping[str, Sequence[str]], limit: float, language_model: str | None) -> Watch:
    """The messages and limit that a run watches.

    Raises:
        InputError: the model does not know a language; every reply in it would count as wrong.
    """
    identifier = LanguageIdentifier.open(language_model)
    for code in messages:
        if not identifier.knows(code.partition("-")[0]):
            raise InputError(
                f"--watch_languages {code}: {identifier.path} does not know this language; pass another "
                "--language_model."
            )
    return Watch(messages, limit, identifier)


class WatchesLanguages(OurTrainer):
    """Mixin, placed before `OurTrainer`: `watch`, if there is one, ends the run and has a say in the checkpoint.

    A checkpoint above the limit is never better than another one. If the first one is above it, it is kept.
    """

    generator: Generator
    watch: Watch | None = None

    def watched_figures(self) -> dict[str, float]:
        """`wrong_language`, the share over all watched languages, and `wrong_language_LANG` of each; a share that
        is unknown, since no reply's language can be identified, is left out."""
        if self.watch is None:
            return {}
        counts, identifier = {}, self.watch.identifier
        for code, messages in self.watch.messages.items():
            texts = self.answered(messages, partial(_texts, self.generator, code))
            found = score_languages(texts, code, identifier.identify, identifier=identifier.name)
            counts[f"{SHARE}_{code}"] = wrong_and_decided(found)
        wrong, decided = map(sum, zip(*counts.values(), strict=True))
        counts[SHARE] = wrong, decided
        return {name: wrong / decided for name, (wrong, decided) in counts.items() if decided}

    def is_above(self, figures: Mapping[str, float], prefix: str = "") -> bool:
        """Whether more replies than allowed are in another language."""
        return self.watch is not None and figures.get(f"{prefix}{SHARE}", 0.0) > self.watch.limit

    def log_figures(self, figures: Mapping[str, float], prefix: str) -> dict[str, float]:
        """Pass the figures on, and stop if the limit is exceeded."""
        metrics = super().log_figures(figures, prefix)
        if self.is_above(figures):
            assert self.watch is not None
            self.control.should_training_stop = True
            if self.is_world_process_zero():
                first = self.state.best_metric is None
                tqdm.write(
                    f"stopped at step {self.state.global_step}: {figures[SHARE]:.3f} of the replies to "
                    f"{' '.join(self.watch.messages)} are in another language, more than --wrong_language_limit "
                    f"{self.watch.limit:g}"
                    + ("; it is the first checkpoint, and is kept: evaluate more often (--eval_steps)" if first else "")
                )
        return metrics

    def _determine_best_metric(self, metrics: Any, trial: Any) -> bool:
        if self.is_above(metrics, "eval_") and self.state.best_metric is not None:
            return False
        return bool(super()._determine_best_metric(metrics, trial))


def _texts(generator: Generator, language: str, messages: Sequence[str]) -> list[list[str]]:
    return [[text for text, _ in row] for row in generator.suggest(messages, language, SUGGESTIONS)]


def watch_record(state: TrainerState, limit: float, languages: Sequence[str]) -> Record:
    """The results for the record: the share at each evaluation, and whether the run was stopped."""
    shares = {str(entry["step"]): entry[f"eval_{SHARE}"] for entry in state.log_history if f"eval_{SHARE}" in entry}
    above = [int(step) for step, share in shares.items() if share > limit]
    return {"limit": limit, "languages": list(languages), "shares": shares, "stopped_at": above[0] if above else None}
