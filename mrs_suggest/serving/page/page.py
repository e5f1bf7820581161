"""The demo page: a chat with suggestions from one model, or from several side by side.

Needs gradio 6 (`pip install '.[demo]'`).
"""

from __future__ import annotations

import html
import os
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import ArgumentError, InputError, extra_needed
from mrs_suggest.common.text.languages import find_language
from mrs_suggest.common.text.text import visible
from mrs_suggest.suggest.answering import Answer, Suggestion
from mrs_suggest.suggest.guard import HELD_BACK, NO_REPLIES, UNLIKELY
from mrs_suggest.suggest.guard import REASONS as GUARDED
from mrs_suggest.suggest.ranking.language_ranker import RESPONSE_SET
from mrs_suggest.suggest.suggester import Suggester

if TYPE_CHECKING:
    import gradio

DETECTED = "detected"
MOST_CHARACTERS = 2_000  # of a message on the page; ours: a chat message has some hundred at most
CSS = """
.mrs-parts table { width: 100%; font-size: 0.85em; border-collapse: collapse; }
.mrs-parts th, .mrs-parts td { text-align: right; padding: 2px 6px; }
.mrs-parts th:first-child, .mrs-parts td:first-child { text-align: left; }
"""
ABOUT = """# Reply suggestions
Type what somebody writes to you. Each model offers three replies; click one to send it."""
SHOWN = 3  # as the metric scores them (Zhang et al. 2021, section 3.3)
LEAST = 0.01  # the probability from which a second language is shown; ours: rounds to 1 %
# The source of each part of a ranker's score.
SOURCES = {
    "direct": "direct",
    "nearest": "memory",
    "votes": "memory",
    "tfidf_nearest": "memory",
    "tfidf_votes": "memory",
    "log_prob": "frequency",
    "generator": "generated",
}
REASONS = {
    "blank": "the message is blank",
    "language_unclear": "the language is not clear; choose it above",
    "tags": "no fitting reply in this language has the requested tags",
    HELD_BACK: "the guard removes all replies, such as those with a date or a place that the message lacks",
    UNLIKELY: "a suggestion is unlikely to be used",
    NO_REPLIES: "the model has no replies in this language, or none that fits a message like this one",
    **{code: f"the message seems to be about {about}" for code, about in GUARDED.items()},
}


def load_models(names: Sequence[str], **options: Any) -> dict[str, Suggester]:
    """Load different models by name, ready to answer; options are those of `Suggester.from_pretrained`.

    Raises:
        InputError: a model cannot be loaded.
    """
    models = {}
    for name in dict.fromkeys(names):
        suggester = Suggester.from_pretrained(name, **options)
        suggester.suggest(["?"], suggester.languages[0])  # the first answer loads the lazy parts
        models[name] = suggester
    return models


def make_page(models: Mapping[str, Suggester]) -> gradio.Blocks:
    """The page as `gradio.Blocks`.

    Args:
        models: by the displayed name; each gets a column.

    Raises:
        MissingExtraError: gradio is not installed.
    """
    gr = _gradio()
    suggesters = list(models.values())
    codes = list(dict.fromkeys(code for suggester in suggesters for code in suggester.languages))
    tags = sorted({tag for suggester in suggesters for own in suggester.tags.values() for tag in own})
    page: gradio.Blocks
    with gr.Blocks(title="Reply suggestions", analytics_enabled=False) as page:
        gr.Markdown(ABOUT)
        chat = gr.Chatbot(
            label="Chat", height=220, elem_id="chat", render_markdown=False, buttons=[], feedback_options=None
        )
        with gr.Row():
            message = gr.Textbox(
                label="Message", placeholder="¿Quedamos mañana?", elem_id="message", scale=5, max_length=MOST_CHARACTERS
            )
            language = gr.Dropdown(
                [(DETECTED, DETECTED), *((_named(code), code) for code in codes)],
                value=DETECTED,
                label="Language",
                elem_id="language",
                scale=2,
            )
            send = gr.Button("Receive", variant="primary", elem_id="send", scale=1)
        with gr.Row(visible=bool(tags)):
            allow, deny = (
                gr.CheckboxGroup(tags, label=f"{verb} tags", elem_id=verb.lower()) for verb in ("Allow", "Deny")
            )
        with gr.Row():
            columns = [_column(gr, number, name) for number, name in enumerate(models)]
        shown = [part for column in columns for part in column]

        def receive(text: str, code: str, wanted: list[str], unwanted: list[str], history: list[Any]) -> list[Any]:
            chosen = None if code == DETECTED else code
            answers = [answer_message(suggester, text, chosen, wanted, unwanted) for suggester in suggesters]
            said = [{"role": "assistant", "content": text}] if text.strip() else []
            return ["", [*history, *said], *(update for one in answers for update in _updates(gr, one))]

        def reply(text: str, history: list[Any]) -> list[Any]:
            cleared = [update for _ in suggesters for update in _updates(gr, None)]
            return [[*history, {"role": "user", "content": text}], *cleared]

        asked = [message, language, allow, deny, chat]
        gr.on([send.click, message.submit], receive, asked, [message, chat, *shown], api_visibility="private")
        for _, *buttons, _, _ in columns:
            for button in buttons:
                button.click(reply, [button, chat], [chat, *shown], api_visibility="private")
    return page


