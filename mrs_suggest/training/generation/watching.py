"""Replies in languages without pairs, while a generator trains: stop when too many are in another language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from mrs_datasets.prepared.prepared import PreparedData
from mrs_metrics.language_match import score_languages
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import LanguageIdentifier
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, sample_rows
from mrs_suggest.evaluation.results import wrong_and_decided
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.saved.record import Record

if TYPE_CHECKING:
    from transformers import TrainerState

    from mrs_suggest.training.trainer import OurTrainer as Base
else:
    Base = object

SHARE = "wrong_language"  # in the log, after `eval_`


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


class WatchesLanguages(Base):
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
        counts, totals = {}, [0, 0]
        for code, messages in self.watch.messages.items():
            texts = self.answered(messages, partial(_texts, self.generator, code))
            identifier = self.watch.identifier
            wrong, decided = wrong_and_decided(
                score_languages(texts, code, identifier.identify, identifier=identifier.name)
            )
            counts[f"{SHARE}_{code}"] = wrong, decided
            totals = [totals[0] + wrong, totals[1] + decided]
        counts[SHARE] = totals[0], totals[1]
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
    if not messages:
        return []
    return [[text for text, _ in row] for row in generator.suggest(messages, language, SUGGESTIONS)]


def watch_record(state: TrainerState, limit: float, languages: Sequence[str]) -> Record:
    """The results for the record: the share at each evaluation, and whether the run was stopped."""
    shares = {str(entry["step"]): entry[f"eval_{SHARE}"] for entry in state.log_history if f"eval_{SHARE}" in entry}
    above = [int(step) for step, share in shares.items() if share > limit]
    return {"limit": limit, "languages": list(languages), "shares": shares, "stopped_at": above[0] if above else None}
