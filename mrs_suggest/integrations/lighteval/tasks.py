"""MRS, XCOPA's views and STAPLE as tasks of lighteval, one for each language (`mrs:es`) and all of them (`mrs`).

    MRS_DATA=FOLDER lighteval accelerate "model_name=MODEL" "mrs:es|0" \\
        --custom-tasks mrs_suggest.integrations.lighteval.tasks

`mrs_suggest.integrations.sources` tells where the data are, `mrs_suggest.integrations.answers` how an answer is read,
`mrs_suggest.integrations.prompts` what is asked. One metric of a task returns all its figures, computed from all
examples (`mrs_suggest.integrations.figures`); lighteval computes no standard error for those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import islice
from typing import Any, NamedTuple

from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation, SamplingMetric
from lighteval.metrics.utils.metric_utils import CorpusLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from mrs_datasets.catalogue import read_record
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
    REPLY_TOKENS,
    STOPS,
    TRANSLATION_TOKENS,
    choice_question,
    messages_with_replies,
    one_a_line,
    replies_prompt,
    reply_prompt,
    shown_translations,
    translations_prompt,
)
from mrs_suggest.integrations.sources import question_column, source

Row = dict[str, Any]


class Task(LightevalTaskConfig):
    """A task whose data are looked for when it runs, not when this module is imported."""

    @property
    def hf_repo(self) -> str:
        """The folder or hub id that lighteval gives to `datasets.load_dataset`.

        Raises:
            InputError: there are no data, or they lack the language.
        """
        data = source(self.data_set)
        have = data.configs() if data.folder else [self.hf_subset]
        if self.hf_subset not in have:
            raise InputError(f"{data.name}: no config {self.hf_subset!r}; it has {' '.join(have)}.")
        return str(data.folder or data.name)

    @hf_repo.setter
    def hf_repo(self, data_set: str) -> None:
        self.data_set = data_set

    @property
    def hf_revision(self) -> str | None:
        """The revision of a hub id (`ORG/NAME@REVISION`)."""
        return source(self.data_set).revision

    @hf_revision.setter
    def hf_revision(self, revision: str | None) -> None:
        """lighteval sets its default here; the place of the data decides."""


class Logged(NamedTuple):
    """What an example's output becomes, and what is computed from all of them."""

    record: Callable[[Doc, ModelResponse], object]
    figures: Callable[[Sequence[Any]], dict[str, float]]


class Record(SampleLevelComputation):
    """From a model's output for one example to a record."""

    def __init__(self, record: Callable[[Doc, ModelResponse], object]) -> None:
        self.record = record

    def compute(self, doc: Doc, model_response: ModelResponse, **_: object) -> object:
        """The record of one example."""
        return self.record(doc, model_response)


class SampledRecord(SamplingMetric, Record):
    """The same from three sampled outputs."""

    def __init__(self, record: Callable[[Doc, ModelResponse], object]) -> None:
        SamplingMetric.__init__(self)
        Record.__init__(self, record)

    def num_samples(self) -> int:
        """How many outputs lighteval samples for each message."""
        return SUGGESTIONS


class Figures(CorpusLevelComputation):
    """From all records to the figures."""

    def __init__(self, figures: Callable[[Sequence[Any]], dict[str, float]]) -> None:
        self.figures = figures

    def compute_corpus(self, items: Sequence[Any]) -> dict[str, float]:
        """The figures by name."""
        return self.figures(items)


def replies_doc(row: Row, _: str, *, language: str, view: str) -> Doc | None:
    """A row of MRS; as an example, all replies to its message if there are three, else none."""
    if row["__few_shots"]:
        replies = _examples(language).get(row["__index"])
        return replies and _doc(replies_prompt(row["message"], language), one_a_line(replies), row)
    return _doc(replies_prompt(row["message"], language), row["reply"], row, language=language)


def sample_doc(row: Row, _: str, *, language: str, view: str) -> Doc:
    """A row of MRS whose answer is one reply."""
    return _doc(reply_prompt(row["message"], language), row["reply"], row, language=language)


def question_doc(row: Row, _: str, *, language: str, view: str) -> Doc:
    """A row of XCOPA."""
    columns = {name: value for name, value in row.items() if not name.startswith("__")}
    question = choice_question(columns, view, question_column())
    choices = [f" {choice}" for choice in question.choices]
    return Doc(question.context, choices, question.label, specific={"index": row["idx"]})


