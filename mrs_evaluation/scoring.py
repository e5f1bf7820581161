"""What `mrs score --metric NAME` runs: from a system's file to its figures. A metric is imported when asked for."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mrs_core.errors import InputError
from mrs_core.metric_errors import metric_errors
from mrs_core.predictions import read_predictions
from mrs_evaluation.score_tables import Column, ScoredSystem

if TYPE_CHECKING:
    from mrs_metrics.tokenize import Tokenizer

COUNT = Column("n", "n", 0)
# Record, per-example scores, what the examples are; the scores are left out where their mean is not the main figure.
Scored = tuple[dict[str, Any], Sequence[float], Sequence[str]]
_MOST_TOKENS = 2**53  # where a float still counts one by one
XGLUE_TASKS = ("NER", "POS", "NC", "MLQA", "XNLI", "PAWSX", "QADSM", "WPR", "QAM", "QG", "NTG")


@dataclass(frozen=True)
class Metric:
    """One metric of the command.

    Attributes:
        main: the figure that the interval and the comparison of systems are of.
        columns: what a table shows.
        score: from file and options.
        takes: its own options of the command; those of other metrics are refused.
        higher_is_better: which system comes first.
        language: whether it needs `--lang`.
        counts: key of the record -> what it counts, to be told where it is not 0.
        percentile: its interval is one of percentiles, since the main figure is neither a mean nor a ratio of sums.
    """

    main: str
    columns: tuple[Column, ...]
    score: Callable[[Path, argparse.Namespace], Scored]
    takes: tuple[str, ...]
    higher_is_better: bool = True
    language: bool = True
    counts: tuple[tuple[str, str], ...] = ()
    percentile: bool = False

    @property
    def gold(self) -> bool:
        """Whether it needs `--gold`."""
        return "gold" in self.takes


def score_system(name: str, path: Path, options: argparse.Namespace) -> ScoredSystem:
    """Score one file.

    Raises:
        InputError: the file is missing or broken, or the metric refuses it; the sentence names the file.
    """
    from mrs_metrics.resampling import PERCENTILE, STUDENTISED

    with metric_errors(str(path)):
        scored = ScoredSystem(str(path), *METRICS[name].score(path, options))
    if scored.record.get("interval"):
        scored.record["interval_method"] = PERCENTILE if METRICS[name].percentile else STUDENTISED
    return scored


def score_rouge(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_metrics.distinct import distinct_n, distinct_signature
    from mrs_metrics.rouge import aggregate, score_examples
    from mrs_metrics.significance import bootstrap_interval

    suggestions, references, examples = _texts(path, options)
    rules = options.rules or "official"
    tokenizer = _tokenizer(options)
    scores = score_examples(suggestions, references, options.lang, rules, tokenizer)
    dist = distinct_signature(max(map(len, suggestions)), tokenizer, options.lang, "best", rules=rules)
    record = {
        **aggregate(scores),
        "interval": list(bootstrap_interval(scores.weighted)),
        "dist1": distinct_n(scores.chosen_tokens, 1),
        "dist2": distinct_n(scores.chosen_tokens, 2),
        "skipped": scores.skipped,
        "signature": scores.signature,
        "dist_signature": dist,
    }
    return record, scattered(scores.kept, scores.weighted, len(references)), examples


def _score_distinct(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_metrics.distinct import (
        SAMPLES,
        SEED,
        distinct_counts,
        distinct_n,
        distinct_signature,
        expectation_adjusted_distinct,
        sampled_distinct_n,
    )
    from mrs_metrics.rouge import prepare_official

    level, size = options.level or "corpus", options.sample_size
    if level != "corpus" and (options.vocabulary is not None or size is not None):
        raise InputError("--level response: --vocabulary and --sample-size are of the corpus; leave them out.")
    seed = SEED if options.seed is None else options.seed
    suggestions, _, examples = _texts(path, options)
    tokenizer = _tokenizer(options)
    prepared = [prepare_official(text, tokenizer) for texts in suggestions for text in texts]
    tokens = [text.tokens for text in prepared]
    record: dict[str, Any] = {"n": len(tokens)}
    for n in (1, 2):
        record[f"dist{n}"] = distinct_n(tokens, n, level=level)
        record[f"dist{n}_ngrams"] = distinct_n(tokens, n, "ngrams", level)
        if size is not None:
            record[f"dist{n}_sampled"] = float(sampled_distinct_n(tokens, n, size, seed=seed).mean())
    if options.vocabulary is not None:
        record["ead"] = expectation_adjusted_distinct(tokens, options.vocabulary)
    record |= {
        "tokens": distinct_counts(tokens, 1).tokens,
        "empty": sum(text.empty for text in prepared),
        "signature": distinct_signature(
            max(map(len, suggestions)), tokenizer, options.lang, level=level, vocabulary=options.vocabulary,
            sampling=None if size is None else (size, SAMPLES, seed),
        ),
    }  # fmt: skip
    return record, [], examples


def _score_bleu(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_metrics.bleu import aggregate, bleu_interval, score_suggestions

    suggestions, references, examples = _texts(path, options)
    scores = score_suggestions(suggestions, references, language=options.lang, chosen=options.chosen or "best")
    record = {
        **aggregate(scores),
        "interval": list(bleu_interval(scores)),
        "skipped": scores.skipped,
        "signature": scores.signature,
    }
    return record, [], examples


def _score_similarity(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_metrics.significance import bootstrap_interval
    from mrs_metrics.similarity import aggregate, score_similarity

    suggestions, _, examples = _texts(path, options)
    scores = score_similarity(suggestions, options.lang, _tokenizer(options))
    record = {
        **aggregate(scores),
        "interval": list(bootstrap_interval(scores.weighted)),
        "skipped": scores.skipped,
        "signature": scores.signature,
    }
    return record, scattered(scores.kept, scores.weighted, len(suggestions)), examples


def _score_languages(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_core.language_id import LanguageIdentifier
    from mrs_metrics.language_match import aggregate, language_interval, score_languages

    suggestions, _, examples = _texts(path, options)
    identifier = LanguageIdentifier.open(options.language_model)
    scores = score_languages(suggestions, options.lang, identifier.identify, identifier=identifier.path.name)
    record = {**aggregate(scores), "interval": list(language_interval(scores)), "signature": scores.signature}
    return record, [], examples


def _score_perplexity(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_metrics.perplexity import aggregate, perplexity_interval, score_losses

    losses, tokens = [], []
    for number, line in _lines(path):
        loss, count = _numbers(path, number, line, 2, "sum of token losses in nats, tokens")
        if not (0 <= loss < math.inf and 0 <= count < _MOST_TOKENS and count.is_integer()):
            raise InputError(
                f"{path}, line {number}: expected a finite loss of 0 or more and a whole number of tokens, "
                f"found {line[:60]!r}."
            )
        losses.append(loss)
        tokens.append(int(count))
    scores = score_losses(losses, tokens)
    return {**aggregate(scores), "interval": list(perplexity_interval(scores)), "signature": scores.signature}, [], []


def _score_translations(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_metrics.significance import bootstrap_interval
    from mrs_metrics.staple_files import score_files
    from mrs_metrics.translations_f1 import aggregate

    scores = score_files(options.gold, path, options.rules or "paper", warn=lambda text: print(text, file=sys.stderr))
    finite = bool(np.isfinite(scores.weighted_f1).all())  # official rules take a weight of nan
    record = {
        **aggregate(scores),
        "interval": list(bootstrap_interval(scores.weighted_f1)) if finite else [],
        "signature": scores.signature,
    }
    return record, scores.weighted_f1.tolist(), scores.ids


def _score_ranking(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_metrics.ranking import aggregate, score_rankings
    from mrs_metrics.significance import bootstrap_interval

    replies, targets, rows = [], [], []
    for number, line in _lines(path):
        reply, _, rest = line.partition("\t")
        target, *row = _numbers(path, number, rest, None, "reply, index of the right candidate (-1: none), scores")
        if not target.is_integer() or not -1 <= target < len(row):
            raise InputError(f"{path}, line {number}: there is no candidate {target:g} among {len(row)} scores.")
        replies.append(reply)
        targets.append(int(target))
        rows.append(np.array(row))
    scores = score_rankings(
        rows, targets, replies, options.pool, options.seed or 0, options.absent or "skip", language=options.lang
    )
    interval = list(bootstrap_interval(scores.reciprocal_ranks)) if len(scores.ranks) else []
    record = {
        **aggregate(scores, k=(1, 3)),
        "interval": interval,
        "skipped": scores.skipped,
        "signature": scores.signature,
    }
    return record, scattered(scores.kept, scores.reciprocal_ranks, len(rows)), replies


def _score_xglue(path: Path, options: argparse.Namespace) -> Scored:
    from mrs_metrics.xglue import aggregate, average_scores, xglue_signature
    from mrs_metrics.xglue_files import score_folder
    from mrs_metrics.xglue_tasks import TASKS

    tasks = options.task or [task for task in TASKS if (path / task).is_dir()]
    languages = [options.lang] if options.lang else None
    rules = options.rules or "paper"
    scores = score_folder(path, options.gold, tasks, languages, options.split or "test", rules)
    figures = {task: {code: aggregate(one) for code, one in of.items()} for task, of in scores.items()}
    means = average_scores({task: {code: one["score"] for code, one in of.items()} for task, of in figures.items()})
    record = {
        "n": sum(int(one["n"]) for of in figures.values() for one in of.values()),
        **means.pop("tasks"),
        **means,
        "languages": figures,
        "notes": {task: {code: one.notes for code, one in of.items()} for task, of in scores.items()},
        **{f"{task}_signature": xglue_signature(task, "+".join(of), rules) for task, of in scores.items()},
    }
    return record, [], [f"{task} {code}" for task, of in scores.items() for code in of]


def scattered(kept: NDArray[np.int64], values: NDArray[np.float64], n: int) -> list[float]:
    """Scores of the kept examples at the places of all n; nan where an example was skipped."""
    column = np.full(n, np.nan)
    column[kept] = values
    return [float(value) for value in column]


def _tokenizer(options: argparse.Namespace) -> Tokenizer:
    from mrs_metrics.tokenize import get_tokenizer

    return get_tokenizer(options.lang, options.sentences or "no", options.punkt)


def _texts(path: Path, options: argparse.Namespace) -> tuple[list[tuple[str, ...]], list[str], list[str]]:
    """Suggestions and references of a prediction file, and what tells its examples: message and reference."""
    predictions = read_predictions(path, options.nbest)
    return (
        [prediction.suggestions for prediction in predictions],
        [prediction.reference for prediction in predictions],
        [f"{prediction.message}\t{prediction.reference}" for prediction in predictions],
    )


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """The lines of a file with their numbers; only the line feed ends one, since a reply may hold any other."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}; convert the file.") from None
    return enumerate(text.removesuffix("\n").split("\n") if text else [], start=1)


