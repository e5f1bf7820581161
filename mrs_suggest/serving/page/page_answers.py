"""The answers that the demo page shows, as text and HTML; without gradio."""

from __future__ import annotations

import html
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.suggest.answering import Answer, Suggestion
from mrs_suggest.suggest.guard import NO_REPLIES, UNLIKELY
from mrs_suggest.suggest.guard import REASONS as GUARDED
from mrs_suggest.suggest.suggester import Suggester

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
    "tags": "no reply in this language has the requested tags",
    "none": "the model found no reply",
    UNLIKELY: "a suggestion is unlikely to be used",
    NO_REPLIES: "the model has no replies in this language, or none that fits a message like this one",
    **{code: f"the message seems to be about {about}" for code, about in GUARDED.items()},
}


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
        reason = answer.reason or ("" if answer else "tags" if allow or deny else "none")
    except ArgumentError as error:
        reason = error.problem
    milliseconds = 1000 * (time.perf_counter() - begin)
    return PageAnswer(answer.language, likely, answer, REASONS.get(reason, reason.replace("_", " ")), milliseconds)


def source_of(suggestion: Suggestion) -> str:
    """The source of a suggestion: the model's own statement, or the source with the largest share in its score.

    >>> source_of(Suggestion("Yes!", 0.4, {"direct": 0.5, "votes": 0.4, "tfidf_votes": 0.3}))
    'memory'
    """
    named = getattr(suggestion, "source", "")
    if named and named != "set":
        return str(named)
    totals: dict[str, float] = {}
    for part, value in suggestion.parts.items():
        source = SOURCES.get(part, part)
        totals[source] = totals.get(source, 0.0) + value
    best = max(totals, key=lambda source: totals[source], default="direct")
    return best if totals.get(best, 1.0) > 0 else "direct"


def status_text(answer: PageAnswer) -> str:
    """The language and the time taken, as plain text."""
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
