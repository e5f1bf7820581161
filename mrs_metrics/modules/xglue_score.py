"""Scores of the eleven XGLUE tasks, 0 to 1: entity F1 (NER), accuracy of tags and the published precision of chunks
(POS), accuracy (NC, XNLI, PAWS-X, QADSM, QAM), F1 and exact match of answers (MLQA), nDCG (WPR), BLEU-4 (QG, NTG).
"""

from typing import Any

import datasets
import evaluate

from mrs_metrics.significance import interval_entries
from mrs_metrics.module import Lists
from mrs_metrics.xglue import aggregate, score_interval, score_task
from mrs_metrics.xglue_tasks import get_task

_CITATION = """\
@inproceedings{liang-etal-2020-xglue, author = "Liang, Yaobo and Duan, Nan and Gong, Yeyun and others", title =
"{XGLUE}: A New Benchmark Dataset for Cross-lingual Pre-training, Understanding and Generation", booktitle =
"Proceedings of EMNLP 2020", year = "2020"}
"""

# `evaluate` has no missing inputs: an unanswered question is stored as this text, which is not a possible answer.
_UNANSWERED = "\0"
_TEXT, _NUMBER = datasets.Value("string"), datasets.Value("float64")
_TEXTS = datasets.Sequence(_TEXT)


class XglueScore(Lists, evaluate.Metric):
    """
    Args:
        predictions: for each example its list of tags (NER, POS), its label, its answer (MLQA), a number that is higher
            for what is more relevant (WPR), or its text (QG, NTG).
        references: the same, but a list of right answers (MLQA), and a label 0 to 4 (WPR).
        task: NER, POS, NC, MLQA, XNLI, PAWSX, QADSM, WPR, QAM, QG or NTG.
        language: code; selects the rules of MLQA; default `en`.
        queries: the query of each page, for WPR only; pages of one query follow each other.
        rules: `paper` (default), or `official`: the score of POS is the published precision of chunks.
        interval: also return the 95 % interval (jackknife; exact for accuracies) of `score`; default False.
        per_example: also return the statistics of each example; default False.
    Returns:
        n: sentences, labels, questions, queries or texts scored.
        score: the task's own figure.
        f1, precision, recall (NER); accuracy, chunk_precision, chunk_recall, chunk_f1 (POS); accuracy; f1, exact_match
            (MLQA); ndcg; bleu, brevity_penalty: the figures by name, 0 to 1.
        notes: counts of anything unusual, such as labels `unknown` to the task.
        signature: how the score was computed, to be printed with it.
        per_example: on request, lists of one entry per scored example: the statistics by name, and `kept` (index of the
            example, for a query of its first page).
    Examples:
        >>> metric = evaluate.load("xglue_score")
        >>> tags = [["DET", "NOUN", "VERB"]], [["DET", "NOUN", "NOUN"]]
        >>> tagged = metric.compute(predictions=tags[0], references=tags[1], task="POS")
        >>> round(tagged["accuracy"], 4), round(tagged["chunk_precision"], 4)
        (0.6667, 0.3333)
    """

    citation = _CITATION
    urls = ("https://arxiv.org/abs/2004.01401", "https://github.com/microsoft/XGLUE")
    # Answers; tags; labels and texts; relevance, or labels that are numbers.
    inputs = tuple(
        datasets.Features({"predictions": ours, "references": theirs})
        for ours, theirs in ((_TEXT, _TEXTS), (_TEXTS, _TEXTS), (_TEXT, _TEXT), (_NUMBER, _NUMBER))
    )

    def checked(self, predictions: Any, references: Any) -> tuple[Any, Any]:
        """Take None for an answer, too."""
        if isinstance(predictions, (list, tuple)) and not any(isinstance(entry, (int, float)) for entry in predictions):
            predictions = [_UNANSWERED if entry is None else entry for entry in predictions]
        return super().checked(predictions, references)

    def _compute(
        self,
        predictions: list[object],
        references: list[object],
        task: str = "",
        language: str = "en",
        queries: list[str] | None = None,
        rules: str = "paper",
        interval: bool = False,
        units: list[object] | None = None,
        per_example: bool = False,
    ) -> dict[str, object]:
        predictions = [None if entry == _UNANSWERED else entry for entry in predictions]
        if get_task(task).kind == "label":  # a class number comes here as 1.0
            predictions, references = (
                [f"{label:g}" if isinstance(label, float) else label for label in labels]
                for labels in (predictions, references)
            )
        scores = score_task(task, predictions, references, language, queries, rules)
        result: dict[str, object] = {**aggregate(scores), "notes": scores.notes, "signature": scores.signature}
        if interval:
            result |= interval_entries(score_interval, scores, scores, units, len(predictions))
        if per_example:
            columns = dict(zip(scores.columns, scores.statistics.T.tolist(), strict=True))
            result["per_example"] = {**columns, "kept": scores.kept.tolist()}
        return result
