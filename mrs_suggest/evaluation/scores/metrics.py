"""The metrics of `mrs score`: what each reads of a system, which options it takes, and what is shown.

A metric is a function from a system's file to its figures; its keyword arguments are its options. The command line
(`mrs_suggest/cli/score.py`) follows from `METRICS`, whose tables are described in `metrics.yaml`.
"""

from __future__ import annotations

import hashlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from mrs_metrics import (
    bleu,
    clicks,
    distinct,
    language_match,
    perplexity,
    ranking,
    rouge,
    similarity,
    translations_f1,
    xglue,
)
from mrs_metrics.interval import Interval
from mrs_metrics.significance import bootstrap_interval
from mrs_metrics.xglue_tasks import TASKS
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.evaluation.scores.input import read_numbers, read_texts, tokenizer_of

Figure = float | None  # a count is an int; None where there is nothing to compute it from


@dataclass
class Scored:
    """The figures of one system by one metric.

    Attributes:
        figures: by name, the main one among them.
        signatures: how the figures were computed, by their names in JSON: `signature`, and others that end so.
        interval: 95 % interval of the main figure; None if the metric lacks one.
        skipped: examples left out, by reason; None where the metric leaves none out.
        others: figures of another metric that are shown with these.
        tasks: of a benchmark: `missing`, `languages` and `notes`, each by task.
        values: (n,) per-example scores whose mean is the main figure, nan where one was skipped; empty if it is not
            a mean.
        examples: (n,) texts that identify the examples; empty where only their digest is known.
        digest: of the examples; two systems with the same one can be compared.
        units: (n,) the message of each example, by which intervals resample and tests swap; empty: each is its own.
        warning: about the figures, or empty.
        rank: of its group, from 1; None where systems were not compared.
        common: `n` and main figure of the examples that all systems have a score for, where some have more.
    """

    n: int
    figures: Mapping[str, Figure]
    signatures: Mapping[str, str]
    interval: Interval | None = None
    skipped: Mapping[str, int] | None = None
    others: Mapping[str, Figure] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    values: Sequence[float] = ()
    examples: Sequence[str] = ()
    digest: str = ""
    units: Sequence[Hashable] = ()
    system: str = ""
    warning: str = ""
    rank: int | None = None
    common: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if len(self.examples) and not self.digest:
            self.digest = hashlib.sha256("\n".join(self.examples).encode()).hexdigest()

    def numbers(self) -> dict[str, Figure]:
        """All that a column of a table can show, by name."""
        return {"n": self.n, **self.figures, **self.others}

    def as_json(self) -> dict[str, object]:
        """The figures as `mrs score --json` prints them, flat."""
        found: dict[str, object] = {"n": self.n, **self.figures, **self.tasks}
        if self.interval is not None:
            found["interval"] = self.interval.ends
        found |= self.others
        if self.skipped is not None:
            found["skipped"] = self.skipped
        found |= self.signatures
        if self.interval is not None:
            found["interval_method"] = self.interval_method
        return found

    @property
    def interval_method(self) -> str:
        """How the interval was computed, or why not."""
        return self.interval.method + ", by message" * bool(self.units and self.interval.ends) if self.interval else ""

    def among_others(self) -> dict[str, object]:
        """The figures in the list of several systems."""
        more = {"common": self.common, "rank": self.rank}
        return {"system": self.system, **self.as_json(), **{key: value for key, value in more.items() if value}}


@dataclass(frozen=True)
class Metric:
    """One metric of `mrs score`.

    Attributes:
        score: (a system's file or folder, its options by name) -> figures.
        columns: figures that a table shows after `n`, with their headings.
        main: the figure that the interval and the comparison of systems are of.
        mean_over_examples: whether the main figure is a mean of per-example scores, which `--compare` tests and
            `--save-scores` writes.
        counts: figure -> what it counts, for a note where it is not 0.
    """

    score: Callable[..., Scored]
    columns: Mapping[str, str]
    main: str
    higher_is_better: bool = True
    mean_over_examples: bool = False
    counts: Mapping[str, str] = field(default_factory=dict)
    reads_folder: bool = False

    @property
    def options(self) -> dict[str, object]:
        """Name of an option -> its default; `inspect.Parameter.empty` where the metric needs it."""
        return {name: one.default for name, one in [*inspect.signature(self.score).parameters.items()][1:]}


