"""The page of the Space `response_ranking`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from mrs_metrics.page import serve


def read_scores(text: str) -> tuple[list[float], list[str]]:
    """Return the scores and the candidates of lines `score candidate`.

    Raises:
        ValueError: there is no line, or one does not start with a number.
    """
    scores, candidates = [], []
    for line in filter(None, map(str.strip, text.splitlines())):
        number, _, candidate = line.partition(" ")
        try:
            scores.append(float(number))
        except ValueError:
            raise ValueError(f"Each line must be a score, a space and a candidate, not {line!r:.80}.") from None
        candidates.append(candidate.strip())
    if not scores:
        raise ValueError("Type at least one candidate with its score.")
    return scores, candidates


def score(metric: Any, text: str, reply: str) -> dict[str, Any]:
    """Return the rank of the real reply among the candidates, and the figures of this one example.

    Raises:
        ValueError: the candidates cannot be read, or the reply is not exactly one of them.
    """
    scores, candidates = read_scores(text)
    if candidates.count(reply.strip()) != 1:
        raise ValueError("The real reply must be one of the candidates, and once.")
    result = metric.compute(
        predictions=[scores], references=[candidates.index(reply.strip())], k=(1, 3), per_example=True
    )
    rank = result["per_example"]["rank"][0]
    return {"rank": rank, **{name: result[name] for name in ("mrr", "p@1", "p@3", "signature")}}


def page() -> Any:
    """Return the `gradio.Interface`: other inputs than the pages of suggestions have."""
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read by gradio's import: the page calls nobody
    import evaluate
    import gradio

    def answer(candidates: str, reply: str) -> tuple[dict[str, Any], str]:
        metric = evaluate.load(str(Path(__file__).resolve().with_name("response_ranking.py")), keep_in_memory=True)
        try:
            figures = score(metric, candidates, reply)
        except ValueError as error:
            raise gradio.Error(str(error), print_exception=False) from error
        return figures, figures.pop("signature")

    return gradio.Interface(
        answer,
        inputs=[
            gradio.Textbox(label="Score and candidate, one a line", lines=4, elem_id="candidates"),
            gradio.Textbox(label="The real reply, one of the candidates", lines=1, elem_id="reply"),
        ],
        outputs=[
            gradio.JSON(label="Figures", elem_id="figures"),
            gradio.Textbox(label="Signature: print it with the figures", lines=2, elem_id="signature"),
        ],
        title="Ranking of the real reply",
        description="Where does a system put the reply that was really given among the candidates? The reciprocal rank "
        "is 1 for the first place, 1/2 for the second; equal scores count against the system.",
        examples=[["0.9 Yes, at eight!\n0.4 Sorry, I can't tonight.\n-0.2 Where do we meet?", "Where do we meet?"]],
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
