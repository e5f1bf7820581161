"""The page of the Space `wrong_language`; `python app.py` serves it, from the Space's folder or from a checkout.

It needs fasttext and a model: the file that `MRS_LANGUAGE_MODEL` names, or lid.176.ftz beside this page.
"""

from __future__ import annotations

import os
from pathlib import Path


from mrs_metrics.page import Figures, LoadedMetric, make_page, serve

FOLDER = Path(__file__).resolve().parent


def score(metric: LoadedMetric, suggestions: list[str], reply: str, language: str) -> Figures:
    """Return the share of wrong suggestions and the language of each; the real reply is not used."""
    model = os.environ.get("MRS_LANGUAGE_MODEL") or str(FOLDER / "lid.176.ftz")
    result = metric.compute(predictions=[suggestions], language=language, language_model=model, per_suggestion=True)
    found = result.pop("per_suggestion")["identified"]
    return {**result, "identified": dict(zip(suggestions, found, strict=True))}


if __name__ == "__main__":
    serve(
        make_page(
            FOLDER / "wrong_language.py",
            score,
            title="Suggestions in a wrong language",
            description="Which of the suggestions are not in the language of the message? Short texts, and those whose "
            "language is uncertain, are left undecided (`und`).",
            reply_label=None,
            examples=[
                ["Das weiß ich leider nicht.\nI don't know, sorry.\nOk", "", "de"],
                ["No lo sé, lo siento.\nNão sei, desculpa.", "", "es"],
            ],
        )
    )
