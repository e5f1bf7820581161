"""The page of a metric's Space: it takes suggestions and the real reply, and shows the figures and their signature.

Needs gradio 6, which Spaces have (here: `pip install '.[spaces]'`).
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import gradio
    from gradio.components import Component

# The ten languages of MRS, in the order of its Table 1.
LANGUAGES = (
    ("English", "en"),
    ("Spanish", "es"),
    ("German", "de"),
    ("Portuguese", "pt"),
    ("French", "fr"),
    ("Japanese", "ja"),
    ("Swedish", "sv"),
    ("Italian", "it"),
    ("Dutch", "nl"),
    ("Russian", "ru"),
)

Figures = dict[str, object]
Page: TypeAlias = "gradio.Interface"
Box: TypeAlias = "Component"


class LoadedMetric(Protocol):
    """What `evaluate.load` returns; `evaluate` itself is untyped."""

    def compute(self, **inputs: object) -> dict[str, Any]:
        """The figures by name, with their signature."""


def make_page(
    module: Path,
    score: Callable[..., Figures],
    title: str,
    description: str,
    reply_label: str | None,
    examples: list[list[str]],
    punkt: bool = False,
) -> Page:
    """Return a `gradio.Interface` over an `evaluate` module.

    Args:
        module: the module's file, in the page's folder.
        score: (the loaded metric, suggestions, real reply, language) -> figures, with their `signature`. The reply is
            "" if none was typed. The message of a ValueError or ImportError is shown on the page.
        title: heading of the page.
        description: what to do on the page, in Markdown.
        reply_label: label of the box for the real reply; None hides the box.
        examples: rows of suggestions (one per line), reply and language code, filled in by a click.
        punkt: whether Punkt's parameters are installed: then the page offers to split texts into sentences first, and
            `score` gets a fifth argument, `no` or `punkt`.
    """

    def boxes(gradio: ModuleType) -> list[Box]:
        choice = gradio.Radio(
            ["no", "punkt"],
            value="no",
            label="Split into sentences first (punkt, as MRS's official script)",
            elem_id="sentences",
        )
        return [
            gradio.Textbox(label="Suggestions, one per line", lines=3, elem_id="suggestions"),
            gradio.Textbox(label=reply_label, lines=2, elem_id="reply", visible=reply_label is not None),
            gradio.Dropdown(list(LANGUAGES), value="en", label="Language", elem_id="language"),
            *([choice] if punkt else []),
        ]

    def answer(metric: LoadedMetric, suggestions: str, reply: str, language: str) -> Figures:
        return score(metric, _lines(suggestions), reply.strip(), language)

    def answer_with_choice(
        metric: LoadedMetric, suggestions: str, reply: str, language: str, sentences: str
    ) -> Figures:
        return score(metric, _lines(suggestions), reply.strip(), language, sentences)

    if not punkt:
        return make_form(module, answer, boxes, title, description, examples)
    return make_form(module, answer_with_choice, boxes, title, description, [[*row, "no"] for row in examples])


def _lines(suggestions: str) -> list[str]:
    texts = [line.strip() for line in suggestions.splitlines() if line.strip()]
    if not texts:
        raise ValueError("Type at least one suggestion.")
    return texts


def make_form(
    module: Path,
    score: Callable[..., Figures],
    boxes: Callable[[ModuleType], list[Box]],
    title: str,
    description: str,
    examples: list[list[str]],
) -> Page:
    """The same for a metric with other boxes than suggestions, reply and language.

    Args:
        score: (the loaded metric, a value for each box) -> figures, as above.
        boxes: gradio -> its components for the input.
    """
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read by gradio's import: the page sends no telemetry
    import evaluate
    import gradio

    def answer(*values: object) -> tuple[Figures, str]:
        # Loaded each time, from the cache: evaluate 0.4 cannot reuse a metric after an error in `compute`.
        metric = evaluate.load(str(module), keep_in_memory=True)
        try:
            figures = score(metric, *values)
        except (ValueError, ImportError) as error:
            raise gradio.Error(str(error), print_exception=False) from error
        return figures, str(figures.pop("signature"))

    _, *named = inspect.signature(score).parameters.values()
    answer.__signature__ = inspect.Signature(named)  # type: ignore[attr-defined]  # the API's names for the boxes
    return gradio.Interface(
        answer,
        inputs=boxes(gradio),
        outputs=[
            gradio.JSON(label="Figures", elem_id="figures"),
            gradio.Textbox(label="Signature: print it with the figures", lines=2, elem_id="signature"),
        ],
        title=title,
        description=description,
        examples=examples,
        cache_examples=False,
        preload_example=False,
        flagging_mode="never",
        submit_btn=gradio.Button("Score", variant="primary", elem_id="score"),
        api_name="score",
        deep_link=False,
        analytics_enabled=False,
    )


def serve(page: Page) -> None:
    """Serve the page until interrupted; address and port come from gradio's environment variables."""
    page.launch(share=False, ssr_mode=False, footer_links=["api"])
