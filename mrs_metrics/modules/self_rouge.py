"""Self-ROUGE, how similar the suggestions of one message are: weighted ROUGE of each pair, averaged over the pairs,
then over the messages. Low is diverse.
"""

import evaluate

from mrs_metrics.similarity import aggregate, score_similarity
from mrs_metrics.significance import bootstrap_interval, interval_entries
from mrs_metrics.module import Suggestions
from mrs_metrics.tokenize import AUTO, found_tokenizer


class SelfRouge(Suggestions, evaluate.Metric):
    """
    Args:
        predictions: for each example the list of its suggestions.
        language: BCP-47 code, selects the tokenizer; default `en`.
        interval: also return the 95 % interval (studentised bootstrap) of `normalised`; default False.
        per_example: also return the scores of each example; default False.
        sentences: `punkt`: split texts into sentences, as MRS's script does; `auto` (default): if Punkt is found.
        punkt: folder of Punkt's parameters, in the layout of NLTK's punkt_tab; default: NLTK's, if installed.
    Returns:
        n: examples with two or more suggestions.
        self_rouge: mean weighted ROUGE, 0 to 1, where equal texts of one token reach 1/6, of two tokens 1/2.
        normalised: the same relative to what equal texts reach, 0 (nothing in common) to 1 (the same n-grams).
        empty: suggestions without a token, or of dots only.
        skipped: examples left out, by reason.
        signature: how the figures were computed, to be printed with them.
        per_example: on request, lists of one entry per scored example: `self_rouge`, `normalised` and `kept` (index of
            the example).
    Examples:
        >>> metric = evaluate.load("self_rouge")
        >>> round(metric.compute(predictions=[["Thanks!", "thanks!", "Thanks!"]])["normalised"], 4)
        1.0
    """

    urls = ("https://arxiv.org/abs/2106.02017", "https://arxiv.org/abs/1802.01886")

    def _compute(
        self,
        predictions: list[list[str]],
        language: str = "en",
        interval: bool = False,
        units: list[object] | None = None,
        per_example: bool = False,
        sentences: str = AUTO,
        punkt: str | None = None,
    ) -> dict[str, object]:
        scores = score_similarity(predictions, language, found_tokenizer(language, sentences, punkt))
        result: dict[str, object] = {**aggregate(scores), "skipped": scores.skipped, "signature": scores.signature}
        if interval:
            result |= interval_entries(bootstrap_interval, scores.normalised, scores, units, len(predictions))
        if per_example:
            columns = {"self_rouge": scores.weighted, "normalised": scores.normalised, "kept": scores.kept}
            result["per_example"] = {name: column.tolist() for name, column in columns.items()}
        return result
