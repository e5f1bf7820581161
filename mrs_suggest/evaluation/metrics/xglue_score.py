"""Scores of the XGLUE tasks, from the folder of a submission."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mrs_metrics.xglue_tasks import RULES, TASKS
from mrs_suggest.evaluation.scores.metric_record import Scored, ScoreRecord, TaskFigures
from mrs_suggest.evaluation.scores.metric_spec import Column, Input, Metric, MetricSpec, N, Option


@dataclass(frozen=True, kw_only=True)
class XglueScore(Metric):
    gold: Annotated[Path, Option("the folder of references")]
    language: Annotated[
        str | None, Option("score this language only", metavar="CODE", flag="lang", unset="all that a task has")
    ] = None
    rules: Annotated[
        str, Option("score POS by accuracy, as the paper says, or as the official script does", choices=RULES)
    ] = "paper"
    task: Annotated[
        tuple[str, ...] | None, Option("score these tasks", metavar="TASK", unset="those in the folder")
    ] = None
    split: Annotated[str, Option("split of the references", choices=("dev", "test"))] = "test"

    def score(self, path: Path) -> Scored:
        from mrs_metrics.xglue import aggregate, average_scores, xglue_signature
        from mrs_suggest.evaluation.scores.score_xglue import score_folder

        tasks = self.task or [task for task in TASKS if (path / task).is_dir()]
        languages = [self.language] if self.language else None
        scores = score_folder(path, self.gold, tasks, languages, self.split, self.rules)
        figures = {task: {code: aggregate(one) for code, one in of.items()} for task, of in scores.items()}
        means = average_scores({task: {code: one["score"] for code, one in of.items()} for task, of in figures.items()})
        notes = {task: {code: one.notes for code, one in of.items()} for task, of in scores.items()}
        record = ScoreRecord(
            sum(int(one["n"]) for of in figures.values() for one in of.values()),
            {**means["tasks"], **{group: means[group] for group in ("understanding", "generation", "all")}},
            {f"{task}_signature": xglue_signature(task, "+".join(of), self.rules) for task, of in scores.items()},
            tasks=TaskFigures(means["missing"], figures, notes),
        )
        return Scored(record, (), [f"{task} {code}" for task, of in scores.items() for code in of])


SPEC = MetricSpec(
    name="xglue_score",
    tells="the scores of XGLUE's eleven tasks",
    compares_with="XGLUE's figures",
    metric=XglueScore,
    reads=Input("the folder of a submission, `TASK/LANG.prediction`", folder=True),
    columns=(
        N,
        *(Column(task, task) for task in TASKS),
        Column("understanding", "AVG-U"),
        Column("generation", "AVG-G"),
        Column("all", "all"),
    ),
    main="all",
)
