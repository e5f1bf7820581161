"""Machine-translated training pairs and response sets (Zhang et al. 2021, sections 2.1 and 3.2), as a pass over a
prepared folder."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mrs_datasets.builders.passes import Rows, ranges
from mrs_datasets.builders.pipeline.stages import Shard, ShardCounts, name_and_bytes, summed
from mrs_datasets.builders.translation.outcomes import KEPT, Identifier
from mrs_datasets.builders.translation.response_sets import merged, organic
from mrs_datasets.builders.translation.shards import CODE, ROWS, Translation
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import PassEntry, PreparedReport
from mrs_datasets.prepared.rewriting import rewrite
from mrs_datasets.prepared.schema import MRS, MT_PREFIX, PAIR_SCHEMA, RESPONSE_SCHEMA, responses_config
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.text.languages import require_any_language
from mrs_suggest.common.text.text_services import Translator

TRAIN = "train"
DUPLICATE = "in the set already"
PROBABILITIES = (
    "Translated replies have no count; their log_prob is that of a reply that was not seen, or, in a language that had "
    "no response set, that of the replies they translate."
)
PAIR_COLUMNS, REPLY_COLUMN = ("message", "reply"), ("reply",)


@dataclass(frozen=True)
class TranslationPass:
    """Translates the training pairs of a language to `mt-LANG`, and its response set into those of others.

    Attributes:
        translators: target language -> its translator.
        source: the language that is translated; English, as in the paper.
        identifier: names the language of translations; None: it is not checked.
        language_model: the identifier's file.
        replace: replace pairs and replies that were translated before.
        pairs: the most pairs that are translated, the first of the split; None: all. The paper takes 19 million of
            English (section 3.2).
    """

    translators: Mapping[str, Translator]
    source: str = "en"
    identifier: Identifier | None = None
    language_model: Path | None = None
    replace: bool = False
    pairs: int | None = None
    name: str = "translation"

    def __post_init__(self) -> None:
        require_targets(self.source, list(self.translators))
        if self.pairs is not None and self.pairs < 1:
            raise InputError(f"--pairs {self.pairs}: expected a whole number from 1.")
        for target, translator in self.translators.items():
            translator.require(self.source, target)

    def identity(self) -> dict[str, object]:
        model = self.language_model
        return {
            "from": self.source,
            "pairs": self.pairs,
            "translators": {
                target: {**each.facts.as_dict(), "settings": dict(each.settings)}
                for target, each in self.translators.items()
            },
            "language model": None if model is None else dict(name_and_bytes(model)),
        }

    def require(self, data: PreparedData) -> None:
        if data.data_set() != MRS.name:
            raise InputError(
                f"{data.name}: holds {data.data_set()}, and pairs and response sets of mrs are translated."
            )
        if not data.report().get("configs"):
            raise InputError(f"{data.name}: has no report.json with its files; prepare the folder again.")
        configs = data.configs()
        if self.source not in configs or not data.files(self.source, TRAIN):
            raise InputError(
                f"{data.name}: has no training pairs of {self.source} to translate, only {' '.join(configs)}; pass "
                "--from LANG for another language."
            )
        there = [f"{MT_PREFIX}{target}" for target in self.translators if f"{MT_PREFIX}{target}" in configs]
        if there and not self.replace:
            raise InputError(
                f"{data.name}: has {' '.join(there)} already; pass --replace to translate again, or leave "
                f"{' '.join(name.removeprefix(MT_PREFIX) for name in there)} out."
            )

    def shards(self, data: PreparedData, folder: Location, cache: Path) -> list[Shard]:
        return [
            Shard(f"{each.target}.{each.rows.name}", each.rows.count, each.output, each)
            for target in self.translators
            for each in self._work(data, target, folder, cache)
        ]

    def _work(self, data: PreparedData, target: str, folder: Location, cache: Path) -> list[Translation]:
        """The shards' work for one language, in order: the pairs, then the response set."""
        parts = {self.source: PAIR_COLUMNS, responses_config(self.source): REPLY_COLUMN}
        found = []
        for config, columns in parts.items():
            there = ranges(data, [(config, TRAIN)])
            for rows in _first(there, self.pairs) if columns == PAIR_COLUMNS and self.pairs else there:
                output = folder / f"{target}.{rows.name}.arrow"
                translator, identifier = self.translators[target], self.identifier
                found.append(Translation(rows, columns, self.source, target, translator, identifier, output, cache))
        return found

    def write(
        self, data: PreparedData, shards: Sequence[Shard], counts: Sequence[ShardCounts], target: Path
    ) -> tuple[PreparedReport, PassEntry]:
        assert data.folder is not None
        parts: dict[str, list[tuple[Translation, Counter[str]]]] = {}
        for shard, found in zip(shards, counts, strict=True):
            work = cast(Translation, shard.work)
            config = f"{MT_PREFIX}{work.target}" if work.columns == PAIR_COLUMNS else responses_config(work.target)
            parts.setdefault(config, []).append((work, Counter(cast("dict[str, int]", dict(found)))))
        totals = {config: summed(counted for _, counted in part) for config, part in parts.items()}
        changed: dict[tuple[str, str], Callable[[], Iterator[pa.Table]]] = {}
        for config, part in parts.items():
            works = [work for work, _ in part]
            if config.startswith(MT_PREFIX):
                _require_pairs(config, totals[config])
                changed[config, TRAIN] = partial(_pairs, works)
            else:
                table, doubles = self._response_set(data, config, works)
                totals[config][DUPLICATE] += doubles
                if table.num_rows:
                    changed[config, TRAIN] = partial(iter, [table])
        report = rewrite(data.folder, target, data.report(), data.record(), changed, self._note)
        return report, self._entry(totals)

    def _response_set(self, data: PreparedData, config: str, works: Sequence[Translation]) -> tuple[pa.Table, int]:
        """The merged set of a language, and how many translated replies it had already."""
        own = organic(pa.concat_tables(tables)) if (tables := _read(data, config)) else None
        came = pa.concat_tables(_read(data, responses_config(self.source)))
        replies: list[tuple[str, float | None]] = []
        done = 0
        for work in works:
            table = work.read()
            log_probs = came["log_prob"].slice(done, table.num_rows).to_pylist()
            done += table.num_rows
            rows = zip(table["reply"].to_pylist(), log_probs, table[CODE].to_pylist(), strict=True)
            replies += [(reply, log_prob) for reply, log_prob, code in rows if code == KEPT]
        table = merged(own, replies)
        added = table.num_rows - (0 if own is None else own.num_rows)
        return table, len(replies) - added

    def _note(self, report: PreparedReport) -> None:
        if not any(PROBABILITIES in note for note in report["notes"]):
            report["notes"].append(PROBABILITIES)
        for target, translator in self.translators.items():
            begin = f"{MT_PREFIX}{target} and the replies of {responses_config(target)} with the source `translated`"
            report["notes"] = [note for note in report["notes"] if not note.startswith(begin)]
            facts = translator.facts
            licence = f", licence {facts.licence}" if facts.licence else ""
            report["notes"].append(
                f"{begin} were translated from {self.source} by {facts.name} ({facts.kind} {facts.version}{licence})."
            )

    def _entry(self, totals: Mapping[str, Counter[str]]) -> PassEntry:
        all_parts = summed(totals.values())
        came = all_parts.pop(ROWS, 0)
        dropped = {reason: count for reason, count in sorted(all_parts.items()) if count}
        about: dict[str, Any] = {
            "models": [
                {"for": target, **each.facts.as_dict(), "settings": dict(each.settings)}
                for target, each in self.translators.items()
            ],
            "counts": {config: _counted(total) for config, total in totals.items()},
            "notes": [] if self.identifier else ["The language of translations was not checked: no language model."],
        }
        return {"name": self.name, "in": came, "out": came - sum(dropped.values()), "dropped": dropped, "about": about}