def score_system(name: str, path: Path, **options: Any) -> Scored:
    """Score a system's file by the metric of that name.

    Raises:
        InputError: an option has no such value, or the file is missing or broken; the sentence names it.
    """
    try:
        return replace(METRICS[name].score(path, **options), system=str(path))
    except (ValueError, ImportError) as error:
        raise InputError(f"{path}: {error}") from error


def score_file(path: Path, language: str) -> dict[str, float]:
    """The figures of a prediction file by the main metric, named as by `mrs score --json`; else an InputError."""
    numbers = score_system("mrs_rouge", path, language=language).numbers()
    return {name: figure for name, figure in numbers.items() if figure is not None}


_INNER_DOT = re.compile(r"\.\s+\S")
SENTENCES = "some texts have a dot inside; for the official script's scores of these, pass --sentences punkt"

# --- Metrics --------------------------------------------------------------------------------------------------------


def _with_gaps(kept: Any, values: Any, n: int) -> list[float]:
    """The scores of the kept examples at the places of all n; nan where an example was skipped."""
    column = np.full(n, np.nan)
    column[kept] = values
    return list(map(float, column))


def _scored(figures: Mapping[str, float], signature: str, interval: Interval, **more: Any) -> Scored:
    """From what the `aggregate` of a topic of `mrs_metrics` returns: `n` and the figures."""
    others = {name: figure for name, figure in figures.items() if name != "n"}
    return Scored(int(figures["n"]), others, {"signature": signature}, interval, **more)


def score_mrs_rouge(
    path: Path, language: str, nbest: int = SUGGESTIONS, sentences: str = "no", punkt: str | None = None,
    rules: str = "official",
) -> Scored:  # fmt: skip
    suggestions, references, examples, messages = read_texts(path, language, nbest)
    tokenizer = tokenizer_of(language, sentences, punkt)
    scores = rouge.score_examples(suggestions, references, language, rules, tokenizer)
    figures = rouge.aggregate(scores)
    interval = bootstrap_interval(scores.weighted, units=[messages[place] for place in scores.kept])
    most = max(map(len, suggestions))
    found = _scored(
        figures, scores.signature, interval, skipped=scores.skipped,
        values=_with_gaps(scores.kept, scores.weighted, len(references)), examples=examples, units=messages,
        others={f"dist{n}": distinct.distinct_n(scores.chosen_tokens, n) for n in (1, 2)},
    )  # fmt: skip
    if (rules, tokenizer.name, sentences) == ("official", "treebank", "no"):
        several = any(_INNER_DOT.search(text) for texts in (references, *suggestions) for text in texts)
        found.warning = SENTENCES if several else ""
    dist = distinct.distinct_signature(most, tokenizer, language, "best", rules=rules)
    return replace(found, signatures={**found.signatures, "dist_signature": dist})


def score_dist_n(
    path: Path, language: str, nbest: int = SUGGESTIONS, sentences: str = "no", punkt: str | None = None,
    level: str = "corpus", vocabulary: int | None = None, sample_size: int | None = None, seed: int = distinct.SEED,
) -> Scored:  # fmt: skip
    try:
        distinct.require_corpus_level(level, vocabulary, sample_size)
    except ValueError as error:
        raise InputError(f"--level {level}: {error}") from error
    suggestions, _, examples, _ = read_texts(path, language, nbest)
    tokenizer = tokenizer_of(language, sentences, punkt)
    prepared = [rouge.prepare_official(text, tokenizer) for texts in suggestions for text in texts]
    tokens = [text.tokens for text in prepared]
    figures: dict[str, Figure] = {}
    for n in (1, 2):
        figures[f"dist{n}"] = distinct.distinct_n(tokens, n, level=level)
        figures[f"dist{n}_ngrams"] = distinct.distinct_n(tokens, n, "ngrams", level)
        if sample_size is not None:
            sampled = distinct.sampled_distinct_n(tokens, n, sample_size, seed=seed)
            figures[f"dist{n}_sampled"] = float(sampled.mean())
    if vocabulary is not None:
        figures["ead"] = distinct.expectation_adjusted_distinct(tokens, vocabulary)
    figures |= {"tokens": distinct.distinct_counts(tokens, 1).tokens, "empty": sum(text.empty for text in prepared)}
    signature = distinct.distinct_signature(
        max(map(len, suggestions)), tokenizer, language, level=level, vocabulary=vocabulary,
        sampling=None if sample_size is None else (sample_size, distinct.SAMPLES, seed),
    )  # fmt: skip
    return Scored(len(tokens), figures, {"signature": signature}, examples=examples)


