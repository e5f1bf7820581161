"""Ranking of the real reply among candidates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from mrs_metrics.ranking import ABSENT, REPLY_ABSENT, RankingScores, aggregate, ranking_signature, score_rankings

from .examples import ExamplesMetric, Indices


class ResponseRanking(ExamplesMetric):
    """MRR, precision at k and macro-MRR (`mrs_metrics.ranking`); equal scores count against the system.

    Args:
        k: the k of precision at k, or several.
        pool: rank in random pools of this many of an example's candidates, the real reply included; None: all of them.
        seed: of the pools.
        missing_reference: `skip` leaves examples without their reply among the candidates out, `zero` gives them the
            reciprocal rank 0.
        of: what the candidates are, for the signature.
        language: of the texts, for the signature.
        kwargs: torchmetrics' own, such as `process_group`.

    `compute` returns what `mrs_metrics.ranking.aggregate` returns: `n`, `mrr`, `p@1` and so on.

    Raises:
        ValueError: an option is unknown.

    >>> metric = ResponseRanking()
    >>> metric.update([[-0.1, -2.0, -0.5], [0.3, 0.3]], [0, 1])
    >>> metric.compute()["mrr"].item()
    0.75
    """

    def __init__(
        self,
        k: int | Sequence[int] = 1,
        pool: int | None = None,
        seed: int = 0,
        missing_reference: str = "skip",
        of: str = "candidates",
        language: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._k, self._pool, self._seed, self._missing = k, pool, seed, missing_reference
        self._of, self._language = of, language
        aggregate(self._score([[1.0]], [0], None), k)  # refuses unknown options

    def update(
        self,
        predictions: Sequence[Sequence[float]] | torch.Tensor,
        references: Sequence[int] | torch.Tensor,
        replies: Sequence[str] | None = None,
        indices: Indices | None = None,
    ) -> None:
        """Add examples; only their ranks are kept.

        Args:
            predictions: for each example a score for each of its candidates, higher is better; or (n, candidates).
            references: (n,) for each example the index of the real reply among them, -1 if it is not there.
            replies: for each example the real reply, for the macro-MRR.
            indices: as in `MrsRouge.update`.

        Raises:
            ValueError: lengths differ, scores are not numbers or NaN, or a reference is out of range.
        """
        rows = predictions.detach().cpu().numpy() if isinstance(predictions, torch.Tensor) else predictions
        targets = references.tolist() if isinstance(references, torch.Tensor) else list(references)
        scores = self._score(rows, targets, replies)
        found = zip(
            scores.kept.tolist(),
            scores.ranks.tolist(),
            scores.reciprocal_ranks.tolist(),
            scores.pool_sizes.tolist(),
            strict=True,
        )
        ranked = {number: [*figures] for number, *figures in found}
        self.keep(
            [
                [bool(target != ABSENT), None if replies is None else replies[number], ranked.get(number)]
                for number, target in enumerate(targets)
            ],
            indices,
        )

    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """Means over the examples."""
        kept = [(number, reply, ranked) for number, (_, reply, ranked) in enumerate(examples) if ranked]
        columns = np.array([ranked for _, _, ranked in kept], dtype=np.float64).reshape(-1, 3)
        sizes = columns[:, 2].astype(np.int64)
        numbers: dict[str, int] = {}
        groups = [numbers.setdefault(reply, len(numbers)) for _, reply, _ in kept if reply is not None]
        if groups and len(groups) < len(kept):
            raise ValueError("Replies must come with each update() or with none: the macro-MRR is over all examples.")
        everything_present = all(present for present, _, _ in examples)
        scores = RankingScores(
            ranks=columns[:, 0].astype(np.int64),
            reciprocal_ranks=columns[:, 1],
            pool_sizes=sizes,
            replies=np.array(groups, dtype=np.int64) if groups else None,
            kept=np.array([number for number, _, _ in kept], dtype=np.int64),
            skipped={REPLY_ABSENT: len(examples) - len(kept)},
            signature=ranking_signature(
                pool=None if self._pool is None else int(sizes.max(initial=0)) or self._pool,
                of=self._of,
                seed=self._seed,
                absent=None if everything_present else self._missing,
                language=self._language,
            ),
        )
        self.signature, self.skipped = scores.signature, scores.skipped
        return aggregate(scores, self._k)

    def _score(self, rows: Any, targets: Sequence[int], replies: Sequence[str] | None) -> RankingScores:
        return score_rankings(rows, targets, replies, self._pool, self._seed, self._missing, self._of, self._language)
