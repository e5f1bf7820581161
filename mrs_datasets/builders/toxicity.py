"""Drop toxic pairs and replies from a prepared folder by scores of toxicity (Zhang et al. 2021, section 2.2)."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from mrs_datasets.builders.passes import OF_WRITING, Rows, cached_answers, ranges
from mrs_datasets.builders.pipeline.stages import Advance, Shard, ShardCounts, damaged, read_array, write_array
from mrs_datasets.catalogue import CONTEXT
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import REJECTS, PassEntry, PreparedReport
from mrs_datasets.prepared.schema import MRS, SPLITS, responses_config
from mrs_datasets.prepared.writer import rewrite
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.storage import Location
from mrs_suggest.common.io.text_cache import TextCache
from mrs_suggest.common.text.masks import mask
from mrs_suggest.common.text.text_services import Scorer

THRESHOLD, ENGLISH_THRESHOLD = 0.9, 0.5  # Zhang et al. 2021, section 2.2
ENGLISH = "en"
TEXTS = ("message", "reply")  # the columns that are scored, if a config has them
BINS = 10  # of the histogram of scores, each as wide as .1
Scores = npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rule:
    """Rows with a score above a threshold are dropped; a pair's score is the largest of its texts.

    Attributes:
        threshold: in [0, 1], compared in single precision.
        english: the second rule of the paper, whose scorer was slow: it looks only at English validation, test and
            response set. The first one looks at all rows.
    """

    scorer: Scorer
    threshold: float
    english: bool = False

    @property
    def name(self) -> str:
        """In the report, as the reason."""
        return "toxic (English scorer)" if self.english else "toxic"

    @property
    def option(self) -> str:
        """The command line's option for the scorer."""
        return "--toxicity-english" if self.english else "--toxicity"

    def covers(self, config: str, split: str, language: str) -> bool:
        """Whether it looks at a split of a config, which is in this language."""
        if not self.english:
            return True
        return language == ENGLISH and (split in SPLITS[1:] or config == responses_config(ENGLISH))

    def knows(self, language: str) -> bool:
        """Whether its scorer knows a language."""
        known = self.scorer.languages()
        return known is None or language in known

    def about(self) -> dict[str, object]:
        """Its row in the report."""
        looks_at = "English validation, test, responses" if self.english else "all"
        facts = self.scorer.facts.as_dict()
        return {"rule": self.name, **facts, "dropped above": self.threshold, "looks at": looks_at}


