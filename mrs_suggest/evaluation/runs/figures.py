"""The figures of a run's record, task by task, in one shape: part and language -> figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.models.starting_points import GENERATION, MULTIPLE_CHOICE, PRETRAINING, RETRIEVAL, UNDERSTANDING
from mrs_suggest.suggest.answering import MODEL

Record = Mapping[str, Any]
Scope = tuple[str, str]  # part (a task, a view, a split; "" where there is one alone) and language
Signatures = Mapping[str, str]  # a metric's name in signatures -> how it was computed
Read = Iterator[tuple[Scope, Record, Signatures]]
REPLY = "suggests replies"  # what a run does, in sentences
CHOICES = "answers multiple-choice questions"
NBEST = "nbest:"  # begins the field with the most suggestions of a message
VERSION = "|version:"  # begins the last field of a signature
UNIT = "unit:"
WEIGHTED = "weighted"


@dataclass(frozen=True)
class Metric:
    """How a figure is shown.

    Attributes:
        better: 1: high figures are, -1: low ones; 0: neither end is (random replies have the highest Dist).
        signature: the metric in a record's signatures; "" where all of its figures have the same.
        interval: key of its 95 % interval next to the figure.
        averaged: whether a mean over languages says something; perplexities depend on the language.
    """

    key: str
    title: str
    better: int = 1
    digits: int = 4
    signature: str = ""
    interval: str = ""
    averaged: bool = True


ROUGE, RANKING = "mrs_rouge", "response_ranking"
REPLY_METRICS = tuple(
    Metric(key, **shown) for key, shown in read_packaged("mrs_suggest.evaluation.runs", "reply_metrics.yaml").items()
)
SCORE = Metric("score", "score", interval="interval")
PERPLEXITY = Metric("perplexity", "perplexity", -1, 2, "perplexity", averaged=False)


@dataclass(frozen=True)
class Task:
    """The figures of one kind of run that can be compared.

    Attributes:
        name: what its runs do, in words.
        read: gives a record's parts and languages, each with its figures and their signatures.
        metrics: those with a title; a record's other figures can be asked for by their key.
        main: keys of those shown where none is asked for; empty: all.
    """

    name: str
    read: Callable[[Record], Read]
    metrics: tuple[Metric, ...]
    main: tuple[str, ...] = ()

    def metric(self, key: str) -> Metric:
        return next((metric for metric in self.metrics if metric.key == key), Metric(key, key, 0))


@dataclass(frozen=True)
class Run:
    """A finished run.

    Attributes:
        name: unique within the comparison.
        folder: of its predictions; None where there is the record alone.
    """

    name: str
    folder: Path | None
    record: Record

    @property
    def task(self) -> Task:
        """The task in which it can be compared; InputError if no task is known for the trainer."""
        trainer = str(self.record["trainer"])
        if trainer not in TASKS:
            raise InputError(f"{self.name}: runs of the trainer {trainer!r} cannot be compared; leave it out.")
        return TASKS[trainer]

    @cached_property
    def _read(self) -> list[tuple[Scope, Record, Signatures]]:
        try:
            found = list(self.task.read(self.record))
            if all(isinstance(figures, Mapping) for _, figures, _ in found):
                return found
        except (KeyError, TypeError, AttributeError):
            pass
        raise InputError(f"{self.name}: its run.json lacks figures that a run has; train the model again.")

    @cached_property
    def scopes(self) -> dict[Scope, Record]:
        """Its figures by part and language; InputError if the record is not one of its trainer."""
        return {scope: figures for scope, figures, _ in self._read}

    @cached_property
    def signatures(self) -> dict[Scope, Signatures]:
        """How its figures were computed."""
        return {scope: texts for scope, _, texts in self._read}

    @property
    def seed(self) -> str:
        return str(self.record.get("seed", ""))


def in_words(scope: Scope) -> str:
    return " ".join(filter(None, scope))


def without_version(signature: str) -> str:
    """A signature without the version of this package and the unit, which do not change how a figure is computed, and
    with today's name of the official rules without sentences."""
    fields = [one for one in (signature.rpartition(VERSION)[0] or signature).split("|") if not one.startswith(UNIT)]
    renamed = "sent:no" in fields and not any(one.startswith("tok:mecab") for one in fields)
    return "|".join("rules:mrs" if renamed and one == "rules:official" else one for one in fields)


