"""Weighted F1 of accepted translations, from the files of STAPLE."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mrs_suggest.evaluation.scores.metric_record import Scored, ScoreRecord
from mrs_suggest.evaluation.scores.metric_spec import Column, Input, Metric, MetricSpec, N, Option


@dataclass(frozen=True, kw_only=True)
class WeightedF1(Metric):
    gold: Annotated[Path, Option("the gold file of the task")]
    rules: Annotated[
        str,
        Option(
            "read texts and weights as the paper says, or as the official script does", choices=("paper", "official")
        ),
    ] = "paper"

    def score(self, path: Path) -> Scored:
        import numpy as np

        from mrs_metrics.significance import bootstrap_interval
        from mrs_metrics.translations_f1 import aggregate
        from mrs_suggest.evaluation.scores.score_staple import score_files

        scores = score_files(self.gold, path, self.rules, warn=lambda text: print(text, file=sys.stderr))
        finite = bool(np.isfinite(scores.weighted_f1).all())  # the official rules accept a weight of nan
        interval = bootstrap_interval(scores.weighted_f1) if finite else ()
        record = ScoreRecord.of(aggregate(scores), scores.signature, interval)
        return Scored(record, scores.weighted_f1.tolist(), scores.ids)


SPEC = MetricSpec(
    name="weighted_f1",
    tells="accepted translations found, weighted by learners' use",
    compares_with='STAPLE\'s figures (`rules="official"`)',
    metric=WeightedF1,
    reads=Input("the task's prediction file"),
    columns=(
        N,
        Column("precision", "precision"),
        Column("weighted_recall", "weighted recall"),
        Column("micro_f1", "micro F1"),
        Column("macro_f1", "macro F1"),
        Column("weighted_micro_f1", "weighted micro F1"),
        Column("weighted_macro_f1", "weighted macro F1"),
        Column("missing", "prompts missing", 0),
        Column("extra", "extra prompts", 0),
    ),
    main="weighted_macro_f1",
    mean_over_examples=True,
    interval="studentised",
)
