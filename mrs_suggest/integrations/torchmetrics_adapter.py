"""The metrics as classes of torchmetrics, for Lightning and other loops, with the extra `torchmetrics`.

Each calls the functions of `mrs_metrics` that the `evaluate` module of the same name calls, with the same arguments, so
that their figures are equal to the last digit; across processes, too, where `update` gets the numbers of the examples.
Further arguments are torchmetrics' own, such as `process_group`.

The figures of a whole test set are not sums over batches (Dist-n counts n-grams of all texts, a signature has the
largest number of suggestions), and a sum of floats depends on its order. So `update` keeps the examples; `compute`
brings those of all processes together, in order, and passes them to `mrs_metrics`.
"""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch

from mrs_metrics import ranking, rouge, translations_f1
from mrs_metrics.distinct import distinct_n, distinct_signature
from mrs_metrics.signature import Reference, as_lists, check_lists, check_suggestions
from mrs_metrics.tokenize import get_tokenizer
from mrs_suggest.common.errors import MissingExtraError

try:
    from torchmetrics import Metric
except ImportError as error:
    if (error.name or "").split(".")[0] != "torchmetrics":
        raise
    raise MissingExtraError("torchmetrics", "torchmetrics", "a metric of torchmetrics") from None

Indices = Sequence[int] | torch.Tensor


class ExamplesMetric(Metric):
    """Base of the adapters.

    Attributes:
        records: the state: lines of JSON as bytes, one line for each example, which is all that processes exchange.
        signature: how the last figures were computed; empty before `compute`.
        skipped: examples that the last figures leave out, by reason.
    """

    is_differentiable = False
    higher_is_better = True
    full_state_update = False  # a batch's examples do not depend on those before it
    records: list[torch.Tensor]

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("records", default=[], dist_reduce_fx="cat")
        self.signature = ""
        self.skipped: dict[str, int] = {}

    def sync(self, *args: Any, **kwargs: Any) -> None:
        """Bring the examples of all processes together; one of them may have had none."""
        if not self.records:
            self.records = [_as_bytes([], self.device)]
        super().sync(*args, **kwargs)

    def compute(self) -> dict[str, torch.Tensor]:
        """The figures of all examples so far: float64, counts as int64; ValueError without examples."""
        examples = self._examples()
        if not examples:
            raise ValueError(f"{type(self).__name__} has no example to score; call update() first.")
        found = self.figures(examples)
        types = {name: torch.int64 if isinstance(value, int) else torch.float64 for name, value in found.items()}
        return {name: torch.tensor(value, dtype=types[name], device=self.device) for name, value in found.items()}

    @abstractmethod
    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """The figures of the examples that `keep` got; sets `signature` and `skipped`."""

    def keep(self, examples: Sequence[Any], indices: Indices | None) -> None:
        """Add examples, each anything that JSON can hold, and their numbers in the data set."""
        numbers = _numbers(indices, len(examples))
        if examples:
            self.records.append(_as_bytes(list(zip(numbers, examples, strict=True)), self.device))

    def _examples(self) -> list[Any]:
        """The examples in the order of their indices, each index once; without indices as they came, rank by rank."""
        parts = self.records if isinstance(self.records, list) else [self.records]  # one tensor after a sync
        lines = b"".join(bytes(part.cpu().numpy().tobytes()) for part in parts).splitlines()
        records = [json.loads(line) for line in lines]
        without = sum(number is None for number, _ in records)
        if without == len(records):
            return [example for _, example in records]
        if without:
            raise ValueError(
                f"{without} of {len(records)} examples came without indices: pass indices to each update(), or to none."
            )
        return [example for _, example in sorted(dict(records).items())]


def _as_bytes(records: list[tuple[int | None, Any]], device: torch.device) -> torch.Tensor:
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    return torch.from_numpy(np.frombuffer(text.encode("ascii"), dtype=np.uint8).copy()).to(device)


def _numbers(indices: Indices | None, n: int) -> list[int | None]:
    if indices is None:
        return [None] * n
    numbers = indices.tolist() if isinstance(indices, torch.Tensor) else list(indices)
    if len(numbers) != n:
        raise ValueError(f"There must be one index for each example, but there are {len(numbers)} for {n} examples.")
    wrong = [number for number in numbers if isinstance(number, bool) or not isinstance(number, int) or number < 0]
    if wrong:
        raise ValueError(f"An index is the example's number in the data set, from 0, not {wrong[0]!r}.")
    return numbers


