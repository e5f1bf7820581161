"""Simulated clicks: the share of messages at which somebody who wants to send the reference would click one of the
suggestions and edit it, and the share of typing that this saves.
"""

import evaluate

from mrs_metrics.clicks import EDITS, aggregate, score_clicks
from mrs_metrics.significance import bootstrap_interval, interval_entries
from mrs_metrics.module import SuggestionsAndReferences


class SimulatedClicks(SuggestionsAndReferences, evaluate.Metric):
    """
    Args:
        predictions: for each example the list of its suggestions, in the order in which they are shown.
        references: for each example the reply that was sent, or several of them.
        edits: the share of the reference's characters that a person is ready to edit; default 0.5.
        interval: also return the 95 % interval of `clicked`; default False.
        per_example: also return the outcome of each example; default False.
    Returns:
        n: examples with a reference.
        clicked: share of the examples at which a suggestion is clicked, 0 to 1.
        first: share at which the first suggestion is clicked.
        exact: share at which a suggestion is sent as it stands.
        saved: share of all characters that clicks save.
        skipped: examples left out, by reason.
        signature: how the figures were computed, to be printed with them.
        per_example: on request, lists of one entry per scored example: `place` (index of the clicked suggestion, -1 for
            none), `saved` (characters), `length` (of the reference) and `kept` (index of the example).
    Examples:
        >>> metric = evaluate.load("simulated_clicks")
        >>> metric.compute(predictions=[["No.", "Yes, sure!"]], references=["yes sure"])["saved"]
        0.75
    """

    def _compute(
        self,
        predictions: list[list[str]],
        references: list[list[str]],
        edits: float = EDITS,
        interval: bool = False,
        units: list[object] | None = None,
        per_example: bool = False,
    ) -> dict[str, object]:
        scores = score_clicks(predictions, references, edits)
        result: dict[str, object] = {**aggregate(scores), "skipped": scores.skipped, "signature": scores.signature}
        if interval:
            result |= interval_entries(bootstrap_interval, scores.clicked, scores, units, len(predictions))
        if per_example:
            columns = {name: getattr(scores, name).tolist() for name in ("place", "saved", "length", "kept")}
            result["per_example"] = columns
        return result
