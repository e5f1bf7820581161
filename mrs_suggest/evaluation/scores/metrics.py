"""The metrics of `mrs score`: what each reads of a system, which options it takes, and what is shown.

A metric is a function from a system's file to its figures; its keyword arguments are its options. The command line
(`mrs_suggest/cli/score.py`) follows from `METRICS`, whose tables are described in `metrics.yaml`.
"""

import hashlib
import inspect
import math
import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import SimpleNamespace
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
)  # fmt: skip
from mrs_metrics.corpus import Corpus, jackknife_interval, ratio_figure
from mrs_metrics.interval import Interval
from mrs_metrics.signature import signature, with_unit
from mrs_metrics.significance import bootstrap_interval
from mrs_metrics.tokenize import AUTO, rules_name
from mrs_metrics.xglue_tasks import TASKS
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import file_sha256
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.predictions import MESSAGE, SUGGESTIONS
from mrs_suggest.evaluation.scores.input import EXAMPLE, Texts, read_numbers, read_texts, tokenizer_of, with_skipped

Figure = float | None  # a count is an int; None where there is nothing to compute it from


@dataclass
class Scored:
    """The figures of one system by one metric.

    Attributes:
        figures: by name, the main one among them.
        signatures: how the figures were computed, by their names in JSON: `signature`, and others that end so.
        interval, intervals: 95 %, of the main figure (None if the metric lacks one), and of others by name.
        skipped: examples left out, by reason; None where the metric leaves none out.
        others: figures of another metric that are shown with these.
        tasks: of a benchmark: `missing`, `languages` and `notes`, each by task.
        values: (n,) per-example scores whose mean is the main figure, nan where skipped; empty if it is not a mean.
        examples: (n,) texts that identify the examples; empty where only their digest is known.
        digest: of the examples; two systems with the same one can be compared.
        corpora: figures that are no such means, by name, for tests; row i of each is of example i, None if skipped.
        units: (n,) the message of each example, or what `--unit` names; empty: each is its own.
        warning: about the figures, or empty.
        rank: of its group, from 1; None where systems were not compared.
        common: `n` and main figure of the examples that all systems have a score for, where some have more.
    """

    n: int
    figures: Mapping[str, Figure]
    signatures: Mapping[str, str]
    interval: Interval | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    skipped: Mapping[str, int] | None = None
    others: Mapping[str, Figure] = field(default_factory=dict)
    tasks: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    values: Sequence[float] = ()
    examples: Sequence[str] = ()
    digest: str = ""
    corpora: Mapping[str, Corpus] = field(default_factory=dict)
    units: Sequence[Hashable] = ()
    unit: str = EXAMPLE
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
        found: dict[str, object] = {"n": self.n, **self.figures, **self.tasks}
        if self.interval is not None:
            found["interval"] = self.interval.ends
        found |= {f"{name}_interval": interval.ends for name, interval in self.intervals.items()}
        found |= self.others
        if self.skipped is not None:
            found["skipped"] = self.skipped
        found |= self.signatures
        if self.interval is not None:
            found["interval_method"] = self.method_of(self.interval)
        return found

    def all_intervals(self, main: str) -> dict[str, Interval]:
        return {**self.intervals, **({main: self.interval} if self.interval else {})}

    def method_of(self, interval: Interval) -> str:
        """How an interval was computed, or why not."""
        return interval.method + f", by {self.unit}" * bool(self.unit != EXAMPLE and interval.ends)

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
    unit = str({**METRICS[name].options, **options}.get("unit", EXAMPLE))
    try:
        found = METRICS[name].score(path, **options)
        signatures = {key: with_unit(signature, unit) for key, signature in found.signatures.items()}
        return replace(found, signatures=signatures, unit=unit, system=str(path))
    except (ValueError, ImportError) as error:
        raise InputError(f"{path}: {error}") from error


_INNER_DOT = re.compile(r"\.\s+\S")
SENTENCES = "rules:mrs: texts with a dot inside score otherwise by MRS's script; for its scores, pass --sentences punkt"

RANKS = (1, 3)  # the k of precision at k
NEAR = 0.9  # cosine of two replies that could stand for each other, by intfloat/multilingual-e5-small; ours

# --- Metrics --------------------------------------------------------------------------------------------------------


