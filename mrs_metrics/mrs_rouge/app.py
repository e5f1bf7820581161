"""The page of the Space `mrs_rouge`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

from pathlib import Path


from mrs_metrics.page import Figures, LoadedMetric, make_page, serve
from mrs_metrics.punkt import find_parameters


def score(metric: LoadedMetric, suggestions: list[str], reply: str, language: str, sentences: str = "no") -> Figures:
    """Return the weighted ROUGE of the best suggestion first, then its ceiling and what it is made of."""
    if not reply:
        raise ValueError("Type the real reply to compare the suggestions with.")
    result = metric.compute(
        predictions=[suggestions], references=[reply], language=language, sentences=sentences, per_example=True
    )
    best = suggestions[result["per_example"]["chosen"][0]]
    first = {name: result[name] for name in ("weighted", "ceiling")}
    figures = {name: value for name, value in result.items() if isinstance(value, float) or name == "empty_suggestions"}
    return {**first, **figures, "best_suggestion": best, "signature": result["signature"]}


if __name__ == "__main__":
    serve(
        make_page(
            Path(__file__).resolve().with_name("mrs_rouge.py"),
            score,
            title="Weighted ROUGE for reply suggestion",
            description="How close is the best suggestion to the reply that was really given? "
            "ROUGE-1/6 + ROUGE-2/3 + ROUGE-3/2 (F1), from 0 to 1, as the official script of MRS computes it.",
            reply_label="The real reply",
            examples=[
                ["Thanks a lot!\nSee you tomorrow!\nNo problem.", "Thank you, see you tomorrow!", "en"],
                ["Mañana no puedo.\nSí, ¿a qué hora?", "Sí, ¿a qué hora quedamos?", "es"],
                ["確認してご連絡します。\nありがとうございます。", "どうもありがとうございます。", "ja"],
            ],
            punkt=find_parameters() is not None,
        )
    )
