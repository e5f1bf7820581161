"""What the demo page shows for a message: suggestions, where each comes from, or why there is none; without gradio."""

from __future__ import annotations

import html
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from mrs_suggest.common.errors import ArgumentError
from mrs_suggest.suggest.answering import Suggestion
from mrs_suggest.suggest.guard import NO_REPLIES, UNLIKELY
from mrs_suggest.suggest.guard import REASONS as GUARDED
from mrs_suggest.suggest.suggester import Suggester

SHOWN = 3  # as the metric scores them (Zhang et al. 2021, section 3.3)
LEAST = 0.01  # probability of a second language that is shown; ours: rounds to 1 %
# Where what speaks for a suggestion comes from, by the parts of a ranker.
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
    "tags": "no reply in this language has the tags that are asked for",
    "none": "the model found no reply",
    UNLIKELY: "a suggestion would hardly be used",
    NO_REPLIES: "the model has no replies in this language, or none that fits a message like this one",
    **{code: f"the message seems to be about {about}" for code, about in GUARDED.items()},
}


@dataclass(frozen=True)
class PageAnswer:
    """What one model says to one message.

    Attributes:
        language: in which it answers; None if it is not clear.
        likely: the languages that the model finds likely with their probabilities, the first best; empty if the
            language was given.
        suggestions: at most `SHOWN`.
        why: why there is no suggestion, or only neutral ones; empty otherwise.
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
    code, reason, found = language, "", list[Suggestion]()
    try:
        if not message.strip():
            code, reason = None, "blank"
        else:
            if code is None:
                likely = suggester.rank_languages(message)[:2]
                code = suggester.sure_language(message)
            if code is None:
                reason = "language_unclear"
            else:
                (row,) = suggester.suggest([message], code, SHOWN, allow, deny)
                found = list(row)
                reason = getattr(row, "reason", None) or ("" if found else "tags" if allow or deny else "none")
    except ArgumentError as error:
        code, reason = None, error.problem
    milliseconds = 1000 * (time.perf_counter() - begin)
    return PageAnswer(code, likely, found, REASONS.get(reason, reason.replace("_", " ")), milliseconds)


def source_of(suggestion: Suggestion) -> str:
    """Where a suggestion comes from: what the model says of it, or the source that speaks for it most.

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
    """The language and how long it took, as plain text."""
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
