"""Perplexity of the real replies, from token losses."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.evaluation.number_rows import read_numbers
from mrs_suggest.evaluation.scores.metric_record import Scored, ScoreRecord
from mrs_suggest.evaluation.scores.metric_spec import Column, Input, Metric, MetricSpec, N

_MOST_TOKENS = 2**53  # up to here a float holds every whole number
_FIELDS = "sum of token losses in nats, tokens"


@dataclass(frozen=True, kw_only=True)
class ReplyPerplexity(Metric):
    def score(self, path: Path) -> Scored:
        from mrs_metrics.perplexity import aggregate, perplexity_interval, score_losses

        losses, tokens = [], []
        for number, line in read_lines(path):
            loss, count = read_numbers(path, number, line, 2, _FIELDS)
            if not (0 <= loss < math.inf and 0 <= count < _MOST_TOKENS and count.is_integer()):
                raise InputError(
                    f"{path}, line {number}: expected a finite loss of 0 or more and a whole number of tokens, "
                    f"found {line[:60]!r}."
                )
            losses.append(loss)
            tokens.append(int(count))
        scores = score_losses(losses, tokens)
        return Scored(ScoreRecord.of(aggregate(scores), scores.signature, perplexity_interval(scores)))


SPEC = MetricSpec(
    name="reply_perplexity",
    tells="how surprised a generator is by the real reply",
    compares_with="perplexity of MRS",
    metric=ReplyPerplexity,
    reads=Input("sum of token losses in nats, tab, tokens; one example per line"),
    columns=(N, Column("tokens", "tokens", 0), Column("loss", "nats per token"), Column("perplexity", "perplexity", 3)),
    main="perplexity",
    higher_is_better=False,
    interval="studentised",
    counts=(("empty", "replies without a token"), ("overflow", "perplexity is too large for a number: see nats")),
)