@dataclass(frozen=True)
class ToxicityPass:
    """Drops rows that a rule's scorer finds toxic: pairs, replies of response sets, translated pairs.

    The split of the rows that stay does not change, and neither do counts and probabilities of replies.

    Attributes:
        rules: each with its scorer; a row is dropped if any of them drops it.
        examples: how many dropped rows of each rule and split the report shows, personal data masked.
    """

    rules: tuple[Rule, ...]
    examples: int = 0
    name: str = "toxicity"

    def identity(self) -> dict[str, object]:
        """See `FolderPass.identity`; only writing depends on the thresholds."""
        facts = {rule.name: rule.scorer.facts for rule in self.rules}
        return {
            "scorers": {name: [fact.kind, fact.name, fact.version] for name, fact in facts.items()},
            OF_WRITING: {"thresholds": {rule.name: rule.threshold for rule in self.rules}, "examples": self.examples},
        }

    def require(self, data: PreparedData) -> None:
        """Refuse other data than MRS's, and a scorer that knows none of their languages."""
        if data.data_set() != MRS.name or not data.report().get("configs"):
            raise InputError(f"{data.name}: not a prepared folder of {MRS.name}; make one with `mrs data prepare mrs`.")
        data.languages()  # refuses a folder without pairs
        for rule in self.rules:
            covered = list(dict.fromkeys(part[2] for part in _parts(data) if rule.covers(*part)))
            if not covered:
                raise InputError(
                    f"{rule.option}: {data.name} has no English validation, test or response set; leave it out."
                )
            if not any(map(rule.knows, covered)):
                known = " ".join(sorted(rule.scorer.languages() or ()))
                raise InputError(
                    f"{rule.option} {rule.scorer.facts.name}: knows none of the languages of {data.name} "
                    f"({' '.join(covered)}), but {known}; pass another scorer."
                )

    def shards(self, data: PreparedData, folder: Location, cache: Path) -> list[Shard]:
        """Ranges of rows that a rule looks at and whose language its scorer knows; each becomes a file of scores."""
        found = []
        for config, split, language in _parts(data):
            rules = tuple(rule for rule in self.rules if rule.covers(config, split, language) and rule.knows(language))
            for rows in ranges(data, [(config, split)]) if rules else ():
                work = Scored(rows, language, rules, folder / f"{rows.name}.npy", cache)
                found.append(Shard(rows.name, rows.count * len(rules), work.output, work))
        return found

    def write(
        self, data: PreparedData, shards: Sequence[Shard], counts: Sequence[ShardCounts], target: Path
    ) -> tuple[PreparedReport, PassEntry]:
        """Write the folder without the rows that a rule drops; InputError if a split would be empty."""
        assert data.folder is not None
        scored = [cast(Scored, shard.work) for shard in shards]
        parts, histograms = tally(scored)
        for (config, split), part in parts.items():
            if part.rows and part.dropped == part.rows:
                worst = max(self.rules, key=lambda rule: part.above.get(rule.name, 0))
                raise InputError(
                    f"{config}/{split}: all of its {part.rows:,} rows are above {worst.option}-threshold "
                    f"{worst.threshold:g} ({worst.scorer.facts.name}), so that nothing would be left of it; raise the "
                    "threshold, or leave the language out."
                )
        changed = {
            key: partial(_kept, [one for one in scored if one.part == key])
            for key, part in parts.items()
            if part.dropped
        }
        languages = data.languages()
        pairs = {key: part for key, part in parts.items() if key[0] in languages}
        finish = partial(_finish, pairs=pairs, notes=self._unknown(data))
        report = rewrite(data.folder, target, data.report(), data.record(), changed, finish)
        configs = data.report()["configs"]
        came = sum(facts["rows"] for code in languages for facts in configs[code].values())
        reasons = {rule.name: sum(part.reasons.get(rule.name, 0) for part in pairs.values()) for rule in self.rules}
        about: dict[str, Any] = {
            "models": [rule.about() for rule in self.rules],
            "parts": {
                f"{config}/{split}": {"rows": part.rows, "dropped": part.dropped, **part.above}
                for (config, split), part in parts.items()
            },
            "scores": histograms,
        }
        if self.examples:
            about[REJECTS] = _examples(scored, self.examples)
        out = came - sum(reasons.values())
        return report, {"name": self.name, "in": came, "out": out, "dropped": reasons, "about": about}

    def _unknown(self, data: PreparedData) -> list[str]:
        """Notes about rows that were not scored, since the scorer does not know their language."""
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


@dataclass(frozen=True)
class Scored:
    """Scores a range of rows by some rules; picklable if their scorers are."""

    rows: Rows
    language: str
    rules: tuple[Rule, ...]
    output: Location
    cache: Path

    @property
    def part(self) -> tuple[str, str]:
        """Config and split of the rows."""
        return self.rows.config, self.rows.split

    def __call__(self, advance: Advance) -> ShardCounts:
        """Write the scores, float32 (rules, rows); each distinct text is scored once."""
        table = self.rows.read()
        columns = [table[name].combine_chunks() for name in TEXTS if name in table.column_names]
        if CONTEXT in table.column_names:  # an empty one adds no text
            columns.append(pc.if_else(pc.equal(table[CONTEXT], ""), table["message"], table[CONTEXT]).combine_chunks())
        encoded = pa.chunked_array(columns).combine_chunks().dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        places = encoded.indices.to_numpy().astype(np.int64).reshape(len(columns), table.num_rows)
        found = np.empty((len(self.rules), self.rows.count), np.float32)
        for number, rule in enumerate(self.rules):
            found[number] = self._scores_of(rule.scorer, texts, advance)[places].max(axis=0)
        write_array(self.output, found)
        return {"rows": self.rows.count, "texts": len(texts)}

    def _scores_of(self, scorer: Scorer, texts: Sequence[str], advance: Advance) -> Scores:
        """The scores of distinct texts, from the cache if it has them; new ones are added to it batch by batch."""

        def score(some: Sequence[str]) -> list[float]:
            scores = scorer.score(some, self.language)
            wrong = next((score for score in scores if not 0 <= score <= 1), None)  # also if it is not a number
            if wrong is not None:
                raise InputError(
                    f"{scorer.facts.name}: gave {wrong!r} as the score of a text; expected numbers from 0 to 1."
                )
            return scores

        if scorer.at_once is None:
            scores = score(texts)
            advance(self.rows.count)
            return np.array(scores, np.float32)
        with TextCache[float](self.cache, scorer.facts, self.language) as cache:
            known = cache.known(texts)
            # Texts of similar length together, which a model processes fastest.
            missing = sorted((text for text in texts if text not in known), key=len)
            known |= cached_answers(cache, missing, scorer.at_once, score, self.rows.count, advance)
        return np.array([known[text] for text in texts], np.float32)

    def scores(self) -> Scores:
        """(rules, rows) the written scores; InputError if the file is damaged."""
        stored, shape = read_array(self.output), (len(self.rules), self.rows.count)
        found = np.asarray(stored, np.float32)
        if found.shape != shape or stored.dtype != np.float32 or not np.all((found >= 0) & (found <= 1)):
            raise damaged(self.output, f"it does not have {shape[0]} scores in [0, 1] for each of {shape[1]:,} rows")
        return found

    def above(self) -> npt.NDArray[np.bool_]:
        """(rules, rows): whether a rule drops a row."""
        thresholds = np.array([rule.threshold for rule in self.rules], np.float32)
        return np.asarray(self.scores() > thresholds[:, None])


