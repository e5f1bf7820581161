"""Weighted ROUGE of reply suggestions, ROUGE-1/6 + ROUGE-2/3 + ROUGE-3/2 (F1), of each example's best suggestion, by
the rules of the official evaluation script of MRS (its scores where Punkt is installed) or by those of its paper.
"""

from typing import Any

import evaluate

from mrs_metrics.rouge import aggregate, score_examples
from mrs_metrics.significance import bootstrap_interval, interval_entries
from mrs_metrics.module import SuggestionsAndReferences
from mrs_metrics.tokenize import AUTO, found_tokenizer


class MrsRouge(SuggestionsAndReferences, evaluate.Metric):
    """
    Args:
        predictions: for each example the list of its suggestions, best first.
        references: for each example the real reply, or a list of several.
        language: BCP-47 code, selects the tokenizer; default `en`.
        rules: `official` (default): n-grams are counted as in the official script; or `paper`: clipped counts, no
            length limit, no split at dots.
        sentences: `punkt`: split texts into sentences, as the official script does; `auto` (default): if Punkt is
            found. Only then the scores equal those of the official script, and the signature has `rules:official`.
        punkt: folder of Punkt's parameters, in the layout of NLTK's punkt_tab; default: NLTK's, if installed.
        interval: also return the 95 % interval (studentised bootstrap) of `weighted`; default False.
        per_example: also return the scores of each example; default False.
    Returns:
        n: examples scored.
        rouge1, rouge2, rouge3, weighted: means over these examples (F1), 0 to 1.
        ceiling: what the references score against themselves; no system can do better.
        rouge1_precision, rouge1_recall, and so on: means, 0 to 1.
        empty_suggestions: suggestions that have nothing to score.
        skipped: examples left out, by reason.
        signature: how the score was computed, to be printed with it.
        per_example: on request, lists of one entry per scored example: `weighted`, `rouge1`, `rouge2`, `rouge3`, their
            precisions and recalls, `ceiling` (weighted), `chosen` (index of the best suggestion, -1 for none) and
                `kept`
            (index of the example).
    Examples:
        >>> metric = evaluate.load("mrs_rouge")
        >>> metric.compute(predictions=[["No.", "Yes!"]], references=["Yes!"])["weighted"]
        0.4999...
    """

    urls = ("https://arxiv.org/abs/2106.02017", "https://github.com/microsoft/MRS")

    def _compute(
        self, predictions: list[list[str]], references: list[list[str]], language: str = "en", rules: str = "official",
        per_example: bool = False, sentences: str = AUTO, punkt: str | None = None, interval: bool = False,
        units: list[object] | None = None,
    ) -> dict[str, object]:  # fmt: skip
        scores = score_examples(predictions, references, language, rules, found_tokenizer(language, sentences, punkt))
        result: dict[str, object] = {**aggregate(scores), "skipped": scores.skipped, "signature": scores.signature}
        if interval:
            result |= interval_entries(bootstrap_interval, scores.weighted, scores, units, len(predictions))
        if per_example:
            columns: dict[str, Any] = {"weighted": scores.weighted}
            for name, table in (("", scores.rouge), ("_precision", scores.precision), ("_recall", scores.recall)):
                columns |= {f"rouge{order}{name}": column for order, column in enumerate(table.T, start=1)}
            columns |= {"ceiling": scores.weighted_ceiling, "chosen": scores.chosen, "kept": scores.kept}
            result["per_example"] = {name: column.tolist() for name, column in columns.items()}
        return result
