"""The page of the Space `weighted_f1`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType


from mrs_metrics.page import Box, Figures, LoadedMetric, Page, make_form, serve


def read_accepted(text: str) -> list[Figures]:
    """Return the translations of lines `translation|weight`.

    Raises:
        ValueError: there is no line, or one does not end with a weight.
    """
    accepted = []
    for line in filter(None, map(str.strip, text.splitlines())):
        translation, _, weight = line.rpartition("|")
        try:
            accepted.append({"text": translation, "weight": float(weight)})
        except ValueError:
            raise ValueError(f"Each accepted translation must be text|weight, not {line!r:.80}.") from None
    if not accepted:
        raise ValueError("Type at least one accepted translation with its weight.")
    return accepted


def score(metric: LoadedMetric, predicted: str, accepted: str, rules: str) -> Figures:
    """Return the figures of this one prompt.

    Raises:
        ValueError: the accepted translations cannot be read, or there is nothing to score.
    """
    texts = [line for line in map(str.strip, predicted.splitlines()) if line]
    result = metric.compute(predictions=[texts], references=[read_accepted(accepted)], rules=rules)
    figures = {"weighted_f1": result["weighted_macro_f1"], "f1": result["macro_f1"]}
    names = ("precision", "recall", "weighted_recall", "signature")
    return {**figures, **{name: result[name] for name in names}}


def boxes(gradio: ModuleType) -> list[Box]:
    """The inputs of the page."""
    return [
        gradio.Textbox(label="Predicted translations, one per line", lines=4, elem_id="predicted"),
        gradio.Textbox(label="Accepted translations, text|weight, one per line", lines=4, elem_id="accepted"),
        gradio.Dropdown(["paper", "official"], value="paper", label="Rules", elem_id="rules"),
    ]


def page() -> Page:
    """Return the `gradio.Interface`."""
    return make_form(
        Path(__file__).resolve().with_name("weighted_f1.py"),
        score,
        boxes,
        title="Weighted F1 of translations",
        description="How many of the predicted translations of a prompt are accepted ones (precision), and how much of "
        "the learners' weight do these cover (weighted recall)? Their harmonic mean, from 0 to 1, is STAPLE's score.",
        examples=[["sim, claro\nclaro", "Sim, claro.|0.6\nSim!|0.3\nClaro que sim!|0.1", "paper"]],
    )


if __name__ == "__main__":
    serve(page())