@dataclass
class PartTally:
    """Counts of one split.

    Attributes:
        above: rows above the threshold, by rule; a row may be above both.
        reasons: dropped rows by the first rule that drops them.
    """

    language: str
    rows: int = 0
    above: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)

    @property
    def dropped(self) -> int:
        return self.reasons.total()


def tally(ranges: Sequence[Scored]) -> tuple[dict[tuple[str, str], PartTally], dict[str, dict[str, int]]]:
    """The counts by config and split, and by rule how many rows have a score in [0, .1), [.1, .2) ..."""
    parts: dict[tuple[str, str], PartTally] = {}
    scores: dict[str, dict[str, int]] = {}
    for scored in ranges:
        part = parts.setdefault(scored.part, PartTally(scored.language))
        part.rows += scored.rows.count
        values, above = scored.scores(), scored.above()
        first = above & (np.cumsum(above, axis=0) == 1)
        for number, rule in enumerate(scored.rules):
            part.above[rule.name] += int(above[number].sum())
            part.reasons[rule.name] += int(first[number].sum())
            counts, _ = np.histogram(values[number], bins=BINS, range=(0, 1))
            row = scores.setdefault(rule.name, {})
            for place, count in enumerate(counts.tolist()):
                row[f"from .{place}"] = row.get(f"from .{place}", 0) + count
    return parts, scores


def _parts(data: PreparedData) -> list[tuple[str, str, str]]:
    """Config, split and language of all rows."""
    record = data.record()
    return [(config, split, record.language_of(config)) for config in data.configs() for split in data.splits(config)]


def _kept(ranges_of_part: Sequence[Scored]) -> Iterable[pa.Table]:
    """The rows that no rule drops."""
    return (scored.rows.read().filter(pa.array(~scored.above().any(axis=0))) for scored in ranges_of_part)


def _finish(report: PreparedReport, pairs: dict[tuple[str, str], PartTally], notes: Sequence[str]) -> None:
    """Note what was not scored, and what a build's languages lost."""
    report["notes"] = [*report.get("notes", []), *notes]
    for part in pairs.values() if "pipeline" in report else ():
        row = report["pipeline"]["languages"][part.language]
        for reason, count in part.reasons.items():
            if count:
                row["kept"] -= count
                row[reason] = row.get(reason, 0) + count


def _examples(ranges: Sequence[Scored], most: int) -> dict[str, list[dict[str, object]]]:
    """Up to `most` dropped rows of each rule and split, with personal data masked."""
    found: dict[str, list[dict[str, object]]] = {}
    left: dict[tuple[str, tuple[str, str]], int] = {}
    for scored in ranges:
        above, values = scored.above(), scored.scores()
        for number, rule in enumerate(scored.rules):
            key = (rule.name, scored.part)
            chosen = np.flatnonzero(above[number])[: left.get(key, most)].tolist()
            left[key] = left.get(key, most) - len(chosen)
            if chosen:
                found.setdefault(rule.name, []).extend(_shown(scored, chosen, values[number]))
    return found


def _shown(scored: Scored, chosen: list[int], values: Scores) -> Iterator[dict[str, object]]:
    table = scored.rows.read()
    columns = [name for name in TEXTS if name in table.column_names]
    for place, row in zip(chosen, table.select(columns).take(chosen).to_pylist(), strict=True):
        masked = {name: mask(row[name]) for name in columns}
        score = round(float(values[place]), 4)
        yield {"part": "/".join(scored.part), "score": score, **masked}
