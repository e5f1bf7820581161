"""Share of suggested replies that are not in the language of their message, among those whose language is known."""

from pathlib import Path

import evaluate

from mrs_metrics.language_match import (
    MIN_LETTERS,
    THRESHOLD,
    Identify,
    aggregate,
    fasttext_identifier,
    language_interval,
    score_languages,
)
from mrs_metrics.significance import interval_entries
from mrs_metrics.module import Suggestions


class WrongLanguage(Suggestions, evaluate.Metric):
    """
    Args:
        predictions: for each example the list of its suggestions.
        language: BCP-47 code of the messages: one for all, or a list with one for each example; default `en`.
        language_model: path to a fastText language identification model, such as lid.176.ftz.
        identify: instead, a function from texts to (code, probability) of each.
        identifier: name of that function, for the signature.
        threshold: probability above which a verdict counts; default .7.
        min_letters: letters that a text needs to be identified; default 6.
        interval: also return the 95 % interval (studentised bootstrap) of `wrong`, resampling messages; default False.
        per_suggestion: also return the verdict on each suggestion; default False.
    Returns:
        n: suggestions.
        wrong: share of the decided ones that are in another language, 0 to 1.
        any_wrong: share of messages with a wrong suggestion, among those with a decided one.
        undecided, too_short: shares of all suggestions that count neither as wrong nor as right.
        decided, messages: the numbers that `wrong` and `any_wrong` are shares of.
        empty: suggestions without a visible character, which are among the too short.
        signature: how the figures were computed, to be printed with them.
        per_suggestion: on request, lists of one entry per suggestion: `example` (index), `identified` (code, `und` for
            none) and `wrong`.
    Examples:
        >>> metric = evaluate.load("wrong_language")
        >>> answer = lambda texts: [("en", 0.9) for text in texts]
        >>> metric.compute(predictions=[["See you tomorrow!", "Ok"]], language="de", identify=answer)["wrong"]
        1.0
    """

    urls = ("https://arxiv.org/abs/2106.02017",)

    def _compute(
        self,
        predictions: list[list[str]],
        language: str | list[str] = "en",
        language_model: str | None = None,
        identify: Identify | None = None,
        identifier: str | None = None,
        threshold: float = THRESHOLD,
        min_letters: int = MIN_LETTERS,
        interval: bool = False,
        units: list[object] | None = None,
        per_suggestion: bool = False,
    ) -> dict[str, object]:
        if language_model is not None and identify is None:
            identify, identifier = fasttext_identifier(language_model), identifier or Path(language_model).name
        elif language_model is not None or identify is None:
            raise ValueError("Give either `language_model`, the path to a fastText model, or a function `identify`.")
        scores = score_languages(predictions, language, identify, threshold, min_letters, identifier)
        result: dict[str, object] = {**aggregate(scores), "signature": scores.signature}
        if interval:
            result |= interval_entries(language_interval, scores, scores, units, len(predictions))
        if per_suggestion:
            result["per_suggestion"] = {
                "example": scores.example.tolist(),
                "identified": list(scores.identified),
                "wrong": scores.wrong.tolist(),
            }
        return result