def translations_doc(row: Row, _: str, *, language: str, view: str) -> Doc:
    """A row of STAPLE."""
    if not row["translations"]:
        raise InputError(f"STAPLE: the prompt {row['id']!r} of {language} has no accepted translations (blind data).")
    return _doc(translations_prompt(row["prompt"], language), shown_translations(row), row, id=row["id"])


def replies_record(doc: Doc, response: ModelResponse) -> Suggested:
    """From one answer with three replies."""
    return _suggested(doc, read_answer(response.final_text[0], SUGGESTIONS))


def samples_record(doc: Doc, response: ModelResponse) -> Suggested:
    """From three sampled answers with a reply each."""
    return _suggested(doc, read_samples(response.final_text, SUGGESTIONS))


def question_record(doc: Doc, response: ModelResponse) -> Chosen:
    """From the choices' log-probabilities to the answers."""
    choices = [choice[1:] for choice in doc.choices]
    return chosen(doc.specific["index"], int(doc.gold_index), response.logprobs, choices)


def translations_record(doc: Doc, response: ModelResponse) -> Translated:
    """From one answer to its translations."""
    row, predicted = doc.specific, read_answer(response.final_text[0])
    return Translated(index=row["index"], id=row["id"], translations=row["translations"], predicted=predicted)


def questions_figures(records: Sequence[Chosen]) -> dict[str, float]:
    """`accuracy` and `accuracy_bytes`."""
    return {name: choice_accuracy(records, name) for name in ("accuracy", "accuracy_bytes")}


def _doc(query: str, answer: str, row: Row, **more: object) -> Doc:
    specific = {**{name: value for name, value in row.items() if name[:2] != "__"}, "index": row["__index"], **more}
    return Doc(query, [answer], 0, specific=specific)


def _suggested(doc: Doc, suggestions: list[str]) -> Suggested:
    row = doc.specific
    return suggested(row["index"], row["language"], row["message"], row["reply"], suggestions)


@cache
def _examples(language: str) -> dict[int, list[str]]:
    """Row of the training split -> the replies to its message, for the first row of each message that has three."""
    rows = source("mrs").load(language, "train")
    first: dict[str, int] = {}
    for number, message in enumerate(rows["message"]):
        first.setdefault(message, number)
    return {first[message]: replies for message, replies in islice(messages_with_replies(rows), EXAMPLES)}


REPLIES = Logged(replies_record, suggestion_figures)
SAMPLES = Logged(samples_record, suggestion_figures)
QUESTIONS = Logged(question_record, questions_figures)
TRANSLATIONS = Logged(translations_record, translation_figures)


def _task(
    name: str,
    data_set: str,
    language: str,
    prompt: Callable[..., Doc | None],
    logged: Logged,
    *,
    view: str = "full",
    tokens: int | None = None,
) -> Task:
    generates = tokens is not None
    metric = CorpusLevelMetric(
        metric_name=name,
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE if generates else SamplingMethod.LOGPROBS,
        sample_level_fn=(SampledRecord if logged is SAMPLES else Record)(logged.record),
        corpus_level_fn=Figures(logged.figures),
    )
    splits = read_record(data_set).kind_of(language).splits
    return Task(
        name=f"{name}:{language}",
        prompt_function=partial(prompt, language=language, view=view),
        hf_repo=data_set,
        hf_subset=language,
        metrics=[metric],
        hf_avail_splits=list(splits),
        evaluation_splits=["test"],
        few_shots_split="train" if "train" in splits else "validation",
        few_shots_select="sequential",
        generation_size=tokens,
        stop_sequence=list(STOPS) if generates else None,
        version=1,
    )


TASKS_TABLE = [
    *(_task("mrs", "mrs", code, replies_doc, REPLIES, tokens=REPLY_TOKENS) for code in read_record("mrs").languages),
    *(
        _task("mrs_samples", "mrs", code, sample_doc, SAMPLES, tokens=REPLY_TOKENS)
        for code in read_record("mrs").languages
    ),
    *(
        _task(name, "xcopa", code, question_doc, QUESTIONS, view=view)
        for name, view in (("mrs_xcopa", "full"), ("mrs_xcopa_nop", "nop"), ("mrs_xcopa_noq", "noq"))
        for code in read_record("xcopa").languages
    ),
    *(
        _task("mrs_staple", "staple", code, translations_doc, TRANSLATIONS, tokens=TRANSLATION_TOKENS)
        for code in read_record("staple").languages
    ),
]