def _numbers(path: Path, number: int, line: str, count: int | None, what: str) -> list[float]:
    fields = line.split("\t")
    try:
        values = [float(field) for field in fields if "_" not in field]  # Python reads 1_0 as 10
    except ValueError:
        values = []
    if len(values) != (count or max(2, len(fields))):
        raise InputError(f"{path}, line {number}: expected {what}, separated by tabs, found {line[:60]!r}.")
    return values


EMPTY_SUGGESTIONS = (("empty", "empty suggestions"),)
METRICS: dict[str, Metric] = {
    "mrs_rouge": Metric(
        "weighted",
        (
            COUNT,
            Column("rouge1", "ROUGE-1 F1"),
            Column("rouge2", "ROUGE-2 F1"),
            Column("rouge3", "ROUGE-3 F1"),
            Column("weighted", "weighted ROUGE"),
            Column("ceiling", "ceiling"),
            Column("dist1", "Dist-1"),
            Column("dist2", "Dist-2"),
        ),
        score_rouge,
        ("nbest", "rules", "sentences", "punkt"),
        counts=(("empty_suggestions", "empty suggestions"),),
    ),
    "dist_n": Metric(
        "dist1",
        (
            COUNT,
            Column("tokens", "tokens", 0),
            Column("dist1", "Dist-1"),
            Column("dist2", "Dist-2"),
            Column("dist2_ngrams", "Dist-2 per bigram"),
            Column("ead", "EAD"),
            Column("dist1_sampled", "Dist-1 sampled"),
            Column("dist2_sampled", "Dist-2 sampled"),
        ),
        _score_distinct,
        ("nbest", "level", "vocabulary", "sample_size", "seed", "sentences", "punkt"),
        counts=EMPTY_SUGGESTIONS,
    ),
    "reply_bleu": Metric(
        "bleu",
        (
            COUNT,
            Column("bleu", "BLEU", 2),
            Column("sentence_bleu", "sentence BLEU", 2),
            Column("length_ratio", "length"),
        ),
        _score_bleu,
        ("nbest", "chosen"),
        counts=EMPTY_SUGGESTIONS,
        percentile=True,
    ),
    "self_rouge": Metric(
        "self_rouge",
        (COUNT, Column("self_rouge", "Self-ROUGE"), Column("normalised", "normalised")),
        _score_similarity,
        ("nbest", "sentences", "punkt"),
        higher_is_better=False,
        counts=EMPTY_SUGGESTIONS,
    ),
    "wrong_language": Metric(
        "wrong",
        (
            COUNT,
            Column("wrong", "wrong language"),
            Column("any_wrong", "messages with one"),
            Column("undecided", "undecided"),
            Column("too_short", "too short"),
        ),
        _score_languages,
        ("nbest", "language_model"),
        higher_is_better=False,
        counts=EMPTY_SUGGESTIONS,
    ),
    "reply_perplexity": Metric(
        "perplexity",
        (COUNT, Column("tokens", "tokens", 0), Column("loss", "nats a token"), Column("perplexity", "perplexity", 3)),
        _score_perplexity,
        (),
        higher_is_better=False,
        language=False,
        counts=(("empty", "replies without a token"), ("overflow", "perplexity is too large for a number: see nats")),
    ),
    "weighted_f1": Metric(
        "weighted_macro_f1",
        (
            COUNT,
            Column("precision", "precision"),
            Column("weighted_recall", "weighted recall"),
            Column("micro_f1", "micro F1"),
            Column("macro_f1", "macro F1"),
            Column("weighted_micro_f1", "weighted micro F1"),
            Column("weighted_macro_f1", "weighted macro F1"),
            Column("missing", "prompts missing", 0),
            Column("extra", "extra prompts", 0),
        ),
        _score_translations,
        ("gold", "rules"),
        language=False,
    ),
    "response_ranking": Metric(
        "mrr",
        (
            COUNT,
            Column("mrr", "MRR"),
            Column("macro_mrr", "macro-MRR"),
            Column("p@1", "P@1"),
            Column("p@3", "P@3"),
        ),
        _score_ranking,
        ("pool", "seed", "absent"),
        language=False,
    ),
    "xglue_score": Metric(
        "all",
        (
            COUNT,
            *(Column(task, task) for task in XGLUE_TASKS),
            Column("understanding", "AVG-U"),
            Column("generation", "AVG-G"),
            Column("all", "all"),
        ),
        _score_xglue,
        ("gold", "rules", "task", "split"),
        language=False,
    ),
}