def _rows(kept: Any, corpus: Corpus, n: int) -> Corpus:
    """A figure of the kept examples with rows at the places of all n; None where an example was skipped."""
    rows = dict(zip(kept, corpus.rows, strict=True))
    return replace(corpus, rows=[rows.get(place) for place in range(n)])


def _scored(figures: Mapping[str, float], signature: str, interval: Interval, **more: Any) -> Scored:
    """From what the `aggregate` of a topic of `mrs_metrics` returns: `n` and the figures."""
    others = {name: figure for name, figure in figures.items() if name != "n"}
    return Scored(int(figures["n"]), others, {"signature": signature}, interval, **more)


def _mean(texts: Texts, scores: Any, figures: Mapping[str, float], values: Any, **more: Any) -> Scored:
    """Of a metric whose main figure is the mean of the values of the kept examples."""
    return _scored(
        figures, scores.signature, bootstrap_interval(values, units=texts.units_of(scores.kept)),
        skipped=scores.skipped, values=with_skipped(scores.kept, values, len(texts.units)), examples=texts.examples,
        units=texts.units, **more,
    )  # fmt: skip


def score_mrs_rouge(
    path: Path, language: str, nbest: int = SUGGESTIONS, sentences: str = AUTO, punkt: str | None = None,
    rules: str = "official", unit: str = MESSAGE,
) -> Scored:  # fmt: skip
    texts = read_texts(path, language, nbest, unit)
    tokenizer = tokenizer_of(language, sentences, punkt)
    scores = rouge.score_examples(texts.suggestions, texts.references, language, rules, tokenizer)
    figures = rouge.aggregate(scores)  # refuses an empty set
    corpora = {f"dist{n}": distinct.distinct_corpus([[one] for one in scores.chosen_tokens], n) for n in (1, 2)}
    found = _mean(
        texts, scores, figures, scores.weighted, others={name: corpus.value for name, corpus in corpora.items()},
        intervals={name: jackknife_interval(one, texts.units_of(scores.kept)) for name, one in corpora.items()},
    )  # fmt: skip
    several = any(_INNER_DOT.search(text) for some in (texts.references, *texts.suggestions) for text in some)
    found.warning = SENTENCES if several and rules_name(rules, tokenizer) == "mrs" else ""
    dist = distinct.distinct_signature(max(map(len, texts.suggestions)), tokenizer, language, "best", rules=rules)
    return replace(found, signatures={**found.signatures, "dist_signature": dist})


def score_dist_n(
    path: Path, language: str, nbest: int = SUGGESTIONS, sentences: str = AUTO, punkt: str | None = None,
    level: str = "corpus", vocabulary: int | None = None, sample_size: int | None = None, seed: int = distinct.SEED,
    unit: str = MESSAGE,
) -> Scored:  # fmt: skip
    try:
        distinct.require_corpus_level(level, vocabulary, sample_size)
    except ValueError as error:
        raise InputError(f"--level {level}: {error}") from error
    texts = read_texts(path, language, nbest, unit)
    tokenizer = tokenizer_of(language, sentences, punkt)
    prepared = [[rouge.prepare_official(text, tokenizer) for text in some] for some in texts.suggestions]
    examples = [[text.tokens for text in some] for some in prepared]
    tokens = [own for some in examples for own in some]
    figures: dict[str, Figure] = {}
    corpora = {f"dist{n}": distinct.distinct_corpus(examples, n, level=level) for n in (1, 2)}
    for n in (1, 2):
        figures[f"dist{n}"] = distinct.distinct_n(tokens, n, level=level)
        figures[f"dist{n}_ngrams"] = distinct.distinct_n(tokens, n, "ngrams", level)
        if sample_size is not None:
            sampled = distinct.sampled_distinct_n(tokens, n, sample_size, seed=seed)
            figures[f"dist{n}_sampled"] = float(sampled.mean())
    if vocabulary is not None:
        figures["ead"] = distinct.expectation_adjusted_distinct(tokens, vocabulary)
    figures["tokens"] = distinct.distinct_counts(tokens, 1).tokens
    figures["empty"] = sum(text.empty for some in prepared for text in some)
    signature = distinct.distinct_signature(
        max(map(len, examples)), tokenizer, language, level=level, vocabulary=vocabulary,
        sampling=None if sample_size is None else (sample_size, distinct.SAMPLES, seed),
    )  # fmt: skip
    first, second = (jackknife_interval(corpus, texts.units) for corpus in corpora.values())
    return Scored(
        len(tokens), figures, {"signature": signature}, first, {"dist2": second}, corpora=corpora,
        examples=texts.examples, units=texts.units,
    )  # fmt: skip


