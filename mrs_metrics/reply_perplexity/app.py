"""The page of the Space `reply_perplexity`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mrs_metrics.page import serve


def read_losses(text: str) -> list[list[float]]:
    """Return the losses of each line.

    Raises:
        ValueError: there is no line, or something in it is no number.
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    if not lines:
        raise ValueError("Type the losses of at least one reply.")
    try:
        return [[float(word) for word in line] for line in lines]
    except ValueError as error:
        raise ValueError(f"The losses must be numbers with white space between them: {error}.") from error


def page() -> Any:
    """Return the `gradio.Interface`: other inputs than the pages of suggestions have."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read by gradio's import: the page calls nobody
    import evaluate
    import gradio

    def answer(losses: str) -> tuple[dict[str, Any], str]:
        metric = evaluate.load(str(Path(__file__).resolve().with_name("reply_perplexity.py")), keep_in_memory=True)
        try:
            figures = metric.compute(predictions=read_losses(losses))
        except ValueError as error:
            raise gradio.Error(str(error), print_exception=False) from error
        return figures, figures.pop("signature")

    return gradio.Interface(
        answer,
        inputs=[gradio.Textbox(label="Losses of the tokens in nats, one reply a line", lines=3, elem_id="losses")],
        outputs=[
            gradio.JSON(label="Figures", elem_id="figures"),
            gradio.Textbox(label="Signature: print it with the figures", lines=2, elem_id="signature"),
        ],
        title="Perplexity of real replies",
        description="How surprised is a model by the replies that were really given? exp of the mean loss over all "
        "tokens: 1 for a model that knows each token, V for one that guesses among V.",
        examples=[["0.693147 1.386294 0.693147\n2.079442"]],
        cache_examples=False,
        preload_example=False,
        flagging_mode="never",
        submit_btn=gradio.Button("Score", variant="primary", elem_id="score"),
        api_name="score",
        deep_link=False,
        analytics_enabled=False,
    )


if __name__ == "__main__":
    serve(page())
