"""The page of the Space `dist_n`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

from pathlib import Path


from mrs_metrics.page import Figures, LoadedMetric, make_page, serve
from mrs_metrics.punkt import find_parameters


def score(metric: LoadedMetric, suggestions: list[str], reply: str, language: str, sentences: str = "no") -> Figures:
    """Return Dist-1 and Dist-2 of all suggestions or, where there is a reply, of the best one."""
    if not reply:
        return dict(metric.compute(predictions=[suggestions], language=language, sentences=sentences))
    return dict(
        metric.compute(
            predictions=[suggestions], references=[reply], language=language, sentences=sentences, chosen="best"
        )
    )


if __name__ == "__main__":
    serve(
        make_page(
            Path(__file__).resolve().with_name("dist_n.py"),
            score,
            title="Dist-n for reply suggestion",
            description="How many different words (Dist-1) and pairs of words (Dist-2) do the suggestions hold, for "
            "their length? From 0 to 1.",
            reply_label="The real reply (if you type it, only the suggestion closest to it counts)",
            examples=[
                ["I don't know.\nI don't think so.\nI don't care.", "", "en"],
                ["Yes, at eight!\nSorry, I can't tonight.\nWhere do we meet?", "", "en"],
                ["Vielen Dank!\nGern geschehen!", "Sehr gern geschehen!", "de"],
            ],
            punkt=find_parameters() is not None,
        )
    )