def serve_page(page: gradio.Blocks, host: str | None = None, port: int | None = None) -> None:
    """Serve the page until interrupted.

    Args:
        host: default: gradio's, which is 127.0.0.1, or `GRADIO_SERVER_NAME` (in a Space, all addresses).
        port: default: the first free one from 7860.

    Raises:
        InputError: the port is in use, or the address does not belong to this machine.
    """
    from gradio.exceptions import ServerFailedToStartError

    try:
        page.launch(
            server_name=host, server_port=port, share=False, ssr_mode=False, footer_links=[], css=CSS, inbrowser=False,
            quiet=True, prevent_thread_lock=True,
        )  # fmt: skip
    except (OSError, ServerFailedToStartError) as error:
        where, why = f"{host or '127.0.0.1'}:{port or 7860}", getattr(error, "strerror", None)  # gradio's own has none
        told = f" ({why})" if why else ""
        raise InputError(f"{where}: cannot listen there{told}; pass another --host or --port.") from None
    print(f"The page is at {page.local_url}", flush=True)
    page.block_thread()


def _gradio() -> Any:
    os.environ.setdefault("GRADIO_ANALYTICS_ENABLED", "False")  # read by gradio's import: the page sends no telemetry
    with extra_needed("gradio", "demo", "the demo page"):
        import gradio
    return gradio


def _column(gr: Any, number: int, name: str) -> list[Any]:
    """The parts of a model's column: status, buttons, reason for an empty answer, table."""
    with gr.Column(min_width=300):
        gr.HTML(f"<b>{html.escape(visible(name))}</b>", elem_id=f"model-{number}")
        status = gr.HTML("", elem_id=f"status-{number}")
        buttons = [gr.Button("", visible=False, elem_id=f"reply-{number}-{place}", size="lg") for place in range(SHOWN)]
        why = gr.HTML("", elem_id=f"why-{number}")
        with gr.Accordion("How each was scored", open=True, elem_id=f"parts-{number}", elem_classes="mrs-parts"):
            parts = gr.HTML("")
    return [status, *buttons, why, parts]


def _updates(gr: Any, answer: PageAnswer | None) -> list[Any]:
    """New values for the parts of a column; without an answer, empty ones."""
    if answer is None:
        return ["", *(gr.update(value="", visible=False) for _ in range(SHOWN)), "", ""]
    replies = [suggestion.reply for suggestion in answer.suggestions]
    buttons = [
        gr.update(value=replies[place] if place < len(replies) else "", visible=place < len(replies))
        for place in range(SHOWN)
    ]
    why = f"{'Only neutral replies' if replies else 'No suggestions'}: {answer.why}."
    told = html.escape(visible(why)) if answer.why else ""
    return [html.escape(status_text(answer)), *buttons, told, table_html(answer)]


def _named(code: str) -> str:
    language = find_language(code)
    return f"{language.name} ({code})" if language is not None else code


# --- answers as text and HTML


@dataclass(frozen=True)
class PageAnswer:
    """One model's answer to one message.

    Attributes:
        language: of the answer; None if it is not clear.
        likely: the most likely languages with their probabilities, best first; empty if the language was given.
        suggestions: at most `SHOWN`.
        why: the reason for an empty answer, or for only neutral replies; otherwise empty.
        milliseconds: to find the language and the suggestions.
    """

    language: str | None
    likely: Sequence[tuple[str, float]]
    suggestions: Sequence[Suggestion]
    why: str
    milliseconds: float


def answer_message(
    suggester: Suggester,
    message: str,
    language: str | None = None,
    allow: Collection[str] = (),
    deny: Collection[str] = (),
) -> PageAnswer:
    """Ask a model.

    Args:
        language: of the message; None: detected.
        allow, deny: tags, as for `Suggester.suggest`.
    """
    begin = time.perf_counter()
    likely: list[tuple[str, float]] = []
    answer, reason = Answer(), ""
    try:
        if language is None and message.strip():
            likely = suggester.rank_languages(message)[:2]
        (answer,) = suggester.suggest([message], language, SHOWN, allow, deny)
        reason = "tags" if answer.reason == NO_REPLIES and (allow or deny) else answer.reason or ""
    except ArgumentError as error:
        reason = error.problem
    milliseconds = 1000 * (time.perf_counter() - begin)
    return PageAnswer(answer.language, likely, answer, REASONS.get(reason, reason.replace("_", " ")), milliseconds)


def source_of(suggestion: Suggestion) -> str:
    """The source of a suggestion: the model's own statement, or the source with the largest share in its score.

    >>> source_of(Suggestion("Yes!", 0.4, {"direct": 0.5, "votes": 0.4, "tfidf_votes": 0.3}))
    'memory'
    """
    if suggestion.source not in ("", RESPONSE_SET):
        return suggestion.source
    totals: dict[str, float] = {}
    for part, value in suggestion.parts.items():
        source = SOURCES.get(part, part)
        totals[source] = totals.get(source, 0.0) + value
    best = max(totals, key=lambda source: totals[source], default="direct")
    return best if totals.get(best, 1.0) > 0 else "direct"


def status_text(answer: PageAnswer) -> str:
    if answer.likely:
        shown = [answer.likely[0], *(one for one in answer.likely[1:] if one[1] >= LEAST)]
        language = ", ".join(f"{code} {probability:.0%}" for code, probability in shown)
        told = f"Language: {language}"
    else:
        told = f"Language: {answer.language or '?'} (chosen)" if answer.language else "Language: ?"
    return f"{told} · {answer.milliseconds:.1f} ms"


def table_html(answer: PageAnswer) -> str:
    """Source, score and parts of each suggestion as an HTML table; every text is escaped."""
    names = list(dict.fromkeys(name for one in answer.suggestions for name, value in one.parts.items() if value))
    head = ["reply", "source", "score", *names]
    rows = [
        [s.reply, source_of(s), f"{s.score:.3g}", *(f"{s.parts.get(name, 0.0):+.2f}" for name in names)]
        for s in answer.suggestions
    ]
    lines = ["".join(f"<th>{html.escape(name)}</th>" for name in head)]
    lines += ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in rows]
    return f"<table>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>" if rows else ""
