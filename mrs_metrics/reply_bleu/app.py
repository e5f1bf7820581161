"""The page of the Space `reply_bleu`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

from pathlib import Path


from mrs_metrics.page import Figures, LoadedMetric, make_page, serve


def score(metric: LoadedMetric, suggestions: list[str], reply: str, language: str) -> Figures:
    """Return the BLEU of the best suggestion, as a sentence first, then as a corpus of one."""
    if not reply:
        raise ValueError("Type the real reply to compare the suggestions with.")
    result = metric.compute(predictions=[suggestions], references=[reply], language=language, per_example=True)
    best = suggestions[result["per_example"]["chosen"][0]]
    figures = {name: result[name] for name in ("sentence_bleu", "bleu", "brevity_penalty", "length_ratio")}
    return {**figures, "best_suggestion": best, "signature": result["signature"]}


if __name__ == "__main__":
    serve(
        make_page(
            Path(__file__).resolve().with_name("reply_bleu.py"),
            score,
            title="BLEU for reply suggestion",
            description="How close is the best suggestion to the reply that was really given? BLEU by "
            "sacreBLEU, from 0 to 100. Corpus BLEU (`bleu`) is 0 for texts of fewer than four tokens; over a whole "
            "test set it is the figure to report.",
            reply_label="The real reply",
            examples=[
                ["Thanks a lot!\nSee you tomorrow then!\nNo problem.", "Thank you, see you tomorrow then!", "en"],
                ["Mañana no puedo.\nSí, ¿a qué hora?", "Sí, ¿a qué hora quedamos?", "es"],
            ],
        )
    )
