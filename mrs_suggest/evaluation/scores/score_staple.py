"""Weighted F1 of STAPLE's files, without building records: the fast way to score a prediction file."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from mrs_datasets.readers.staple.staple_files import read_task_file
from mrs_datasets.readers.staple.staple_official import read_official_file
from mrs_metrics.translations_f1 import Row, Tally, WeightedF1Scores, merge_equal, read_texts, weighted_f1_signature
from mrs_suggest.common.errors import metric_errors


def score_files(
    gold: str | Path, predictions: str | Path, rules: str = "paper", warn: Callable[[str], None] | None = None
) -> WeightedF1Scores:
    """Score a prediction file of the task against its gold file.

    Args:
        gold: the file of the accepted translations and their weights.
        predictions: the file of the predicted translations; a prompt may be missing or empty.
        rules: `paper` or `official`, see `mrs_metrics.translations_f1`. The paper's refuse a file that is not in the
            task's format; the official ones read it as the official scorer does, see
            `mrs_datasets.readers.staple.staple_official`.
        warn: gets a sentence, with file and line, for each kind of irregularity that the official rules accept;
            `warnings.warn` if None.

    Returns:
        what `score_translations` gives for the same content, to the last bit.

    Raises:
        InputError: the rules are unknown, a file cannot be read, holds no prompt or is not in the task's format (file,
            line and what was expected), or (official) the scorer would fail, as when the first prompt
            has no prediction.
    """
    with metric_errors(str(predictions)):
        weighted_f1_signature(rules)  # unknown rules are refused before anything is read
        official = partial(read_official_file, warn=warn or warnings.warn)
        read = official if rules == "official" else read_task_file
        accepted = read(gold, weighted=True)
        predicted = read(predictions, weighted=False)
        accepted_texts = read_texts(accepted.texts, rules, accepted=True)
        predicted_texts = read_texts(predicted.texts, rules)
        where = dict(zip(predicted.ids, pairwise(predicted.bounds), strict=True))
        tally = Tally(rules)
        for prompt_id, (start, end) in zip(accepted.ids, pairwise(accepted.bounds), strict=True):
            first, last = where.get(prompt_id, (0, 0))
            right = merge_equal(accepted_texts[start:end], accepted.weights[start:end], rules)
            tally.add(prompt_id, right, set(predicted_texts[first:last]))
        return tally.scores(predicted.ids)


class Accepted:
    """The accepted translations of prompts, read once, to score many systems by the paper's rules.

    Args:
        rows: `id` and `translations`, of each one at least.
    """

    def __init__(self, rows: Iterable[Row]) -> None:
        kept = [(row["id"], row["translations"]) for row in rows]
        texts = iter(read_texts([one["text"] for _, entries in kept for one in entries], "paper", accepted=True))
        self._accepted = {
            key: merge_equal([next(texts) for _ in entries], [float(one["weight"]) for one in entries], "paper")
            for key, entries in kept
        }

    def score(self, predictions: Mapping[str, Sequence[str]]) -> WeightedF1Scores:
        """The result of `score_translations` for predictions, id -> translations."""
        tally = Tally("paper")
        for key, accepted in self._accepted.items():
            tally.add(key, accepted, set(read_texts(list(predictions.get(key, ())))))
        return tally.scores(predictions)
