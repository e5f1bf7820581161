"""The nine understanding tasks of XGLUE: which columns a model reads and what it predicts, one row each.

Kinds, languages, labels and the scored figure are those of `mrs_metrics.xglue_tasks`, and the pairs of texts those of
microsoft/Unicoder (understanding/src/transformers/data/processors/xglue.py).
"""

from dataclasses import dataclass

from mrs_metrics.xglue_tasks import TASKS, Task
from mrs_suggest.common.errors import InputError
from mrs_suggest.models.understanding.text_rows import ANSWER, PAGE
from mrs_suggest.models.understanding.understanding_start import Head


@dataclass(frozen=True)
class Understanding:
    """One task.

    Attributes:
        first, second: columns whose texts, a space between them, are the first and the second text of a pair; of tags
            the column of words alone.
        rest: the tag of a word of which the tokenizer makes no piece.
    """

    name: str
    first: tuple[str, ...]
    second: tuple[str, ...] = ()
    gold: str = "label"
    rest: str = ""

    @property
    def task(self) -> Task:
        """The scorer's facts about it."""
        return TASKS[self.name]

    @property
    def kind(self) -> str:
        """One of `mrs_suggest.models.understanding.text_rows.KINDS`."""
        return self.task.kind

    @property
    def head(self) -> Head:
        return Head(self.kind, self.task.labels)

    @property
    def columns(self) -> tuple[str, ...]:
        return (*(["id"] if self.kind == ANSWER else []), *self.first, *self.second, self.gold)

    @property
    def query(self) -> str | None:
        """Of pages, the column whose texts say which belong together."""
        return self.first[0] if self.kind == PAGE else None

    def config(self, language: str) -> str:
        return f"{self.name.lower()}-{language}"


UNDERSTANDING_TASKS: dict[str, Understanding] = {
    row.name: row
    for row in (
        Understanding("NER", ("words",), gold="tags", rest="O"),  # no entity
        Understanding("POS", ("words",), gold="tags", rest="X"),  # Universal Dependencies: what has no other tag
        Understanding("NC", ("news_title",), ("news_body",)),
        Understanding("MLQA", ("question",), ("context",), gold="answers"),
        Understanding("XNLI", ("premise",), ("hypothesis",)),
        Understanding("PAWSX", ("sentence1",), ("sentence2",)),
        Understanding("QADSM", ("query",), ("ad_title", "ad_description")),
        Understanding("WPR", ("query",), ("web_page_title", "web_page_snippet")),
        Understanding("QAM", ("question",), ("answer",)),
    )
}


def understanding_task(name: str, option: str) -> Understanding:
    """A task by its name, in any case, with or without hyphen; `option` begins the InputError about others."""
    found = UNDERSTANDING_TASKS.get(name.upper().replace("-", ""))
    if found is None:
        names = ", ".join(task.lower() for task in UNDERSTANDING_TASKS)
        generated = name.upper() in TASKS
        advice = "; `mrs train generation` trains that one" if generated else ""
        raise InputError(f"{option} {name}: not an understanding task; expected one of {names}{advice}.")
    return found