def score_judge(path: Path, language: str, judge: str, nbest: int = SUGGESTIONS, unit: str = MESSAGE) -> Scored:
    from mrs_suggest.evaluation.scores.judge import judge_suggestions

    texts = read_texts(path, language, nbest, unit)
    found, signature = judge_suggestions(judge, texts.messages, texts.suggestions, language)
    kept = [place for place, score in enumerate(found) if score is not None]
    if not kept:
        raise InputError(
            f"--judge {judge}: it graded nothing; look at its answers to the prompt of docs/metrics/judge.md."
        )
    values = [score for score in found if score is not None]
    interval = bootstrap_interval(values, units=texts.units_of(kept), shares=False)
    figures = {"judged": float(np.mean(values)), "good": float(np.mean([score == 1 for score in values]))}
    return Scored(
        len(kept), figures, {"signature": signature}, interval, skipped={"without_grade": len(found) - len(kept)},
        values=with_skipped(kept, values, len(found)), examples=texts.examples, units=texts.units,
    )  # fmt: skip


def score_self_rouge(
    path: Path, language: str, nbest: int = SUGGESTIONS, sentences: str = AUTO, punkt: str | None = None,
    unit: str = MESSAGE,
) -> Scored:  # fmt: skip
    texts = read_texts(path, language, nbest, unit)
    scores = similarity.score_similarity(texts.suggestions, language, tokenizer_of(language, sentences, punkt))
    return _mean(texts, scores, similarity.aggregate(scores), scores.weighted)


def score_semantic(
    path: Path, language: str, encoder: str, nbest: int = SUGGESTIONS, responses: Path | None = None,
    near: float = NEAR, unit: str = MESSAGE,
) -> Scored:  # fmt: skip
    from mrs_suggest.models.retrieval.distillation import load_encoder

    texts = read_texts(path, language, nbest, unit)
    replies = [] if responses is None else [line for _, line in read_lines(responses)]
    if responses is not None and not replies:
        raise InputError(f"{responses}: expected replies, one on each line; the file is empty.")
    every = list(dict.fromkeys(text for some in (texts.references, replies, *texts.suggestions) for text in some))
    encode, digest = load_encoder(encoder)
    of = dict(zip(every, (vectors := encode(every)) / np.linalg.norm(vectors, axis=1, keepdims=True), strict=True))
    wanted = [of[reference] for reference in texts.references]
    values = [max(float(of[text] @ own) for text in some) for some, own in zip(texts.suggestions, wanted, strict=True)]
    figures, intervals = {"n": len(values), "semantic": float(np.mean(values))}, {}
    if replies:
        table = np.stack([of[reply] for reply in replies])
        covered = [float((table @ own).max() >= near) for own in wanted]
        figures["coverage"] = float(np.mean(covered))
        intervals["coverage"] = bootstrap_interval(covered, units=texts.units)
    line = signature(
        "semantic", encoder=f"{Path(encoder).name}-{digest}", nbest=max(map(len, texts.suggestions)), lang=language,
        near=near if replies else None, responses=responses and f"{len(replies)}-{file_sha256(responses)[:8]}",
    )  # fmt: skip
    every_one = SimpleNamespace(signature=line, kept=range(len(values)), skipped=None)
    return _mean(texts, every_one, figures, values, intervals=intervals)


def score_simulated_clicks(
    path: Path, language: str, nbest: int = SUGGESTIONS, edits: float = clicks.EDITS, unit: str = MESSAGE
) -> Scored:
    texts = read_texts(path, language, nbest, unit)
    scores = clicks.score_clicks(texts.suggestions, texts.references, edits)
    return _mean(texts, scores, clicks.aggregate(scores), scores.clicked)


