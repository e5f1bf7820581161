"""The metrics of `mrs score`, one file each; heavy libraries are imported when one scores."""

from mrs_evaluation.metrics import (
    dist_n,
    mrs_rouge,
    reply_bleu,
    reply_perplexity,
    response_ranking,
    self_rouge,
    weighted_f1,
    wrong_language,
    xglue_score,
)
from mrs_evaluation.metrics.spec import MetricSpec

SPECS: dict[str, MetricSpec] = {
    module.SPEC.name: module.SPEC
    for module in (
        mrs_rouge,
        dist_n,
        reply_bleu,
        self_rouge,
        wrong_language,
        reply_perplexity,
        weighted_f1,
        response_ranking,
        xglue_score,
    )
}
