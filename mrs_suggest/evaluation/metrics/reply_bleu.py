"""BLEU of one suggestion of each example, by sacreBLEU."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mrs_suggest.evaluation.scores.metric_record import Scored, ScoreRecord
from mrs_suggest.evaluation.scores.metric_spec import Column, MetricSpec, N, Option
from mrs_suggest.evaluation.scores.metric_texts import EMPTY_SUGGESTIONS, PREDICTION_FILE, TextMetric


@dataclass(frozen=True, kw_only=True)
class ReplyBleu(TextMetric):
    chosen: Annotated[
        str,
        Option(
            "score the suggestion that is best by sentence BLEU, best by ROUGE, or first",
            choices=("best", "best_rouge", "first"),
        ),
    ] = "best"

    def score(self, path: Path) -> Scored:
        from mrs_metrics.bleu import aggregate, bleu_interval, score_suggestions

        suggestions, references, examples = self.read(path)
        scores = score_suggestions(suggestions, references, language=self.language, chosen=self.chosen)
        record = ScoreRecord.of(aggregate(scores), scores.signature, bleu_interval(scores), scores.skipped)
        return Scored(record, (), examples)


SPEC = MetricSpec(
    name="reply_bleu",
    tells="BLEU by sacreBLEU, of the best or the first suggestion",
    compares_with="sacreBLEU",
    metric=ReplyBleu,
    reads=PREDICTION_FILE,
    columns=(
        N,
        Column("bleu", "BLEU", 2),
        Column("sentence_bleu", "sentence BLEU", 2),
        Column("length_ratio", "length"),
    ),
    main="bleu",
    interval="percentile",
    counts=(("empty", EMPTY_SUGGESTIONS),),
)