def score_reply_bleu(
    path: Path, language: str, nbest: int = SUGGESTIONS, chosen: str = "best", unit: str = MESSAGE
) -> Scored:
    texts = read_texts(path, language, nbest, unit)
    scores = bleu.score_suggestions(texts.suggestions, texts.references, language=language, chosen=chosen)
    figures, corpus, units = bleu.aggregate(scores), bleu.bleu_corpus(scores), texts.units_of(scores.kept)
    return _scored(
        figures, scores.signature, jackknife_interval(corpus, units), skipped=scores.skipped,
        intervals={"sentence_bleu": bootstrap_interval(scores.sentence, units=units, shares=False)},
        corpora={"bleu": _rows(scores.kept, corpus, len(texts.units))}, examples=texts.examples, units=texts.units,
    )  # fmt: skip


def score_wrong_language(
    path: Path, language: str, nbest: int = SUGGESTIONS, language_model: str | None = None, unit: str = MESSAGE
) -> Scored:
    from mrs_suggest.common.text.language_id import LanguageIdentifier

    texts = read_texts(path, language, nbest, unit)
    model = LanguageIdentifier.open(language_model)
    scores = language_match.score_languages(texts.suggestions, language, model.identify, identifier=model.name)
    return _scored(
        language_match.aggregate(scores), scores.signature, language_match.language_interval(scores, units=texts.units),
        examples=texts.examples, units=texts.units,
    )  # fmt: skip


def score_reply_perplexity(path: Path, unit: str = EXAMPLE) -> Scored:
    losses, tokens, units = [], [], []
    for number, _, (loss, count), own in read_numbers(path, "sum of token losses in nats, tokens", 0, 2, unit):
        if not (0 <= loss < math.inf and 0 <= count < 2**53 and count.is_integer()):  # a float has these exactly
            raise InputError(
                f"{path}, line {number}: expected a finite loss of 0 or more and a whole number of tokens, "
                f"found {loss:g} and {count:g}."
            )
        losses.append(loss)
        tokens.append(int(count))
        units.append(own)
    scores = perplexity.score_losses(losses, tokens)
    return _scored(
        perplexity.aggregate(scores), scores.signature, perplexity.perplexity_interval(scores, units=units), units=units
    )


def score_response_ranking(
    path: Path, language: str | None = None, pool: int | None = None, seed: int = 0, missing_reference: str = "skip",
    unit: str = EXAMPLE,
) -> Scored:  # fmt: skip
    replies, targets, rows, units = [], [], [], []
    what = "reply, index of the right candidate (-1: none), scores"
    for number, (reply,), (target, *row), own in read_numbers(path, what, 1, None, unit):
        if not target.is_integer() or not -1 <= target < len(row):
            raise InputError(f"{path}, line {number}: candidate {target:g} is not among the {len(row)} scores.")
        replies.append(reply)
        targets.append(int(target))
        rows.append(row)
        units.append(own)
    scores = ranking.score_rankings(rows, targets, replies, pool, seed, missing_reference, language=language)
    figures = ranking.aggregate(scores, k=RANKS)
    kept = [units[place] for place in scores.kept]
    assert scores.replies is not None
    macro = ranking.macro_corpus(scores.replies.tolist(), scores.reciprocal_ranks.tolist())
    hits = {f"p@{k}": (scores.ranks >= 1) & (scores.ranks <= k) for k in RANKS}
    shares = {name: bootstrap_interval(hit, units=kept) for name, hit in hits.items()}
    return _scored(
        figures, scores.signature, bootstrap_interval(scores.reciprocal_ranks, units=kept), skipped=scores.skipped,
        intervals={"macro_mrr": jackknife_interval(macro, kept)}
        | {name: Interval((end / int(name[2:]) for end in one), one.method) for name, one in shares.items()},
        values=with_skipped(scores.kept, scores.reciprocal_ranks, len(rows)), examples=replies, units=units,
        corpora={"macro_mrr": _rows(scores.kept, macro, len(rows))} | {
            name: _rows(scores.kept, Corpus([(float(one), int(name[2:])) for one in hit], ratio_figure), len(rows))
            for name, hit in hits.items()
        },
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
    figures: dict[str, dict[str, Any]] = {
        name: {code: {**xglue.aggregate(one), "interval": xglue.score_interval(one).ends} for code, one in of.items()}
        for name, of in scores.items()
    }
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
