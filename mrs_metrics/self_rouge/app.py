"""The page of the Space `self_rouge`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

from pathlib import Path


from mrs_metrics.page import Figures, LoadedMetric, make_page, serve
from mrs_metrics.punkt import find_parameters


def score(metric: LoadedMetric, suggestions: list[str], reply: str, language: str, sentences: str = "no") -> Figures:
    """Return how similar the suggestions are; the real reply is not used."""
    if len(suggestions) < 2:
        raise ValueError("Type at least two suggestions to compare with each other.")
    result = metric.compute(predictions=[suggestions], language=language, sentences=sentences)
    return {name: result[name] for name in ("normalised", "self_rouge", "signature")}


if __name__ == "__main__":
    serve(
        make_page(
            Path(__file__).resolve().with_name("self_rouge.py"),
            score,
            title="Self-ROUGE for reply suggestion",
            description="How similar are the suggestions? From 0, no word in common, to 1, the same words in the same "
            "order (`normalised`).",
            reply_label=None,
            examples=[
                ["Thanks a lot!\nThanks so much!\nThanks!", "", "en"],
                ["Yes, at eight!\nSorry, I can't tonight.\nWhere do we meet?", "", "en"],
                ["Vielen Dank!\nVielen Dank!\nGern geschehen!", "", "de"],
            ],
            punkt=find_parameters() is not None,
        )
    )
