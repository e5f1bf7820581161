"""Rank of the real reply among candidates, from their scores."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.evaluation.number_rows import read_numbers
from mrs_suggest.evaluation.scores.metric_record import Scored, ScoreRecord, with_gaps
from mrs_suggest.evaluation.scores.metric_spec import Column, Input, Metric, MetricSpec, N, Option

_FIELDS = "reply, index of the right candidate (-1: none), scores"


@dataclass(frozen=True, kw_only=True)
class ResponseRanking(Metric):
    language: Annotated[
        str | None, Option("the language of the texts, for the signature", metavar="CODE", flag="lang")
    ] = None
    pool: Annotated[int | None, Option("rank in random pools of N candidates", metavar="N", unset="all candidates")] = (
        None
    )
    seed: Annotated[int, Option("seed of the pools")] = 0
    missing_reference: Annotated[
        str,
        Option(
            "skip examples whose reply is not a candidate, or score them 0",
            choices=("skip", "zero"),
            former="absent",
        ),
    ] = "skip"

    def score(self, path: Path) -> Scored:
        from mrs_metrics.ranking import aggregate, score_rankings
        from mrs_metrics.significance import bootstrap_interval

        replies, targets, rows = [], [], []
        for number, line in read_lines(path):
            reply, _, rest = line.partition("\t")
            target, *row = read_numbers(path, number, rest, None, _FIELDS)
            if not target.is_integer() or not -1 <= target < len(row):
                raise InputError(f"{path}, line {number}: there is no candidate {target:g} among {len(row)} scores.")
            replies.append(reply)
            targets.append(int(target))
            rows.append(row)
        scores = score_rankings(
            rows, targets, replies, self.pool, self.seed, self.missing_reference, language=self.language
        )
        interval = bootstrap_interval(scores.reciprocal_ranks) if len(scores.ranks) else ()
        record = ScoreRecord.of(aggregate(scores, k=(1, 3)), scores.signature, interval, scores.skipped)
        return Scored(record, with_gaps(scores.kept, scores.reciprocal_ranks, len(rows)), replies)


SPEC = MetricSpec(
    name="response_ranking",
    tells="where a retriever ranks the real reply",
    compares_with="MRR and P@1 of MRS",
    metric=ResponseRanking,
    reads=Input("the real reply, index of its candidate from 0, one score per candidate; separated by tabs"),
    columns=(
        N,
        Column("mrr", "MRR"),
        Column("macro_mrr", "macro-MRR"),
        Column("p@1", "P@1"),
        Column("p@3", "P@3"),
    ),
    main="mrr",
    mean_over_examples=True,
    interval="studentised",
)
