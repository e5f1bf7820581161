"""What the YAML files beside this one call.

`load_NAME` returns a task's data as `test` and `fewshot`; `KIND_results` turns a model's output for one example into a
record, which the harness logs; an aggregation turns all records into a figure (`mrs_suggest.integrations.figures`).
What the harness calls a document is a row here: it holds the whole prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any

from datasets import Dataset

from mrs_datasets.prepared.prepared import PreparedData
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.integrations.answers import read_answer, read_samples
from mrs_suggest.integrations.figures import (
    Chosen,
    Suggested,
    Translated,
    choice_accuracy,
    chosen,
    suggested,
    suggestion_figures,
    translation_figures,
)
from mrs_suggest.integrations.prompts import (
    EXAMPLES,
    choice_question,
    messages_with_replies,
    one_a_line,
    replies_prompt,
    reply_prompt,
    shown_translations,
    translations_prompt,
)
from mrs_suggest.integrations.sources import question_column, source

Row = Mapping[str, Any]
Splits = dict[str, Dataset]
SUGGESTION_FIGURES = ("weighted_rouge", "dist1", "dist2", "self_rouge", "replies")


def load_replies(language: str, mrs_data: str | None = None, **_: object) -> Splits:
    """MRS with prompts that ask for three replies; the examples are training messages with three replies.

    Args:
        language: a config of the data.
        mrs_data: where the data are (`--metadata '{"mrs_data": ...}'`), in place of MRS_DATA.
    """
    data = source("mrs", mrs_data)
    shown = islice(messages_with_replies(data.load(language, "train")), EXAMPLES)
    return {
        "test": _mrs_rows(data, language, replies_prompt),
        "fewshot": _rows(
            {"prompt": replies_prompt(message, language), "answer": one_a_line(replies)} for message, replies in shown
        ),
    }


def load_samples(language: str, mrs_data: str | None = None, **_: object) -> Splits:
    """MRS with prompts that ask for one reply, of which three are sampled; the arguments of `load_replies`."""
    data = source("mrs", mrs_data)
    shown = islice(data.load(language, "train"), EXAMPLES)
    return {
        "test": _mrs_rows(data, language, reply_prompt),
        "fewshot": _rows(
            {"prompt": reply_prompt(row["message"], language), "answer": one_a_line([row["reply"]])} for row in shown
        ),
    }


def load_questions(
    language: str, view: str, xcopa_data: str | None = None, xcopa_question: str | None = None, **_: object
) -> Splits:
    """XCOPA in one of its views; the examples are training questions, or validation's where there are none.

    Args:
        language: a config of the data.
        view: `full`, `nop` or `noq`.
        xcopa_data: where the data are, in place of XCOPA_DATA.
        xcopa_question: the column that tells cause from effect, in place of XCOPA_QUESTION.
    """
    data, column = source("xcopa", xcopa_data), question_column(xcopa_question)
    test = data.load(language, "test")
    shown = islice(data.load(language, fewshot_split(data, language)), EXAMPLES)

    def asked(rows: Iterable[Row]) -> Dataset:
        return _rows({"index": row["idx"], **choice_question(row, view, column)._asdict()} for row in rows)

    return {"test": asked(test), "fewshot": asked(shown)}


def load_translations(language: str, staple_data: str | None = None, **_: object) -> Splits:
    """STAPLE; the examples show the translations that most learners give.

    Args:
        language: a config of the data.
        staple_data: where the data are, in place of STAPLE_DATA.
    """
    data = source("staple", staple_data)
    test = data.load(language, "test")
    if any(not row["translations"] for row in test):
        raise InputError(f"{data.name}: the test split of {language} has no accepted translations (blind data).")

    def asked(rows: Iterable[Row]) -> Dataset:
        return _rows(
            {
                "index": index,
                "id": row["id"],
                "prompt": translations_prompt(row["prompt"], language),
                "answer": shown_translations(row),
                "translations": row["translations"],
            }
            for index, row in enumerate(rows)
        )

    return {"test": asked(test), "fewshot": asked(islice(data.load(language, "train"), EXAMPLES))}


def fewshot_split(data: PreparedData, language: str) -> str:
    """`train`, or `validation` where a language of XCOPA has nothing else."""
    return "train" if "train" in data.splits(language) else "validation"


def replies_results(row: Row, results: Sequence[str]) -> dict[str, object]:
    """From one answer with three replies to a record for each figure."""
    return _suggested(row, read_answer(results[0], SUGGESTIONS))


def samples_results(row: Row, results: Sequence[Sequence[str]]) -> dict[str, object]:
    """From three sampled answers with a reply each to a record for each figure."""
    return _suggested(row, read_samples(results[0], SUGGESTIONS))


def questions_results(row: Row, results: Sequence[tuple[float, bool]]) -> dict[str, object]:
    """From the choices' log-probabilities to the answers."""
    record = chosen(row["index"], row["label"], [score for score, *_ in results], row["choices"])
    return {"accuracy": record, "accuracy_bytes": record}


def translations_results(row: Row, results: Sequence[str]) -> dict[str, object]:
    """From one answer to its translations."""
    record = Translated(
        index=row["index"], id=row["id"], translations=row["translations"], predicted=read_answer(results[0])
    )
    return {"weighted_f1": record, "predicted": record}


def _suggestions(name: str) -> Callable[[Sequence[Suggested]], float]:
    def aggregation(records: Sequence[Suggested]) -> float:
        return suggestion_figures(records)[name]

    return aggregation


def _translations(name: str) -> Callable[[Sequence[Translated]], float]:
    def aggregation(records: Sequence[Translated]) -> float:
        return translation_figures(records)[name]

    return aggregation


weighted_rouge, dist1, dist2, self_rouge, replies = map(_suggestions, SUGGESTION_FIGURES)
weighted_f1, predicted = map(_translations, ("weighted_f1", "predicted"))
accuracy = choice_accuracy


def accuracy_bytes(records: Sequence[Chosen]) -> float:
    """The share of right answers by log-probability per byte."""
    return choice_accuracy(records, "accuracy_bytes")


def _mrs_rows(data: PreparedData, language: str, prompt: Callable[[str, str], str]) -> Dataset:
    return _rows(
        {
            "index": index,
            "language": language,
            "message": row["message"],
            "reference": row["reply"],
            "prompt": prompt(row["message"], language),
            "answer": row["reply"],
        }
        for index, row in enumerate(data.load(language, "test"))
    )


def _suggested(row: Row, suggestions: list[str]) -> dict[str, object]:
    record = suggested(row["index"], row["language"], row["message"], row["reference"], suggestions)
    return dict.fromkeys(SUGGESTION_FIGURES, record)


def _rows(rows: Iterable[Row]) -> Dataset:
    return Dataset.from_list(list(map(dict, rows)))
