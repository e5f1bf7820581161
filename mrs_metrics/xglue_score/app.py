"""The page of the Space `xglue_score`; `python app.py` serves it, from the Space's folder or from a checkout."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType


from mrs_metrics.page import Box, Figures, LoadedMetric, Page, make_form, serve

TASKS = ("NER", "POS", "NC", "MLQA", "XNLI", "PAWSX", "QADSM", "WPR", "QAM", "QG", "NTG")
LANGUAGES = "ar bg de el en es fr hi it nl pl pt ru sw th tr ur vi zh"


def read_examples(task: str, text: str, right: bool = False) -> list[object]:
    """Return the examples in a text box, one per line: a list of tags for NER and POS, of right answers for MLQA.

    >>> read_examples("NER", "B-PER O\\nO"), read_examples("MLQA", "1900", right=True), read_examples("QG", "Why?")
    ([['B-PER', 'O'], ['O']], [['1900']], ['Why?'])
    """
    lines = text.rstrip("\n").split("\n")
    if task in ("NER", "POS"):
        return [line.split() for line in lines]
    return [[line.strip()] if right and task == "MLQA" else line.strip() for line in lines]


def score(metric: LoadedMetric, task: str, language: str, predictions: str, references: str) -> Figures:
    """Return the figures of a task.

    Raises:
        ValueError: the numbers of predictions and right answers differ, or one of them is invalid.
    """
    ours, theirs = read_examples(task, predictions), read_examples(task, references, right=True)
    if len(ours) != len(theirs):
        raise ValueError(f"There are {len(ours)} predictions for {len(theirs)} right answers: type one for each.")
    queries = ["the one query"] * len(theirs) if task == "WPR" else None
    figures: Figures = metric.compute(
        predictions=ours, references=theirs, task=task, language=language, queries=queries
    )
    return figures


def boxes(gradio: ModuleType) -> list[Box]:
    """The inputs of the page."""
    return [
        gradio.Dropdown(list(TASKS), value="POS", label="Task", elem_id="task"),
        gradio.Dropdown(LANGUAGES.split(), value="en", label="Language", elem_id="language"),
        gradio.Textbox(label="Predictions, one per line", lines=3, elem_id="predictions"),
        gradio.Textbox(label="Right answers, one per line", lines=3, elem_id="references"),
    ]


def page() -> Page:
    """Return the `gradio.Interface`."""
    return make_form(
        Path(__file__).resolve().with_name("xglue_score.py"),
        score,
        boxes,
        title="Scores of the XGLUE tasks",
        description="A line is a sentence's tags with spaces between them (NER, POS), a label, an answer (MLQA), the "
        "relevance 0 to 4 of a page, all of one query (WPR), or a text (QG, NTG). Figures are 0 to 1.",
        examples=[
            ["POS", "en", "DET NOUN NOUN VERB\nPRON VERB ADJ", "DET NOUN NOUN VERB\nPRON AUX ADJ"],
            ["NER", "de", "B-PER I-PER O B-LOC", "B-PER I-PER O B-ORG"],
            ["MLQA", "es", "en el año 1900\nMadrid", "año 1900\nBarcelona"],
            ["WPR", "fr", "4\n2\n2", "3\n0\n2"],
        ],
    )


if __name__ == "__main__":
    serve(page())
