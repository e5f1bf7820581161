"""The functions that the YAML files of lm-evaluation-harness name.

`load` returns a task's data as `test` and `fewshot`; `KIND_results` turns a model's output for one example into records
that the harness logs; an aggregation turns all records into a figure. A row (the harness's document) has the whole
prompt.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import islice
from typing import Any

from datasets import Dataset

from mrs_suggest.integrations.prompts import EXAMPLES, messages_with_replies, one_a_line, replies_prompt
from mrs_suggest.integrations.sources import QUESTION_VARIABLE, source
from mrs_suggest.integrations.tasks import KINDS, Kind, Row

_KINDS = {kind.name: kind for kind in KINDS}


def load(kind: str, language: str, xcopa_question: str | None = None, **places: Any) -> dict[str, Dataset]:
    """The test split, and few-shot examples of the training split (XCOPA: or of validation).

    Args:
        xcopa_question: column with the question of XCOPA, in place of XCOPA_QUESTION.
        places: `mrs_data`, `xcopa_data` or `staple_data`: where the data are (`--metadata '{"mrs_data": ...}'`), in
            place of the environment variables.
    """
    if xcopa_question:
        os.environ[QUESTION_VARIABLE] = xcopa_question
    task = _KINDS[kind]
    data = source(task.data_set, places.get(f"{task.data_set}_data"))
    only_validation = task.data_set == "xcopa" and "train" not in data.splits(language)
    shown = data.load(language, "validation" if only_validation else "train")
    if kind == "mrs":  # the examples show three replies
        examples: Iterable[Row] = (
            {"prompt": replies_prompt(message, language), "answer": one_a_line(replies)}
            for message, replies in islice(messages_with_replies(shown), EXAMPLES)
        )
    else:
        examples = _asked(task, islice(shown, EXAMPLES), language)
    return {
        "test": Dataset.from_list(list(_asked(task, data.load(language, "test"), language))),
        "fewshot": Dataset.from_list([dict(row) for row in examples]),
    }


def _asked(kind: Kind, rows: Iterable[Row], language: str) -> Iterable[dict[str, Any]]:
    return (kind.asked(row, index, language) for index, row in enumerate(rows))


def _results(kind: Kind, row: Row, results: Sequence[Any]) -> dict[str, object]:
    if kind.tokens is None:
        output: Sequence[Any] = [score for score, *_ in results]
    else:
        output = results[0] if kind.sampled else results
    return dict.fromkeys(kind.metrics, kind.record(row, output))


def _aggregation(kind: Kind, name: str) -> Callable[[Sequence[Any]], float]:
    return lambda records: kind.figures(records)[name]


(
    mrs_results,
    mrs_samples_results,
    mrs_xcopa_results,
    mrs_xcopa_nop_results,
    mrs_xcopa_noq_results,
    mrs_staple_results,
) = (partial(_results, kind) for kind in KINDS)
weighted_rouge, dist1, dist2, self_rouge, replies = (
    _aggregation(_KINDS["mrs"], name) for name in _KINDS["mrs"].metrics
)
accuracy, accuracy_bytes = (_aggregation(_KINDS["mrs_xcopa"], name) for name in _KINDS["mrs_xcopa"].metrics)
weighted_f1, predicted = (_aggregation(_KINDS["mrs_staple"], name) for name in _KINDS["mrs_staple"].metrics)