class MrsRouge(ExamplesMetric):
    """Weighted ROUGE of each example's best suggestion (`mrs_metrics.rouge`).

    `compute` returns what `mrs_metrics.rouge.aggregate` returns: `n`, `weighted`, `rouge1`, `ceiling` and so on.

    >>> metric = MrsRouge()
    >>> metric.update([["No.", "Yes!"]], ["Yes!"])
    >>> round(metric.compute()["weighted"].item(), 4)
    0.5
    """

    def __init__(
        self,
        language: str = "en",
        rules: str = "official",
        sentences: str = "no",
        punkt: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self._options = (language, sentences, punkt)
        self._rules = rules
        rouge.score_examples([], [], language, rules, get_tokenizer(*self._options))  # refuses unknown options

    def update(
        self, predictions: Sequence[Sequence[str]], references: Sequence[Reference], indices: Indices | None = None
    ) -> None:
        """Add examples.

        Args:
            predictions: for each example its suggestions, best first.
            references: for each example the real reply, or a list of several.
            indices: for each example its number in the data set; needed for the same figures from several processes as
                from one, since samplers give each an interleaved part and repeat examples to fill the last batch.

        Raises:
            ValueError: the lists differ in length, or an entry has the wrong type.
        """
        check_suggestions(predictions, references, required=True)
        rows = [[list(texts), reference] for texts, reference in zip(predictions, as_lists(references), strict=True)]
        self.keep(rows, indices)

    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """Means over the examples."""
        predictions, references = [row[0] for row in examples], [row[1] for row in examples]
        tokenizer = get_tokenizer(*self._options)
        scores = rouge.score_examples(predictions, references, self._options[0], self._rules, tokenizer)
        self.signature, self.skipped = scores.signature, scores.skipped
        return rouge.aggregate(scores)


class DistN(ExamplesMetric):
    """Dist-n of suggestions (`mrs_metrics.distinct`).

    `compute` returns `dist1`, `dist2`, one for each order, and `n`, the suggestions counted.

    >>> metric = DistN()
    >>> metric.update([["i do"], ["i do not"]])
    >>> metric.compute()["dist1"].item()
    0.6
    """

    def __init__(
        self,
        language: str = "en",
        n: Sequence[int] = (1, 2),
        chosen: str = "all",
        denominator: str = "tokens",
        level: str = "corpus",
        sentences: str = "no",
        punkt: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if chosen not in ("all", "best"):
            raise ValueError(f"The suggestions chosen for Dist-n must be 'all' or 'best', not {chosen!r}.")
        self._options = (language, sentences, punkt)
        self._orders, self._chosen, self._denominator, self._level = tuple(n), chosen, denominator, level
        get_tokenizer(*self._options)  # refuses unknown options
        for order in self._orders:
            distinct_n([], order, denominator, level)

    def update(
        self,
        predictions: Sequence[Sequence[str]],
        references: Sequence[Reference] | None = None,
        indices: Indices | None = None,
    ) -> None:
        """Add examples; arguments and errors as in `MrsRouge.update`. References only count for `chosen="best"`."""
        check_suggestions(predictions, references, required=self._chosen == "best")
        texts = as_lists(references) if references is not None and self._chosen == "best" else [[]] * len(predictions)
        self.keep([[list(row), own] for row, own in zip(predictions, texts, strict=True)], indices)

    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """Of the chosen suggestions of all examples."""
        language, tokenizer = self._options[0], get_tokenizer(*self._options)
        predictions, references = [row[0] for row in examples], [row[1] for row in examples]
        if self._chosen == "best":
            scores = rouge.score_examples(predictions, references, language, tokenizer=tokenizer)
            tokens, self.skipped = scores.chosen_tokens, scores.skipped
        else:
            tokens = [rouge.prepare_official(text, tokenizer).tokens for texts in predictions for text in texts]
        self.signature = distinct_signature(
            max(map(len, predictions), default=0), tokenizer, language, self._chosen, self._denominator, self._level
        )
        dist = {f"dist{order}": distinct_n(tokens, order, self._denominator, self._level) for order in self._orders}
        return {"n": len(tokens), **dist}


class ResponseRanking(ExamplesMetric):
    """MRR, precision at k and macro-MRR (`mrs_metrics.ranking`); equal scores count against the system.

    `compute` returns what `mrs_metrics.ranking.aggregate` returns: `n`, `mrr`, `p@1` and so on.

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
        ranking.aggregate(self._score([[1.0]], [0], None), k)  # refuses unknown options

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
                [bool(target != ranking.ABSENT), None if replies is None else replies[number], ranked.get(number)]
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
        scores = ranking.RankingScores(
            ranks=columns[:, 0].astype(np.int64),
            reciprocal_ranks=columns[:, 1],
            pool_sizes=sizes,
            replies=np.array(groups, dtype=np.int64) if groups else None,
            kept=np.array([number for number, _, _ in kept], dtype=np.int64),
            skipped={ranking.REPLY_ABSENT: len(examples) - len(kept)},
            signature=ranking.ranking_signature(
                pool=None if self._pool is None else int(sizes.max(initial=0)) or self._pool,
                of=self._of,
                seed=self._seed,
                absent=None if everything_present else self._missing,
                language=self._language,
            ),
        )
        self.signature, self.skipped = scores.signature, scores.skipped
        return ranking.aggregate(scores, self._k)

    def _score(self, rows: Any, targets: Sequence[int], replies: Sequence[str] | None) -> ranking.RankingScores:
        return ranking.score_rankings(
            rows, targets, replies, self._pool, self._seed, self._missing, self._of, self._language
        )


class WeightedF1(ExamplesMetric):
    """Weighted macro F1 and its relatives (`mrs_metrics.translations_f1`).

    `compute` returns what `mrs_metrics.translations_f1.aggregate` returns: `weighted_macro_f1`, `n` and so on.

    >>> metric = WeightedF1()
    >>> accepted = [{"text": "Sim, claro.", "weight": 0.75}, {"text": "Sim!", "weight": 0.25}]
    >>> metric.update([["sim claro", "não"]], [accepted])
    >>> metric.compute()["weighted_macro_f1"].item()
    0.6
    """

    def __init__(self, rules: str = "paper", **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._rules = rules
        translations_f1.weighted_f1_signature(rules)  # refuses unknown rules

    def update(
        self,
        predictions: Sequence[Sequence[str]],
        references: Sequence[Sequence[translations_f1.Translation]],
        indices: Indices | None = None,
    ) -> None:
        """Add prompts.

        Args:
            references: for each prompt its accepted ones, `{"text": ..., "weight": ...}`; a prompt without any is not
                scored.
            indices: as in `MrsRouge.update`.

        Raises:
            ValueError: the lists differ in length, or an entry has the wrong type.
        """
        check_lists(predictions, references, required=True)
        if len(predictions) != len(references):
            raise ValueError(
                "Predictions and references must have one entry for each prompt, "
                f"but there are {len(predictions)} predictions and {len(references)} references."
            )
        prompts: list[Any] = [[texts, accepted] for texts, accepted in zip(predictions, references, strict=True)]
        if any(len(accepted) for accepted in references):
            _score(prompts, "paper")  # refuses entries of the wrong type; the official rules need the prompts before
        as_json = [
            [list(texts), [{"text": entry["text"], "weight": float(entry["weight"])} for entry in accepted]]
            for texts, accepted in prompts
        ]
        self.keep(as_json, indices)

    def figures(self, examples: list[Any]) -> Mapping[str, float]:
        """Over all prompts."""
        scores = _score(examples, self._rules)
        self.signature = scores.signature
        return translations_f1.aggregate(scores)


def _score(prompts: Sequence[Any], rules: str) -> Any:
    rows: list[translations_f1.Row] = [
        {"id": str(number), "translations": accepted} for number, (_, accepted) in enumerate(prompts) if accepted
    ]
    return translations_f1.score_translations(
        rows, {str(number): texts for number, (texts, _) in enumerate(prompts)}, rules
    )
