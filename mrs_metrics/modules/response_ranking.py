"""Ranking of the real reply among candidates: mean reciprocal rank, precision at k and macro-MRR, among all candidates
or in seeded random pools of them. Ties count against the system.
"""

from typing import Any

import datasets
import evaluate

from mrs_metrics.ranking import aggregate, score_rankings
from mrs_metrics.significance import bootstrap_interval, interval_entries
from mrs_metrics.module import Lists
from mrs_metrics.signature import check_lists


class ResponseRanking(Lists, evaluate.Metric):
    """
    Args:
        predictions: for each example a score for each of its candidates, higher is better; any number of them.
        references: for each example the index of the real reply among its candidates, -1 if it is not there.
        replies: for each example the real reply as a text, for the macro-MRR.
        k: the k of precision at k, or several; default 1.
        pool: rank in random pools of this many of an example's candidates, the real reply included; default all of
            them.
        seed: of the pools; default 0.
        missing_reference: `skip` (default) leaves examples without their reply among the candidates out; `zero` gives
            them the reciprocal rank 0.
        of: what the candidates are, for the signature, such as `references` or `response_set`; default `candidates`.
        language: of the texts, for the signature.
        interval: also return the 95 % interval (studentised bootstrap) of the MRR; default False.
        per_example: also return the rank of each example; default False.
    Returns:
        n: examples ranked.
        mrr: mean reciprocal rank, 0 to 1.
        p@K: for each k, precision at k, 0 to 1 / k.
        macro_mrr, replies: with `replies`, the mean over distinct replies of the mean reciprocal rank of each, and how
            many there are.
        skipped: examples left out, by reason.
        signature: how the figures were computed, to be printed with them.
        per_example: on request, lists of one entry per ranked example: `rank` (0: not found), `reciprocal_rank`,
            `pool_size` and `kept` (index of the example).
    Examples:
        >>> metric = evaluate.load("response_ranking")
        >>> metric.compute(predictions=[[-0.1, -2.0, -0.5], [0.3, 0.3]], references=[0, 1])["mrr"]
        0.75
    """

    urls = ("https://arxiv.org/abs/2106.02017", "https://arxiv.org/abs/1904.06472")
    inputs = datasets.Features(
        {"predictions": datasets.Sequence(datasets.Value("float64")), "references": datasets.Value("int64")}
    )

    def add_batch(self, *, predictions: Any = None, references: Any = None, **kwargs: Any) -> None:
        """Add examples."""
        check_lists(predictions, references, required=True)
        for index, target in enumerate(references):
            if target is None or isinstance(target, str | list | tuple):
                raise ValueError(
                    f"The reference of example {index} must be the index of its one right candidate (-1: none), not "
                    f"{target!r:.60}; a ranking cannot have several references."
                )
        super().add_batch(predictions=predictions, references=references, **kwargs)

    def _compute(
        self,
        predictions: list[list[float]],
        references: list[int],
        replies: list[str] | None = None,
        k: int | tuple[int, ...] = 1,
        pool: int | None = None,
        seed: int = 0,
        missing_reference: str = "skip",
        of: str = "candidates",
        language: str | None = None,
        interval: bool = False,
        units: list[object] | None = None,
        per_example: bool = False,
    ) -> dict[str, Any]:
        scores = score_rankings(predictions, references, replies, pool, seed, missing_reference, of, language)
        result: dict[str, Any] = {**aggregate(scores, k), "skipped": scores.skipped, "signature": scores.signature}
        if interval:
            result |= interval_entries(bootstrap_interval, scores.reciprocal_ranks, scores, units, len(predictions))
        if per_example:
            columns = {"rank": scores.ranks, "reciprocal_rank": scores.reciprocal_ranks}
            columns |= {"pool_size": scores.pool_sizes, "kept": scores.kept}
            result["per_example"] = {name: column.tolist() for name, column in columns.items()}
        return result
