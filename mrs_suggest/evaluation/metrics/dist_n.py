"""Dist-n of all suggestions; on request expectation-adjusted, and of samples of equal size."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mrs_suggest.common.metric_errors import metric_errors
from mrs_suggest.evaluation.scores.metric_record import Figure, Scored, ScoreRecord
from mrs_suggest.evaluation.scores.metric_spec import Column, MetricSpec, N, Option
from mrs_suggest.evaluation.scores.metric_texts import EMPTY_SUGGESTIONS, PREDICTION_FILE, TokenMetric


@dataclass(frozen=True, kw_only=True)
class DistN(TokenMetric):
    level: Annotated[
        str, Option("count all suggestions together, or take the mean over them", choices=("corpus", "response"))
    ] = "corpus"
    vocabulary: Annotated[
        int | None, Option("also print expectation-adjusted distinct, for a vocabulary of N tokens", metavar="N")
    ] = None
    sample_size: Annotated[int | None, Option("also print the mean over 100 samples of N suggestions", metavar="N")] = (
        None
    )
    seed: Annotated[int | None, Option("seed of the samples", unset="a fixed number")] = None

    def check(self) -> None:
        super().check()
        if self.level != "corpus":
            from mrs_metrics.distinct import require_corpus_level

            with metric_errors(f"--level {self.level}"):
                require_corpus_level(self.level, self.vocabulary, self.sample_size)

    def score(self, path: Path) -> Scored:
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

        suggestions, _, examples = self.read(path)
        tokenizer = self.tokenizer()
        prepared = [prepare_official(text, tokenizer) for texts in suggestions for text in texts]
        tokens = [text.tokens for text in prepared]
        size, seed = self.sample_size, SEED if self.seed is None else self.seed
        figures: dict[str, Figure] = {}
        for n in (1, 2):
            figures[f"dist{n}"] = distinct_n(tokens, n, level=self.level)
            figures[f"dist{n}_ngrams"] = distinct_n(tokens, n, "ngrams", self.level)
            if size is not None:
                figures[f"dist{n}_sampled"] = float(sampled_distinct_n(tokens, n, size, seed=seed).mean())
        if self.vocabulary is not None:
            figures["ead"] = expectation_adjusted_distinct(tokens, self.vocabulary)
        figures |= {"tokens": distinct_counts(tokens, 1).tokens, "empty": sum(text.empty for text in prepared)}
        signature = distinct_signature(
            max(map(len, suggestions)), tokenizer, self.language, level=self.level, vocabulary=self.vocabulary,
            sampling=None if size is None else (size, SAMPLES, seed),
        )  # fmt: skip
        return Scored(ScoreRecord(len(tokens), figures, {"signature": signature}), (), examples)


SPEC = MetricSpec(
    name="dist_n",
    tells="how varied the suggestions are",
    compares_with="Li et al. 2016; expectation-adjusted: Liu et al. 2022",
    metric=DistN,
    reads=PREDICTION_FILE,
    columns=(
        N,
        Column("tokens", "tokens", 0),
        Column("dist1", "Dist-1"),
        Column("dist2", "Dist-2"),
        Column("dist2_ngrams", "Dist-2 per bigram"),
        Column("ead", "EAD"),
        Column("dist1_sampled", "Dist-1 sampled"),
        Column("dist2_sampled", "Dist-2 sampled"),
    ),
    main="dist1",
    counts=(("empty", EMPTY_SUGGESTIONS),),
)
