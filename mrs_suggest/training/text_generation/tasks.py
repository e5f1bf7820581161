"""The table of generation tasks: their columns, their metric and the file of their predictions.

A further task is a row: a data set whose configs hold a source and a target column, a metric, and a file.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from mrs_datasets.readers.xglue_files import predictions_path
from mrs_metrics.xglue import aggregate, score_interval, score_task, xglue_signature
from mrs_metrics.xglue_tasks import TASKS as XGLUE
from mrs_suggest.common.errors import InputError, metric_errors
from mrs_suggest.models.saved.record import Record

PREDICTIONS = "predictions"  # a folder of the run: a submission, as `mrs score --metric xglue_score` reads it
INPUT = "Lead"  # the baseline's name: the beginning of the source


@dataclass(frozen=True)
class TextTask:
    """A task of XGLUE whose answer is a text.

    Attributes:
        name: XGLUE's, such as `NTG`; in lower case it begins the names of the data's configs.
        source, target: columns that are read, and to be written.
    """

    name: str
    title: str
    source: str
    target: str

    @property
    def option(self) -> str:
        return self.name.lower()

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages that it is tested in (Table 3)."""
        return XGLUE[self.name].languages

    @property
    def metric(self) -> str:
        """The figure that is its score, which may choose the checkpoint."""
        return XGLUE[self.name].score

    def config(self, language: str) -> str:
        return f"{self.option}-{language}"

    def language(self, config: str) -> str | None:
        """The language of a config; None if it belongs to another task."""
        begin, _, language = config.partition("-")
        return language if begin == self.option and language else None

    def score(self, texts: Sequence[str], references: Sequence[str], language: str) -> Record:
        """The figures of a language: `n`, `score` and its 95 % `interval`, `bleu`, `brevity_penalty`; 0 to 1."""
        with metric_errors():
            scores = score_task(self.name, texts, references, language)
            return {**aggregate(scores), "interval": score_interval(scores).ends}

    def quick_score(self, texts: Sequence[str], references: Sequence[str], language: str) -> float:
        """The score without its interval."""
        with metric_errors():
            return float(aggregate(score_task(self.name, texts, references, language))["score"])

    def signature(self, language: str) -> str:
        """How a score was computed; InputError if sacreBLEU is missing."""
        with metric_errors(f"--task {self.option}"):
            return xglue_signature(self.name, language)

    def file(self, language: str) -> PurePath:
        return predictions_path(PREDICTIONS, self.name, language)


TASKS: Mapping[str, TextTask] = {
    task.option: task
    for task in (
        TextTask("QG", "question generation", "answer_passage", "question"),
        TextTask("NTG", "news title generation", "news_body", "news_title"),
    )
}


def task_of(name: str) -> TextTask:
    """The task of an option's value; InputError if there is no such task."""
    if name not in TASKS:
        raise InputError(f"--task {name}: no such task; expected reply or one of {', '.join(TASKS)}, staple.")
    return TASKS[name]
