"""MRS, XCOPA's views and STAPLE as tasks of lighteval, one for each language (`mrs:es`) and all of them (`mrs`).

    MRS_DATA=FOLDER lighteval accelerate "model_name=MODEL" "mrs:es|0" \\
        --custom-tasks mrs_suggest.integrations.lighteval.tasks

`mrs_suggest.integrations.tasks` has what is asked and computed, `mrs_suggest.integrations.sources` where the data are.
One metric of a task returns all its figures, over all examples; lighteval computes no standard error for those.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial
from itertools import islice
from typing import Any

from lighteval.metrics.metrics_corpus import CorpusLevelComputation
from lighteval.metrics.metrics_sample import SampleLevelComputation, SamplingMetric
from lighteval.metrics.utils.metric_utils import CorpusLevelMetric
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

from mrs_datasets.catalogue import read_record
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.predictions import SUGGESTIONS
from mrs_suggest.integrations.prompts import EXAMPLES, STOPS, messages_with_replies, one_a_line
from mrs_suggest.integrations.sources import source
from mrs_suggest.integrations.tasks import KINDS, Kind


class Task(LightevalTaskConfig):
    """A task that looks for its data when it runs, not when this module is imported."""

    @property
    def hf_repo(self) -> str:
        """The folder or hub id for `datasets.load_dataset`; InputError without data, or without the language."""
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
        return source(self.data_set).revision

    @hf_revision.setter
    def hf_revision(self, revision: str | None) -> None:
        """lighteval sets its default here; the place of the data decides."""


class Record(SampleLevelComputation):
    """From a model's output for one example to a record."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def compute(self, doc: Doc, model_response: ModelResponse, **_: object) -> object:
        output = model_response.logprobs if self.kind.tokens is None else model_response.final_text
        return self.kind.record(doc.specific, output)


class SampledRecord(SamplingMetric, Record):
    """The same from three sampled outputs."""

    def __init__(self, kind: Kind) -> None:
        SamplingMetric.__init__(self)
        Record.__init__(self, kind)

    def num_samples(self) -> int:
        return SUGGESTIONS


class Figures(CorpusLevelComputation):
    def __init__(self, kind: Kind) -> None:
        self.kind = kind

    def compute_corpus(self, items: Sequence[Any]) -> dict[str, float]:
        return self.kind.figures(items)


def make_doc(row: dict[str, Any], _: str, *, kind: Kind, language: str) -> Doc | None:
    """A row of the data; an example of `mrs` shows three replies to its message, or is left out if it has fewer."""
    columns = {name: value for name, value in row.items() if not name.startswith("__")}
    asked = kind.asked(columns, row["__index"], language)
    if kind.tokens is None:
        return Doc(asked["context"], [f" {choice}" for choice in asked["choices"]], asked["label"], specific=asked)
    answer = asked["answer"]
    if kind.name == "mrs" and row["__few_shots"]:
        replies = _examples(language).get(row["__index"])
        if not replies:
            return None
        answer = one_a_line(replies)
    return Doc(asked["prompt"], [answer], 0, specific=asked)


@cache
def _examples(language: str) -> dict[int, list[str]]:
    """Row of the training split -> the replies to its message, for the first row of each message that has three."""
    rows = source("mrs").load(language, "train")
    first: dict[str, int] = {}
    for number, message in enumerate(rows["message"]):
        first.setdefault(message, number)
    return {first[message]: replies for message, replies in islice(messages_with_replies(rows), EXAMPLES)}


def _task(kind: Kind, language: str) -> Task:
    generates = kind.tokens is not None
    metric = CorpusLevelMetric(
        metric_name=kind.name,
        higher_is_better=True,
        category=SamplingMethod.GENERATIVE if generates else SamplingMethod.LOGPROBS,
        sample_level_fn=(SampledRecord if kind.sampled else Record)(kind),
        corpus_level_fn=Figures(kind),
    )
    splits = read_record(kind.data_set).kind_of(language).splits
    return Task(
        name=f"{kind.name}:{language}",
        prompt_function=partial(make_doc, kind=kind, language=language),
        hf_repo=kind.data_set,
        hf_subset=language,
        metrics=[metric],
        hf_avail_splits=list(splits),
        evaluation_splits=["test"],
        few_shots_split="train" if "train" in splits else "validation",
        few_shots_select="sequential",
        generation_size=kind.tokens,
        stop_sequence=list(STOPS) if generates else None,
        version=1,
    )


TASKS_TABLE = [_task(kind, code) for kind in KINDS for code in read_record(kind.data_set).languages]