def score_judge(path: Path, language: str, judge: str, nbest: int = SUGGESTIONS) -> Scored:
    from mrs_suggest.evaluation.scores.judge import judge_suggestions

    suggestions, _, examples, messages = read_texts(path, language, nbest)
    found, signature = judge_suggestions(judge, messages, suggestions, language)
    kept = [place for place, score in enumerate(found) if score is not None]
    if not kept:
        raise InputError(
            f"--judge {judge}: it graded nothing; look at its answers to the prompt of docs/metrics/judge.md."
        )
    values = [score for score in found if score is not None]
    interval = bootstrap_interval(values, units=[messages[place] for place in kept], shares=False)
    figures = {"judged": float(np.mean(values)), "good": float(np.mean([score == 1 for score in values]))}
    return Scored(
        len(kept), figures, {"signature": signature}, interval, {"without_grade": len(found) - len(kept)},
        values=_with_gaps(kept, values, len(found)), examples=examples, units=messages,
    )  # fmt: skip


def score_self_rouge(
    path: Path, language: str, nbest: int = SUGGESTIONS, sentences: str = "no", punkt: str | None = None
) -> Scored:
    suggestions, _, examples, messages = read_texts(path, language, nbest)
    scores = similarity.score_similarity(suggestions, language, tokenizer_of(language, sentences, punkt))
    figures = similarity.aggregate(scores)
    interval = bootstrap_interval(scores.weighted, units=[messages[place] for place in scores.kept])
    return _scored(
        figures, scores.signature, interval, skipped=scores.skipped,
        values=_with_gaps(scores.kept, scores.weighted, len(suggestions)), examples=examples, units=messages,
    )  # fmt: skip


def score_simulated_clicks(path: Path, language: str, nbest: int = SUGGESTIONS, edits: float = clicks.EDITS) -> Scored:
    suggestions, references, examples, messages = read_texts(path, language, nbest)
    scores = clicks.score_clicks(suggestions, references, edits)
    interval = bootstrap_interval(scores.clicked, units=[messages[place] for place in scores.kept])
    return _scored(
        clicks.aggregate(scores), scores.signature, interval, skipped=scores.skipped,
        values=_with_gaps(scores.kept, scores.clicked, len(references)), examples=examples, units=messages,
    )  # fmt: skip


def score_reply_bleu(path: Path, language: str, nbest: int = SUGGESTIONS, chosen: str = "best") -> Scored:
    suggestions, references, examples, messages = read_texts(path, language, nbest)
    scores = bleu.score_suggestions(suggestions, references, language=language, chosen=chosen)
    figures = bleu.aggregate(scores)
    interval = bleu.bleu_interval(scores, units=[messages[place] for place in scores.kept])
    return _scored(
        figures, scores.signature, interval, skipped=scores.skipped, examples=examples, units=messages
    )  # fmt: skip


def score_wrong_language(
    path: Path, language: str, nbest: int = SUGGESTIONS, language_model: str | None = None
) -> Scored:
    from mrs_suggest.common.text.language_id import LanguageIdentifier

    suggestions, _, examples, messages = read_texts(path, language, nbest)
    model = LanguageIdentifier.open(language_model)
    scores = language_match.score_languages(suggestions, language, model.identify, identifier=model.name)
    figures = language_match.aggregate(scores)
    interval = language_match.language_interval(scores, units=messages)
    return _scored(figures, scores.signature, interval, examples=examples, units=messages)


