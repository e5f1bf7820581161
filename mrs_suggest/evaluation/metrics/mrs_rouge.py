"""Weighted ROUGE of the best suggestion, with Dist-1 and -2 of those."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mrs_suggest.evaluation.scores.metric_record import Scored, ScoreRecord, with_gaps
from mrs_suggest.evaluation.scores.metric_spec import Column, MetricSpec, N, Option
from mrs_suggest.evaluation.scores.metric_texts import EMPTY_SUGGESTIONS, PREDICTION_FILE, TokenMetric


@dataclass(frozen=True, kw_only=True)
class MrsRouge(TokenMetric):
    rules: Annotated[
        str,
        Option(
            "count n-grams as the official script does (scores equal its own only with --sentences punkt), or as the "
            "paper defines ROUGE",
            choices=("official", "paper"),
            source="from MRS's official script",
        ),
    ] = "official"

    def score(self, path: Path) -> Scored:
        from mrs_metrics.distinct import distinct_n, distinct_signature
        from mrs_metrics.rouge import aggregate, score_examples
        from mrs_metrics.significance import bootstrap_interval

        suggestions, references, examples = self.read(path)
        tokenizer = self.tokenizer()
        scores = score_examples(suggestions, references, self.language, self.rules, tokenizer)
        record = ScoreRecord.of(
            aggregate(scores), scores.signature, bootstrap_interval(scores.weighted), scores.skipped
        )
        nbest = max(map(len, suggestions))
        dist = distinct_signature(nbest, tokenizer, self.language, "best", rules=self.rules)
        record = dataclasses.replace(
            record,
            beside={f"dist{n}": distinct_n(scores.chosen_tokens, n) for n in (1, 2)},
            signatures={**record.signatures, "dist_signature": dist},
        )
        return Scored(record, with_gaps(scores.kept, scores.weighted, len(references)), examples)


SPEC = MetricSpec(
    name="mrs_rouge",
    tells="similarity of the best suggestion to the real reply; the main metric of MRS",
    compares_with='published MRS figures (`rules="official"`, `sentences="punkt"`)',
    metric=MrsRouge,
    reads=PREDICTION_FILE,
    columns=(
        N,
        Column("rouge1", "ROUGE-1 F1"),
        Column("rouge2", "ROUGE-2 F1"),
        Column("rouge3", "ROUGE-3 F1"),
        Column("weighted", "weighted ROUGE"),
        Column("ceiling", "ceiling"),
        Column("dist1", "Dist-1"),
        Column("dist2", "Dist-2"),
    ),
    main="weighted",
    mean_over_examples=True,
    interval="studentised",
    counts=(("empty_suggestions", EMPTY_SUGGESTIONS),),
)
