"""The page of the Space `reply_perplexity`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType


from mrs_metrics.page import Box, Figures, LoadedMetric, Page, make_form, serve


def read_losses(text: str) -> list[list[float]]:
    """Return the losses of each line.

    Raises:
        ValueError: there is no line, or it contains something that is not a number.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines:
        raise ValueError("Type the losses of at least one reply.")
    try:
        return [[float(word) for word in line] for line in lines]
    except ValueError as error:
        raise ValueError(f"The losses must be numbers separated by white space: {error}.") from error


def score(metric: LoadedMetric, losses: str) -> Figures:
    """Return the figures of the replies.

    Raises:
        ValueError: the losses cannot be read.
    """
    figures: Figures = metric.compute(predictions=read_losses(losses))
    return figures


def boxes(gradio: ModuleType) -> list[Box]:
    """The inputs of the page."""
    return [
        gradio.Textbox(label="Losses of the tokens in nats, one reply per line", lines=3, elem_id="losses"),
    ]


def page() -> Page:
    """Return the `gradio.Interface`."""
    return make_form(
        Path(__file__).resolve().with_name("reply_perplexity.py"),
        score,
        boxes,
        title="Perplexity of real replies",
        description="How surprised is a model by the replies that were really given? exp of the mean loss over all "
        "tokens: 1 for a model that knows each token, V for one that guesses among V.",
        examples=[["0.693147 1.386294 0.693147\n2.079442"]],
    )


if __name__ == "__main__":
    serve(page())