def rules_of(signature: str) -> tuple[str, int | None]:
    """How a figure is computed, whatever the model: without the version, and the most suggestions that it gave.

    >>> rules_of("mrs_rouge|rules:paper|nbest:2|lang:de|version:0.2.0")
    ('mrs_rouge|rules:paper|lang:de', 2)
    """
    fields = without_version(signature).split("|")
    given = next((int(field.removeprefix(NBEST)) for field in fields if field.startswith(NBEST)), None)
    return "|".join(field for field in fields if not field.startswith(NBEST)), given


def shared_task(runs: Sequence[Run]) -> Task:
    """The task of all the runs; InputError if they have several."""
    first = runs[0]
    for run in runs[1:]:
        if run.task.name != first.task.name:
            raise InputError(
                f"{run.name}: {run.task.name}, and {first.name} {first.task.name}; compare runs of one task."
            )
    return first.task


def _reply(record: Record) -> Read:
    metrics, price = record["metrics"], record.get("answered", {}).get("price_per_1000")
    own = {"milliseconds": record.get("milliseconds", {}).get(MODEL), "price_per_1000": price}
    told = {key: float(value) for key, value in own.items() if value is not None}
    for code, texts in metrics["signatures"].items():
        yield ("", code), {**metrics["systems"][MODEL][code], **told}, texts


def _understanding(record: Record) -> Read:
    for task, of in record["metrics"]["tasks"].items():
        for code, found in of.items():
            yield (task, code), found, {"": str(found.get("signature", ""))}


def _text_generation(record: Record) -> Read:
    task, metrics = record["plan"]["task"], record["metrics"]
    for code, found in metrics["systems"][task].items():
        if code in metrics["signatures"]:
            yield (task, code), found, {"": str(metrics["signatures"][code])}


def _staple(record: Record) -> Read:
    metrics = record["metrics"]
    for code, found in metrics["systems"]["model"].items():
        yield ("", code), found, {"": str(metrics.get("signature", ""))}


def _pretraining(record: Record) -> Read:
    """`SPLIT_perplexity` and `SPLIT_OBJECTIVE_perplexity`, perhaps with `_LANG`."""
    metrics = record["metrics"]
    for name, value in metrics.items():
        of, perplexity, language = name.partition("_perplexity")
        if perplexity:
            part = of.replace("_", ", ")
            text = metrics.get(f"{part.partition(', ')[2]}_signature", metrics.get("signature", ""))
            yield (part, language.removeprefix("_") or "all"), {"perplexity": value}, {"perplexity": str(text)}


def _choice(record: Record) -> Read:
    for view, of in record["metrics"]["systems"].items():
        for code, found in of.items():
            if code != "macro":
                yield (view, code), found, {}


COSTS = ("milliseconds", "price_per_1000")  # for all languages together; shown where a model answered just now
_MAIN = (WEIGHTED, "mrr", "dist1", "dist2", "perplexity", "wrong_language", *COSTS)
_REPLY = Task(REPLY, _reply, REPLY_METRICS, _MAIN)
TASKS: Mapping[str, Task] = {
    RETRIEVAL: _REPLY,
    GENERATION: _REPLY,
    "causal": _REPLY,
    "language_model": _REPLY,  # `mrs_suggest.evaluation.model_answers`
    UNDERSTANDING: Task("does understanding tasks", _understanding, (SCORE,)),
    "text_generation": Task("writes texts", _text_generation, (SCORE, PERPLEXITY)),
    "staple_generation": Task(
        "writes translations", _staple, (Metric("weighted_macro_f1", "weighted F1", interval="interval"), PERPLEXITY)
    ),
    PRETRAINING: Task("was pretrained", _pretraining, (PERPLEXITY,)),
    MULTIPLE_CHOICE: Task(CHOICES, _choice, (Metric("accuracy", "accuracy", interval="interval"),)),
}
