"""The check that metrics of suggestion lists share: each example has a list of texts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def check_suggestions(predictions: Sequence[Sequence[str]], references: Sequence[str] | None = None) -> None:
    """Refuse what is not a list of suggestions for each example and, where references are given, one text for each.

    Raises:
        ValueError: the two differ in length, or an entry has the wrong type.

    >>> check_suggestions([["Yes!", "No."], []], ["Yes", "Bye"])
    """
    if isinstance(predictions, str) or isinstance(references, str):
        raise ValueError("Predictions and references must be lists with one entry for each example, not one text.")
    if references is not None and len(predictions) != len(references):
        raise ValueError(
            "Predictions and references must have one entry for each example, "
            f"but there are {len(predictions)} predictions and {len(references)} references."
        )
    for index, reference in enumerate(references or ()):
        if not isinstance(reference, str):
            raise ValueError(f"The reference of example {index} must be a text, not {type(reference).__name__}.")
    for index, texts in enumerate(predictions):
        listed = isinstance(texts, Iterable) and not isinstance(texts, str)
        if not listed or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"The predictions of example {index} must be a list of texts, not {texts!r:.80}.")
