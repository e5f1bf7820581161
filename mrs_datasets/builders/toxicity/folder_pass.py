"""The pass over a prepared folder that drops toxic pairs and replies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from mrs_datasets.builders.passes import OF_WRITING, ranges
from mrs_datasets.builders.pipeline.stages import Shard, ShardCounts
from mrs_datasets.builders.toxicity.rules import Rule
from mrs_datasets.builders.toxicity.scoring import score_rows
from mrs_datasets.builders.toxicity.tally import PartTally, Scored, examples, require_rows_left, tally
from mrs_datasets.prepared.pass_tables import REJECTS
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import PassEntry, PreparedReport
from mrs_datasets.prepared.rewriting import rewrite
from mrs_datasets.prepared.schema import MRS
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location


@dataclass(frozen=True)
class ToxicityPass:
    """Drops rows that a rule's scorer finds toxic: pairs, replies of response sets, translated pairs.

    The split of the rows that stay does not change, and neither do counts and probabilities of replies.

    Attributes:
        rules: each with its scorer; a row that one of them drops is gone.
        examples: how many dropped rows of each rule and split the report shows, personal data masked.
    """

    rules: tuple[Rule, ...]
    examples: int = 0
    name: str = "toxicity"

    def identity(self) -> dict[str, object]:
        """The scorers; thresholds concern writing alone."""
        facts = {rule.name: rule.scorer.facts for rule in self.rules}
        return {
            "scorers": {name: [fact.kind, fact.name, fact.version] for name, fact in facts.items()},
            OF_WRITING: {
                "thresholds": {rule.name: rule.threshold for rule in self.rules},
                "examples": self.examples,
            },
        }

    def require(self, data: PreparedData) -> None:
        """Refuse other data than MRS's, and a scorer that knows none of their languages.

        Raises:
            InputError: as above.
        """
        if data.data_set() != MRS.name or not data.report().get("configs"):
            raise InputError(f"{data.name}: not a prepared folder of {MRS.name}; make one with `mrs data prepare mrs`.")
        data.languages()  # refuses a folder without pairs
        for rule in self.rules:
            covered = list(dict.fromkeys(part[2] for part in _parts(data) if rule.covers(*part)))
            if not covered:
                raise InputError(
                    f"{rule.options[0]}: {data.name} has no English validation, test or response set; leave it out."
                )
            if not any(map(rule.knows, covered)):
                known = " ".join(sorted(rule.scorer.languages() or ()))
                raise InputError(
                    f"{rule.options[0]} {rule.scorer.facts.name}: knows none of the languages of {data.name} "
                    f"({' '.join(covered)}), but {known}; pass another scorer."
                )

    def shards(self, data: PreparedData, folder: Location, cache: Path) -> list[Shard]:
        """Ranges of rows, each of which becomes a file of scores."""
        return [
            Shard(
                scored.rows.name,
                scored.rows.count * len(scored.rules),
                scored.output,
                partial(_score, scored, cache),
            )
            for scored in self._scored(data, folder)
        ]

    def write(
        self, data: PreparedData, shards: Sequence[Shard], counts: Sequence[ShardCounts], target: Path
    ) -> tuple[PreparedReport, PassEntry]:
        """Write the folder without the rows that a rule drops.

        Raises:
            InputError: a split would be empty, or a file of scores is damaged.
        """
        assert data.folder is not None
        scored = self._scored(data, shards[0].output.parent if shards else target)
        parts, histograms = tally(scored)
        require_rows_left(parts, self.rules)
        changed = {
            key: partial(_kept, [one for one in scored if (one.rows.config, one.rows.split) == key])
            for key, part in parts.items()
            if part.dropped
        }
        languages = data.languages()
        pairs = {key: part for key, part in parts.items() if key[0] in languages}
        unknown = self._unknown(data)
        report = rewrite(
            data.folder, target, data.report(), data.record(), changed, partial(_finish, pairs=pairs, notes=unknown)
        )
        configs = data.report()["configs"]
        came = sum(facts["rows"] for code in languages for facts in configs[code].values())
        reasons = {rule.name: sum(part.reasons.get(rule.name, 0) for part in pairs.values()) for rule in self.rules}
        about: dict[str, Any] = {
            "models": [rule.about() for rule in self.rules],
            "parts": {f"{config}/{split}": part.as_dict() for (config, split), part in parts.items()},
            "scores": histograms,
        }
        if self.examples:
            about[REJECTS] = examples(scored, self.examples)
        out = came - sum(reasons.values())
        return report, {"name": self.name, "in": came, "out": out, "dropped": reasons, "about": about}

    def _scored(self, data: PreparedData, folder: Location) -> list[Scored]:
        """The ranges of rows that a rule looks at and whose language its scorer knows."""
        found = []
        for config, split, language in _parts(data):
            rules = tuple(rule for rule in self.rules if rule.covers(config, split, language) and rule.knows(language))
            if rules:
                found += [
                    Scored(rows, language, rules, folder / f"{rows.name}.npy")
                    for rows in ranges(data, [(config, split)])
                ]
        return found

    def _unknown(self, data: PreparedData) -> list[str]:
        """Notes about rows that were not scored, since their language is not known."""
        notes = []
        for rule in self.rules:
            rows: Counter[str] = Counter()
            for config, split, language in _parts(data):
                if rule.covers(config, split, language) and not rule.knows(language):
                    rows[language] += data.report()["configs"][config][split]["rows"]
            notes += [
                f"{language}: {count:,} rows were not scored by {rule.scorer.facts.name} ({rule.name}), which does not "
                "know the language."
                for language, count in rows.items()
            ]
        return notes


def _score(scored: Scored, cache: Path, advance: Any) -> ShardCounts:
    return score_rows(scored.rows, scored.language, scored.rules, scored.output, cache, advance)


def _parts(data: PreparedData) -> list[tuple[str, str, str]]:
    """Config, split and language of all rows."""
    record = data.record()
    return [(config, split, record.language_of(config)) for config in data.configs() for split in data.splits(config)]


def _kept(ranges_of_part: Sequence[Scored]) -> Iterable[pa.Table]:
    return (scored.kept() for scored in ranges_of_part)


def _finish(report: PreparedReport, pairs: dict[tuple[str, str], PartTally], notes: Sequence[str]) -> None:
    """Note what was not scored, and what a build's languages lost."""
    report["notes"] = [*report.get("notes", []), *notes]
    for part in pairs.values() if "pipeline" in report else ():
        row = report["pipeline"]["languages"][part.language]
        for reason, count in part.reasons.items():
            if count:
                row["kept"] -= count
                row[reason] = row.get(reason, 0) + count
