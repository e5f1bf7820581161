"""The stages of a build: their shared state, the protocol of a stage, and running them in order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypedDict

from mrs_datasets.builders.pipeline.stages import (
    Engine,
    FileFacts,
    Shard,
    ShardCounts,
    name_and_bytes,
    run_stage,
    timed,
)
from mrs_datasets.builders.pipeline.work_folder import WorkFolder
from mrs_datasets.builders.pipeline.workers import Workers
from mrs_datasets.builders.reddit.cleaning.language import KEPT, Outcomes
from mrs_datasets.builders.reddit.plan import BuildPlan
from mrs_datasets.builders.reddit.settings import Settings
from mrs_suggest.common.io.storage import Location

Counts = list[ShardCounts]  # of the shards of a stage, in their order


StageCounts = TypedDict("StageCounts", {"stage": str, "in": int, "out": int, "dropped": dict[str, int]})


@dataclass
class Pipeline:
    """What the stages did, for `report.json`: counts that add up, and seconds, which are not reproducible."""

    plan: BuildPlan
    settings: Settings
    language_model: FileFacts
    stages: list[StageCounts] = field(default_factory=list)
    languages: dict[str, dict[str, int]] = field(default_factory=dict)
    leakage: dict[str, dict[str, int]] = field(default_factory=dict)
    repairs: dict[str, int] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    rejects: dict[str, list[str]] = field(default_factory=dict)
    sha256: dict[str, str] = field(default_factory=dict)  # of the dumps that were read, by name
    lossy: dict[str, str] = field(default_factory=dict)  # dumps that were not read completely: why
    engine: dict[str, str] = field(default_factory=dict)  # its versions, if it is another than this machine's processes

    def add(self, stage: str, came: int, dropped: Mapping[str, int]) -> int:
        """Record a stage; return its input less what was dropped."""
        dropped = {reason: count for reason, count in dropped.items() if count}
        self.stages.append({"stage": stage, "in": came, "out": came - sum(dropped.values()), "dropped": dropped})
        return came - sum(dropped.values())

    def count(self, outcomes: Mapping[tuple[str, str], int]) -> None:
        """Add the outcomes of pairs to the languages' funnels."""
        for (language, outcome), pairs in sorted(outcomes.items()):
            row = self.languages.setdefault(language, {})
            row[outcome] = row.get(outcome, 0) + pairs

    def leave_out(self, language: str, reason: str) -> None:
        """Count a language's kept pairs as dropped, in its funnel and in the last stage."""
        row, stage = self.languages[language], self.stages[-1]
        pairs = row.pop(KEPT)
        row[reason] = row.get(reason, 0) + pairs
        stage["dropped"][reason] = stage["dropped"].get(reason, 0) + pairs
        stage["out"] -= pairs

    def as_dict(self) -> dict[str, object]:
        return {
            "dumps": [
                {**name_and_bytes(path), "sha256": self.sha256.get(path.name), "lossy": self.lossy.get(path.name)}
                for path in self.plan.files
            ],
            "language_model": self.language_model,
            "profile": self.settings.profile,
            "departures": self.settings.departures(),
            "stages": self.stages,
            "languages": self.languages,
            "leakage": self.leakage,
            "repairs": self.repairs,
            "warnings": self.warnings,
            **({"engine": self.engine} if self.engine else {}),
            **({"rejects": self.rejects} if self.rejects else {}),
        }


@dataclass
class Build:
    """What the stages of one build share.

    Attributes:
        out: the data set's folder; `overwrite`: it may be replaced.
        language_model: of fastText.
        work: the folder of finished work.
        pipeline: what the stages did; each stage adds to it.
        say: prints a line.
        strict: a dump that cannot be read completely stops the build.
        months: the files of the stage `months`, in the order of the dumps.
        outcomes: of all pairs, from the stage `pairs` on.
        report: of the data set, once it is written.
    """

    plan: BuildPlan
    settings: Settings
    language_model: Path
    out: Location
    overwrite: bool
    work: WorkFolder
    pipeline: Pipeline
    say: Callable[[str], None]
    strict: bool = False
    months: list[Location] = field(default_factory=list)
    outcomes: Outcomes = field(default_factory=Counter)
    report: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Stage:
    """One stage of a build.

    Attributes:
        name: of its folder, its bar and its seconds.
        finish: called with the build, the shards and their counts once all are done; adds the stage to the funnel.
        shards: its work in pieces, each of which is done once; None: it has none, and `finish` does all the work in the
            build's own process, again in every resumed build.
        unit: of the shards' sizes, for the bar.
        scale: whether the bar abbreviates numbers (1.2G).
    """

    name: str
    finish: Callable[[Build, Sequence[Shard], Counts], None]
    shards: Callable[[Build], list[Shard]] | None = None
    unit: str = ""
    scale: bool = False

    def run(self, build: Build, engine: Engine) -> None:
        """Do the remaining work.

        Raises:
            InputError: as `Engine.do`; finished work stays.
        """
        shards: list[Shard] = []
        counts: Counts = []
        if self.shards:
            build.work.stage(self.name)
            shards = self.shards(build)
            counts = run_stage(build.work, self.name, shards, engine, self.unit, self.scale)
        self.finish(build, shards, counts)


def run_stages(stages: Iterable[Stage], build: Build, engine: Engine | None = None) -> dict[str, float]:
    """Run the stages in order; return the seconds of each.

    Args:
        engine: processes the shards, and stays open; None: the plan's processes, which end before a stage without
            shards, to free their memory.

    Raises:
        InputError: as the stages.
    """
    seconds: dict[str, float] = {}
    with ExitStack() as stack:
        used = engine if engine is not None else stack.enter_context(Workers(build.plan.workers))
        for stage in stages:
            if not stage.shards:
                stack.close()
            with timed(seconds, stage.name):
                stage.run(build, used)
    return seconds
