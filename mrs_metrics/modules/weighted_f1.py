"""Weighted F1 of sets of translations: precision counts the predicted translations that are accepted, recall the weight
of the accepted ones that are predicted. The main figure is its mean over the prompts, `weighted_macro_f1`.
"""

import datasets
import evaluate

from mrs_metrics.significance import bootstrap_interval, interval_entries
from mrs_metrics.module import Lists
from mrs_metrics.translations_f1 import Row, Translation, aggregate, score_translations

_CITATION = """\
@inproceedings{mayhew-etal-2020-simultaneous, year = "2020", author = "Mayhew, Stephen and Bicknell, Klinton and Brust,
Chris and McDowell, Bill and Monroe, Will and Settles, Burr", title = "Simultaneous Translation and Paraphrase for
Language Education", booktitle = "Proceedings of the Fourth Workshop on Neural Generation and Translation"}
"""


class WeightedF1(Lists, evaluate.Metric):
    """
    Args:
        predictions: for each prompt the list of its predicted translations, which may be empty.
        references: for each prompt the list of its accepted translations, each {"text": ..., "weight": ...}; empty if
            the prompt is not in the data: then its predictions are not scored.
        rules: `paper` (default) or `official`, which gives what the task's official scorer prints.
        interval: also return the 95 % interval (studentised bootstrap) of `weighted_macro_f1`; default False.
        per_prompt: also return the scores of each prompt; default False.
    Returns:
        n: prompts scored.
        missing: those of them without predictions.
        extra: prompts without accepted translations, which are not scored.
        precision, recall, weighted_recall: over the translations of all prompts, 0 to 1.
        micro_f1, weighted_micro_f1: from these.
        macro_f1, weighted_macro_f1: means over the prompts.
        signature: how the figures were computed, to be printed with them.
        per_prompt: on request, lists of one entry per scored prompt: `precision`, `recall`, `weighted_recall`, `f1`,
            `weighted_f1` and `kept` (index of the prompt); and `missing` and `extra`, the indices of those.
    Examples:
        >>> metric = evaluate.load("weighted_f1")
        >>> accepted = [{"text": "Sim, claro.", "weight": 0.75}, {"text": "Sim!", "weight": 0.25}]
        >>> metric.compute(predictions=[["sim claro", "não"]], references=[accepted])["weighted_macro_f1"]
        0.6
    """

    citation = _CITATION
    urls = ("https://aclanthology.org/2020.ngt-1.28", "https://sharedtask.duolingo.com/2020")
    inputs = datasets.Features(
        {
            "predictions": datasets.Sequence(datasets.Value("string")),
            "references": [{"text": datasets.Value("string"), "weight": datasets.Value("float64")}],
        }
    )

    def _compute(
        self,
        predictions: list[list[str]],
        references: list[list[Translation]],
        rules: str = "paper",
        interval: bool = False,
        units: list[object] | None = None,
        per_prompt: bool = False,
    ) -> dict[str, object]:
        # `evaluate` has no ids: a prompt is identified by its number
        rows: list[Row] = [
            {"id": str(n), "translations": accepted} for n, accepted in enumerate(references) if accepted
        ]
        scores = score_translations(rows, {str(n): texts for n, texts in enumerate(predictions)}, rules)
        result: dict[str, object] = {**aggregate(scores), "signature": scores.signature}
        if interval:
            kept = map(int, scores.ids)
            result |= interval_entries(bootstrap_interval, scores.weighted_f1, scores, units, len(predictions), kept)
        if per_prompt:
            names = ("precision", "recall", "weighted_recall", "f1", "weighted_f1")
            result["per_prompt"] = {
                **{name: getattr(scores, name).tolist() for name in names},
                "kept": [int(number) for number in scores.ids],
                "missing": [int(number) for number in scores.missing],
                "extra": sorted(int(number) for number in scores.extra),
            }
        return result