def score_reply_perplexity(path: Path) -> Scored:
    losses, tokens = [], []
    for number, _, (loss, count) in read_numbers(path, "sum of token losses in nats, tokens", 0, 2):
        if not (0 <= loss < math.inf and 0 <= count < 2**53 and count.is_integer()):  # a float has these exactly
            raise InputError(
                f"{path}, line {number}: expected a finite loss of 0 or more and a whole number of tokens, "
                f"found {loss:g} and {count:g}."
            )
        losses.append(loss)
        tokens.append(int(count))
    scores = perplexity.score_losses(losses, tokens)
    return _scored(perplexity.aggregate(scores), scores.signature, perplexity.perplexity_interval(scores))


def score_response_ranking(
    path: Path, language: str | None = None, pool: int | None = None, seed: int = 0, missing_reference: str = "skip"
) -> Scored:
    replies, targets, rows = [], [], []
    what = "reply, index of the right candidate (-1: none), scores"
    for number, (reply,), (target, *row) in read_numbers(path, what, 1, None):
        if not target.is_integer() or not -1 <= target < len(row):
            raise InputError(f"{path}, line {number}: candidate {target:g} is not among the {len(row)} scores.")
        replies.append(reply)
        targets.append(int(target))
        rows.append(row)
    scores = ranking.score_rankings(rows, targets, replies, pool, seed, missing_reference, language=language)
    found = bootstrap_interval(scores.reciprocal_ranks) if len(scores.ranks) else None
    interval = found or Interval(method="no interval: nothing is ranked")
    return _scored(
        ranking.aggregate(scores, k=(1, 3)), scores.signature, interval, skipped=scores.skipped,
        values=_with_gaps(scores.kept, scores.reciprocal_ranks, len(rows)), examples=replies,
    )  # fmt: skip


def score_weighted_f1(path: Path, gold: Path, rules: str = "paper") -> Scored:
    from mrs_suggest.evaluation.scores.score_staple import score_files

    scores = score_files(gold, path, rules, warn=lambda text: print(text, file=sys.stderr))
    finite = bool(np.isfinite(scores.weighted_f1).all())  # the official rules accept a weight of nan
    interval = bootstrap_interval(scores.weighted_f1) if finite else Interval(method="no interval: a weight is nan")
    values = scores.weighted_f1.tolist()
    return _scored(translations_f1.aggregate(scores), scores.signature, interval, values=values, examples=scores.ids)


def score_xglue_score(
    path: Path, gold: Path, language: str | None = None, rules: str = "paper", task: Sequence[str] = (),
    split: str = "test",
) -> Scored:  # fmt: skip
    from mrs_suggest.evaluation.scores.score_xglue import score_folder

    tasks = task or [name for name in TASKS if (path / name).is_dir()]
    scores = score_folder(path, gold, tasks, [language] if language else None, split, rules)
    figures = {name: {code: xglue.aggregate(one) for code, one in of.items()} for name, of in scores.items()}
    means = xglue.average_scores(
        {name: {code: one["score"] for code, one in of.items()} for name, of in figures.items()}
    )
    return Scored(
        sum(int(one["n"]) for of in figures.values() for one in of.values()),
        {**means["tasks"], **{group: means[group] for group in ("understanding", "generation", "all")}},
        {f"{name}_signature": xglue.xglue_signature(name, "+".join(of), rules) for name, of in scores.items()},
        tasks={
            "missing": means["missing"],
            "languages": figures,
            "notes": {name: {code: one.notes for code, one in of.items()} for name, of in scores.items()},
        },
        examples=[f"{name} {code}" for name, of in scores.items() for code in of],
    )


METRICS: dict[str, Metric] = {
    name: Metric(globals()[f"score_{name}"], **about)
    for name, about in read_packaged("mrs_suggest.evaluation.scores", "metrics.yaml").items()
}
DIGITS = {"bleu": 2, "sentence_bleu": 2, "milliseconds": 2, "perplexity": 3, "p": 5, "p_holm": 5}  # else 4
