"""Share of suggestions in another language than the message's."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mrs_suggest.evaluation.scores.metric_record import Scored, ScoreRecord
from mrs_suggest.evaluation.scores.metric_spec import Column, MetricSpec, N, Option
from mrs_suggest.evaluation.scores.metric_texts import EMPTY_SUGGESTIONS, PREDICTION_FILE, TextMetric


@dataclass(frozen=True, kw_only=True)
class WrongLanguage(TextMetric):
    language_model: Annotated[
        str | None, Option("fastText's model, lid.176.ftz or lid.176.bin", metavar="FILE", unset="the one in the cache")
    ] = None

    def score(self, path: Path) -> Scored:
        from mrs_metrics.language_match import aggregate, language_interval, score_languages
        from mrs_suggest.common.text.language_id import LanguageIdentifier

        suggestions, _, examples = self.read(path)
        identifier = LanguageIdentifier.open(self.language_model)
        scores = score_languages(suggestions, self.language, identifier.identify, identifier=identifier.name)
        return Scored(ScoreRecord.of(aggregate(scores), scores.signature, language_interval(scores)), (), examples)


SPEC = MetricSpec(
    name="wrong_language",
    tells="share of suggestions in another language than the message's",
    compares_with="MRS, section 5",
    metric=WrongLanguage,
    reads=PREDICTION_FILE,
    columns=(
        N,
        Column("wrong", "wrong language"),
        Column("any_wrong", "messages with one"),
        Column("undecided", "undecided"),
        Column("too_short", "too short"),
    ),
    main="wrong",
    higher_is_better=False,
    interval="studentised",
    counts=(("empty", EMPTY_SUGGESTIONS),),
)
