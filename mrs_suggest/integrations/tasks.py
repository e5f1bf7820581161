"""The tasks as every harness runs them: what an example asks, what an answer becomes, and the figures.

MRS has two kinds of task (three replies in one answer, or three sampled answers), XCOPA three (its views), STAPLE one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.answers import read_answer, read_samples
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.integrations.figures import (
    Chosen,
    Suggested,
    Translated,
    choice_accuracy,
    suggestion_figures,
    translation_figures,
)
from mrs_suggest.integrations.prompts import (
    REPLY_TOKENS,
    TRANSLATION_TOKENS,
    best_choice,
    choice_question,
    replies_prompt,
    reply_prompt,
    shown_translations,
    translations_prompt,
)

Row = Mapping[str, Any]
SUGGESTION_FIGURES = ("weighted_rouge", "dist1", "dist2", "self_rouge", "replies")


@dataclass(frozen=True)
class Kind:
    """A task for each language of a data set.

    Attributes:
        asked: (row of the data, its index, language) -> a row with the `prompt` and `answer`, or `context`, `choices`
            and `label`, and what the record needs.
        record: (such a row, the model's texts or log-probabilities) -> what is logged.
        figures: all records -> figures by name.
        tokens: most tokens of an answer; None: log-probabilities of choices.
        sampled: three answers are sampled for each message.
    """

    name: str
    data_set: str
    asked: Callable[[Row, int, str], dict[str, Any]]
    record: Callable[[Row, Sequence[Any]], Any]
    figures: Callable[[Sequence[Any]], dict[str, float]]
    metrics: tuple[str, ...]
    tokens: int | None = None
    sampled: bool = False


def _message(prompt: Callable[[str, str], str], row: Row, index: int, language: str) -> dict[str, Any]:
    return {
        "index": index,
        "language": language,
        "message": row["message"],
        "reference": row["reply"],
        "prompt": prompt(row["message"], language),
        "answer": " ".join(row["reply"].split()),
    }


def _question(view: str, row: Row, index: int, language: str) -> dict[str, Any]:
    from mrs_suggest.integrations.sources import question_column

    return {"index": row["idx"], **choice_question(row, view, question_column())._asdict()}


def _prompt(row: Row, index: int, language: str) -> dict[str, Any]:
    if not row["translations"]:
        raise InputError(f"STAPLE: the prompt {row['id']!r} of {language} has no accepted translations (blind data).")
    return {
        "index": index,
        "id": row["id"],
        "prompt": translations_prompt(row["prompt"], language),
        "answer": shown_translations(row),
        "translations": row["translations"],
    }


def _suggestions(read: Callable[[Sequence[str]], list[str]], row: Row, answers: Sequence[str]) -> Suggested:
    return Suggested(
        index=row["index"],
        language=row["language"],
        message=row["message"],
        reference=row["reference"],
        suggestions=read(answers) or [""],
    )


def _choice(row: Row, scores: Sequence[float]) -> Chosen:
    plain, per_byte = (best_choice(scores, row["choices"], by) for by in (False, True))
    return Chosen(index=row["index"], gold=row["label"], accuracy=plain, accuracy_bytes=per_byte)


def _translations(row: Row, answers: Sequence[str]) -> Translated:
    return Translated(
        index=row["index"], id=row["id"], translations=row["translations"], predicted=read_answer(answers[0])
    )


def _accuracies(records: Sequence[Chosen]) -> dict[str, float]:
    return {name: choice_accuracy(records, name) for name in ("accuracy", "accuracy_bytes")}


_LISTED = partial(_suggestions, lambda answers: read_answer(answers[0], SUGGESTIONS))
_SAMPLED = partial(_suggestions, lambda answers: read_samples(answers, SUGGESTIONS))
_REPLIES = suggestion_figures, SUGGESTION_FIGURES, REPLY_TOKENS
_TRANSLATED = translation_figures, ("weighted_f1", "predicted"), TRANSLATION_TOKENS
KINDS = (
    Kind("mrs", "mrs", partial(_message, replies_prompt), _LISTED, *_REPLIES),
    Kind("mrs_samples", "mrs", partial(_message, reply_prompt), _SAMPLED, *_REPLIES, sampled=True),
    *(
        Kind(name, "xcopa", partial(_question, view), _choice, _accuracies, ("accuracy", "accuracy_bytes"))
        for name, view in (("mrs_xcopa", "full"), ("mrs_xcopa_nop", "nop"), ("mrs_xcopa_noq", "noq"))
    ),
    Kind("mrs_staple", "staple", _prompt, _translations, *_TRANSLATED),
)
