"""Self-ROUGE: how similar the suggestions of one message are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.evaluation.scores.metric_record import Scored, ScoreRecord, with_gaps
from mrs_suggest.evaluation.scores.metric_spec import Column, MetricSpec, N
from mrs_suggest.evaluation.scores.metric_texts import EMPTY_SUGGESTIONS, PREDICTION_FILE, TokenMetric


@dataclass(frozen=True, kw_only=True)
class SelfRouge(TokenMetric):
    def score(self, path: Path) -> Scored:
        from mrs_metrics.significance import bootstrap_interval
        from mrs_metrics.similarity import aggregate, score_similarity

        suggestions, _, examples = self.read(path)
        scores = score_similarity(suggestions, self.language, self.tokenizer())
        record = ScoreRecord.of(
            aggregate(scores), scores.signature, bootstrap_interval(scores.weighted), scores.skipped
        )
        return Scored(record, with_gaps(scores.kept, scores.weighted, len(suggestions)), examples)


SPEC = MetricSpec(
    name="self_rouge",
    tells="how alike the three suggestions are",
    compares_with="Self-BLEU",
    metric=SelfRouge,
    reads=PREDICTION_FILE,
    columns=(N, Column("self_rouge", "Self-ROUGE"), Column("normalised", "normalised")),
    main="self_rouge",
    higher_is_better=False,
    mean_over_examples=True,
    interval="studentised",
    counts=(("empty", EMPTY_SUGGESTIONS),),
)
