"""The page of the Space `response_ranking`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType


from mrs_metrics.page import Box, Figures, LoadedMetric, Page, make_form, serve


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


def score(metric: LoadedMetric, candidates: str, reply: str) -> Figures:
    """Return the rank of the real reply among the candidates, and the figures of this one example.

    Raises:
        ValueError: the candidates cannot be read, or the reply is not among them exactly once.
    """
    scores, texts = read_scores(candidates)
    if texts.count(reply.strip()) != 1:
        raise ValueError("The real reply must be among the candidates exactly once.")
    result = metric.compute(predictions=[scores], references=[texts.index(reply.strip())], k=(1, 3), per_example=True)
    rank = result["per_example"]["rank"][0]
    return {"rank": rank, **{name: result[name] for name in ("mrr", "p@1", "p@3", "signature")}}


def boxes(gradio: ModuleType) -> list[Box]:
    """The inputs of the page."""
    return [
        gradio.Textbox(label="Score and candidate, one per line", lines=4, elem_id="candidates"),
        gradio.Textbox(label="The real reply, one of the candidates", lines=1, elem_id="reply"),
    ]


def page() -> Page:
    """Return the `gradio.Interface`."""
    return make_form(
        Path(__file__).resolve().with_name("response_ranking.py"),
        score,
        boxes,
        title="Ranking of the real reply",
        description="Where does a system rank the reply that was really given? The reciprocal rank "
        "is 1 for the first place, 1/2 for the second; equal scores count against the system.",
        examples=[["0.9 Yes, at eight!\n0.4 Sorry, I can't tonight.\n-0.2 Where do we meet?", "Where do we meet?"]],
    )


if __name__ == "__main__":
    serve(page())