def require_targets(source: str, targets: Sequence[str]) -> None:
    """Refuse what is not a language, comes twice, or is the language that is translated.

    Raises:
        InputError: the sentence names it.
    """
    require_any_language(source, "--from")
    for number, target in enumerate(targets):
        require_any_language(target, "--to")
        if target == source:
            raise InputError(f"--to {target}: is the language that is translated; name another one.")
        if target in targets[:number]:
            raise InputError(f"--to {target}: is named twice; name each language once.")


def _first(there: Sequence[Rows], most: int) -> Iterator[Rows]:
    """The first rows of ranges."""
    for rows in there:
        if most > 0:
            yield replace(rows, count=min(rows.count, most))
        most -= rows.count


def _counted(total: Counter[str]) -> dict[str, int]:
    dropped = {reason: count for reason, count in sorted(total.items()) if count and reason != ROWS}
    return {"in": total[ROWS], "kept": total[ROWS] - sum(dropped.values()), **dropped}


def _require_pairs(config: str, total: Counter[str]) -> None:
    counted = _counted(total)
    if not counted["kept"]:
        reasons = ", ".join(f"{reason} {count:,}" for reason, count in counted.items() if reason not in ("in", "kept"))
        raise InputError(
            f"{config}: none of {counted['in']:,} pairs is left ({reasons}); check that the translator writes "
            f"{config.removeprefix(MT_PREFIX)}, or leave it out."
        )


def _pairs(works: Sequence[Translation]) -> Iterator[pa.Table]:
    for work in works:
        table = work.read()
        kept = table.filter(pc.equal(table[CODE], KEPT))
        yield kept.select(PAIR_SCHEMA.names).cast(PAIR_SCHEMA)


def _read(data: PreparedData, config: str) -> list[pa.Table]:
    return [pq.read_table(path).cast(RESPONSE_SCHEMA) for path in data.files(config, TRAIN)]
