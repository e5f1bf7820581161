"""What `mrs score --metric NAME` runs: from a system's file to its figures. A metric is imported when asked for."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_cli.metric_errors import metric_errors
from mrs_cli.score_tables import Column, ScoredSystem
from mrs_core.errors import InputError
from mrs_core.predictions import read_predictions

COUNT = Column("n", "n", 0)
XGLUE_TASKS = ("NER", "POS", "NC", "MLQA", "XNLI", "PAWSX", "QADSM", "WPR", "QAM", "QG", "NTG")


@dataclass(frozen=True)
class Metric:
    """One metric of the command.

    Attributes:
        main: the figure that the interval and the comparison of systems are of.
        columns: what a table shows.
        score: file and options -> record and per-example scores; scores whose mean is not the main figure are left out.
        higher_is_better: which system comes first.
        language: whether it needs `--lang`.
        gold: whether it needs `--gold`.
    """

    main: str
    columns: tuple[Column, ...]
    score: Callable[[Path, argparse.Namespace], tuple[dict[str, Any], Sequence[float]]]
    higher_is_better: bool = True
    language: bool = True
    gold: bool = False


def score_system(name: str, path: Path, options: argparse.Namespace) -> ScoredSystem:
    """Score one file.

    Raises:
        InputError: the file is missing or broken, or the metric refuses it; the sentence names the file.
    """
    with metric_errors(str(path)):
        record, values = METRICS[name].score(path, options)
    return ScoredSystem(str(path), record, values)


def score_rouge(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
    from mrs_metrics.distinct import distinct_n, distinct_signature
    from mrs_metrics.rouge import aggregate, score_examples
    from mrs_metrics.significance import bootstrap_interval
    from mrs_metrics.tokenize import get_tokenizer

    suggestions, references = _texts(path, options)
    scores = score_examples(suggestions, references, language=options.lang, rules=options.rules or "official")
    dist = distinct_signature(max(map(len, suggestions)), get_tokenizer(options.lang), options.lang, "best")
    record = {
        **aggregate(scores),
        "interval": list(bootstrap_interval(scores.weighted)),
        "dist1": distinct_n(scores.chosen_tokens, 1),
        "dist2": distinct_n(scores.chosen_tokens, 2),
        "skipped": scores.skipped,
        "signature": scores.signature,
        "dist_signature": dist,
    }
    return record, scattered(scores.kept, scores.weighted, len(references))


def _score_distinct(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
    from mrs_metrics.distinct import distinct_counts, distinct_signature
    from mrs_metrics.rouge import prepare_official
    from mrs_metrics.tokenize import get_tokenizer

    suggestions, _ = _texts(path, options)
    tokenizer = get_tokenizer(options.lang)
    tokens = [prepare_official(text, tokenizer).tokens for texts in suggestions for text in texts]
    counts = {n: distinct_counts(tokens, n) for n in (1, 2)}
    record = {
        "n": len(tokens),
        **{f"dist{n}": count.ratio() for n, count in counts.items()},
        **{f"dist{n}_ngrams": count.ratio("ngrams") for n, count in counts.items()},
        "tokens": counts[1].tokens,
        "signature": distinct_signature(max(map(len, suggestions)), tokenizer, options.lang),
    }
    return record, []


def _score_bleu(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
    from mrs_metrics.bleu import aggregate, bleu_interval, score_suggestions

    suggestions, references = _texts(path, options)
    scores = score_suggestions(suggestions, references, language=options.lang, chosen=options.chosen)
    interval = list(bleu_interval(scores))
    return {**aggregate(scores), "interval": interval, "skipped": scores.skipped, "signature": scores.signature}, []


def _score_likeness(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
    from mrs_metrics.likeness import aggregate, score_likeness
    from mrs_metrics.significance import bootstrap_interval

    suggestions, _ = _texts(path, options)
    scores = score_likeness(suggestions, language=options.lang)
    interval = list(bootstrap_interval(scores.weighted))
    record = {**aggregate(scores), "interval": interval, "skipped": scores.skipped, "signature": scores.signature}
    return record, scattered(scores.kept, scores.weighted, len(suggestions))


def _score_languages(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
    from mrs_core.language_id import LanguageIdentifier
    from mrs_metrics.language_match import aggregate, language_interval, score_languages

    suggestions, _ = _texts(path, options)
    identifier = LanguageIdentifier.open(options.language_model)
    scores = score_languages(suggestions, options.lang, identifier.identify, identifier=identifier.path.name)
    return {**aggregate(scores), "interval": list(language_interval(scores)), "signature": scores.signature}, []


def _score_perplexity(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
    from mrs_metrics.perplexity import aggregate, perplexity_interval, score_losses

    rows = [_numbers(path, number, line, 2, "sum of token losses in nats, tokens") for number, line in _lines(path)]
    scores = score_losses([row[0] for row in rows], [int(row[1]) for row in rows])
    return {**aggregate(scores), "interval": list(perplexity_interval(scores)), "signature": scores.signature}, []


def _score_translations(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
    from mrs_metrics.significance import bootstrap_interval
    from mrs_metrics.staple_files import score_files
    from mrs_metrics.translations_f1 import aggregate

    scores = score_files(options.gold, path, options.rules or "paper")
    record = {
        **aggregate(scores),
        "interval": list(bootstrap_interval(scores.weighted_f1)),
        "signature": scores.signature,
    }
    return record, scores.weighted_f1.tolist()


def _score_ranking(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
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
        rows.append(row)
    scores = score_rankings(rows, targets, replies=replies)
    interval = list(bootstrap_interval(scores.reciprocal_ranks)) if len(scores.ranks) else []
    record = {
        **aggregate(scores, k=(1, 3)),
        "interval": interval,
        "skipped": scores.skipped,
        "signature": scores.signature,
    }
    return record, scattered(scores.kept, scores.reciprocal_ranks, len(rows))


def _score_xglue(path: Path, options: argparse.Namespace) -> tuple[dict[str, Any], Sequence[float]]:
    from mrs_metrics.xglue import aggregate, average_scores
    from mrs_metrics.xglue_files import score_folder
    from mrs_metrics.xglue_tasks import TASKS

    tasks = options.task or [task for task in TASKS if (path / task).is_dir()]
    languages = [options.lang] if options.lang else None
    scores = score_folder(path, options.gold, tasks, languages, options.split, options.rules or "paper")
    figures = {task: {code: aggregate(one) for code, one in of.items()} for task, of in scores.items()}
    means = average_scores({task: {code: one["score"] for code, one in of.items()} for task, of in figures.items()})
    record = {
        "n": sum(int(one["n"]) for of in figures.values() for one in of.values()),
        **means.pop("tasks"),
        **means,
        "languages": figures,
        "notes": {task: {code: one.notes for code, one in of.items()} for task, of in scores.items()},
        **{f"{task}_signature": next(iter(of.values())).signature for task, of in scores.items()},
    }
    return record, []


def scattered(kept: NDArray[np.int64], values: NDArray[np.float64], n: int) -> list[float]:
    """Scores of the kept examples at the places of all n; nan where an example was skipped."""
    column = np.full(n, np.nan)
    column[kept] = values
    return [float(value) for value in column]


def _texts(path: Path, options: argparse.Namespace) -> tuple[list[tuple[str, ...]], list[str]]:
    """Suggestions and references of a prediction file."""
    predictions = read_predictions(path, options.nbest)
    return [prediction.suggestions for prediction in predictions], [prediction.reference for prediction in predictions]


def _lines(path: Path) -> list[tuple[int, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot read the file ({error}).") from None
    return list(enumerate(text.splitlines(), start=1))


def _numbers(path: Path, number: int, line: str, count: int | None, what: str) -> list[float]:
    fields = line.split("\t")
    try:
        values = [float(field) for field in fields]
    except ValueError:
        values = []
    if len(values) != (count or max(2, len(values))):
        raise InputError(f"{path}, line {number}: expected {what}, separated by tabs, found {line[:60]!r}.")
    return values


def save_values(path: Path, name: str, system: ScoredSystem) -> None:
    """Write the per-example scores of a system, for `--compare` on another day or machine."""
    from mrs_core.files import write_whole

    content = {"metric": name, "signature": system.record["signature"], "system": system.system}
    values = [None if value != value else value for value in system.values]
    write_whole(path, json.dumps({**content, "scores": values}) + "\n")


def read_values(path: Path, name: str) -> tuple[str, list[float]]:
    """Signature and per-example scores that `save_values` wrote; nan for an example that was skipped.

    Raises:
        InputError: the file is missing, or not of that kind or metric.
    """
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        values = [float("nan") if value is None else float(value) for value in content["scores"]]
        metric, signature = str(content["metric"]), str(content["signature"])
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{path}: not scores that `mrs score --save-scores` wrote.") from None
    if metric != name:
        raise InputError(f"{path}: holds scores of {metric}, not of {name}; pass --metric {metric}.")
    return signature, values


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
    ),
    "dist_n": Metric(
        "dist1",
        (
            COUNT,
            Column("tokens", "tokens", 0),
            Column("dist1", "Dist-1"),
            Column("dist2", "Dist-2"),
            Column("dist2_ngrams", "Dist-2 per bigram"),
        ),
        _score_distinct,
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
    ),
    "self_rouge": Metric(
        "self_rouge",
        (COUNT, Column("self_rouge", "Self-ROUGE"), Column("normalised", "normalised")),
        _score_likeness,
        higher_is_better=False,
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
        higher_is_better=False,
    ),
    "reply_perplexity": Metric(
        "perplexity",
        (COUNT, Column("tokens", "tokens", 0), Column("loss", "nats a token"), Column("perplexity", "perplexity", 3)),
        _score_perplexity,
        higher_is_better=False,
        language=False,
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
        language=False,
        gold=True,
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
        language=False,
        gold=True,
    ),
}
