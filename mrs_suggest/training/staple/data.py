"""The data of a run of STAPLE: prompts with their accepted translations by track, and general translations."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow.compute as pc
from datasets import Dataset

from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.texts.text_sources import PairSource, Reading, languages_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED, examples_hash, sample_rows
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.generation.options import GenerationArguments
from mrs_suggest.training.options import asked_languages
from mrs_suggest.training.staple.draws import Pairs, pairs_of
from mrs_suggest.training.staple.options import COPIES, FIRST, TO_ENGLISH, TOP

ENGLISH = "en"  # the language of the prompts
COLUMNS = ("id", "prompt", "reference", "translations")


@dataclass(frozen=True)
class StapleData:
    """The data that a run trains on, chooses its checkpoint by, and is tested on.

    Attributes:
        train, validation, test: language -> prompts, with the columns `COLUMNS`; a test split without accepted
            translations is written and not scored; a language may lack one.
        parallel: language -> general translations, columns `message` and `reply`.
        complete: languages whose test split is the task's whole one.
        origin: id of the data, and their revision or content hash; their licence.
    """

    draw: str
    number: int | None
    direction: str
    sampling_alpha: float
    train: dict[str, Dataset]
    validation: dict[str, Dataset]
    test: dict[str, Dataset]
    parallel: dict[str, Dataset] = field(default_factory=dict)
    parallel_sources: list[Record] = field(default_factory=list)
    complete: Sequence[str] = ()
    origin: Record = field(default_factory=dict)

    @property
    def languages(self) -> list[str]:
        return list(dict.fromkeys([*self.train, *self.parallel, *self.validation, *self.test]))

    def pairs(self) -> dict[str, Pairs]:
        return {code: pairs_of(rows, self.draw, self.number, self.direction) for code, rows in self.train.items()}

    def texts(self) -> Iterator[str]:
        """All texts of the training rows, each prompt and translation once."""
        for rows in self.train.values():
            yield from rows["prompt"][:]
            for entries in rows["translations"][:]:
                yield from (entry["text"] for entry in entries)
        for pairs in self.parallel.values():
            yield from pairs["message"][:]
            yield from pairs["reply"][:]

    def facts(self) -> Record:
        """Facts for the record of a run: the data and the rows used, a hash of the test prompts, and the plan."""
        rows: dict[str, dict[str, int]] = {}
        for split, parts in (("train", self.train), ("validation", self.validation), ("test", self.test)):
            for language, found in parts.items():
                rows.setdefault(language, {})[split] = len(found)
        for language, found in self.parallel.items():
            rows[f"parallel {language}"] = {"train": len(found)}
        plan = {
            "task": "STAPLE",
            "draw": self.draw if self.train else None,
            "number": self.number,
            "direction": self.direction,
            "train": list(self.train),
            "parallel": self.parallel_sources,
            "sampling_alpha": self.sampling_alpha,
            "validation": list(self.validation),
            "test": list(self.test),
        }
        test_hash = examples_hash(self.test, ("id", "prompt"))
        return {"data": {**self.origin, "rows": rows, "test_hash": test_hash}, "plan": plan}


def load_staple_data(options: GenerationArguments, seed: int, validates: bool) -> StapleData:
    """Load what the options ask for; each split is cut to a seeded sample of its prompts if they say so.

    Args:
        seed: draws the training prompts; validation and test are drawn with `EVALUATION_SEED`.
        validates: whether validation splits are needed.

    Raises:
        InputError: the data are of another kind, or lack a language or a split; a split to train on or to choose the
            checkpoint by is blind; parallel text cannot be read, or is of other languages.
    """
    source = open_prepared(options.data, options.data_revision)
    languages = _languages(source, options)
    limits = options.max_train_examples, options.max_validation_examples, options.max_test_examples
    trained = [] if options.parallel and options.parallel_mode == FIRST else languages
    train = {code: sample_rows(_split(source, code, "train", gold=True), limits[0], seed) for code in trained}
    validation = {code: _split(source, code, "validation", gold=True) for code in languages if validates}
    test = {code: _split(source, code, "test") for code in languages if "test" in source.splits(code)}
    parallel, read = _parallel(options, languages)
    report = source.report()
    cut = {code for code, rows in test.items() if limits[2] is not None and limits[2] < len(rows)}
    partial = {part.partition("/")[0] for part in report.get("partial_splits", ()) if part.endswith("/test")}
    record = source.record()
    variant = record.variants.get(str(report.get("reader"))) or record.variants[record.name]
    return StapleData(
        options.draw,
        {TOP: options.top_k, COPIES: options.copies}.get(options.draw),
        options.direction,
        1.0 if options.sampling_alpha is None else options.sampling_alpha,
        train,
        {code: sample_rows(rows, limits[1], EVALUATION_SEED) for code, rows in validation.items()},
        {code: sample_rows(rows, limits[2], EVALUATION_SEED) for code, rows in test.items()},
        parallel,
        read,
        [code for code in test if source.data_set() == "staple" and code not in cut | partial],
        {**source.identity([], languages), "licence": variant.licence},
    )


def is_blind(rows: Dataset) -> bool:
    return not any(_counts(rows))


def _languages(source: PreparedData, options: GenerationArguments) -> list[str]:
    record = source.record()
    have = [code for code in source.configs() if set(COLUMNS) <= set(record.kind_of(code).columns)]
    if not have:
        raise InputError(
            f"--data {options.data}: {source.name} is {source.data_set()}, which has no accepted translations; pass a "
            "folder that `mrs data prepare staple` or `mrs data prepare synthetic-staple` wrote."
        )
    return asked_languages(options.languages, have, source.name, "such track")


def _split(source: PreparedData, code: str, split: str, gold: bool = False) -> Dataset:
    """The prompts of a split.

    Args:
        gold: it needs accepted translations.
    """
    where = f"{source.name}, {code}/{split}"
    if split not in source.splits(code):
        there = " and ".join(source.splits(code)) or "no split"
        raise InputError(f"{where}: there is no such split, and the run needs it; {code} has {there}.")
    rows = source.load(code, split).select_columns(list(COLUMNS))
    if not len(rows):
        raise InputError(f"{where}: the split is empty.")
    counts = _counts(rows)
    if not all(counts) and (gold or any(counts)):
        key = rows[counts.index(0)]["id"]
        blind = "it is blind" if not any(counts) else f"{key} has none"
        raise InputError(
            f"{where}: needs the accepted translations of every prompt, and {blind}; prepare it with gold."
        )
    if gold:
        _require_weights(rows, where)
    return rows


def _counts(rows: Dataset) -> list[int]:
    """How many accepted translations each prompt has."""
    table = rows.select_columns(["translations"]).with_format("arrow")[:]
    return [count or 0 for count in pc.list_value_length(table["translations"]).to_pylist()]


def _require_weights(rows: Dataset, where: str) -> None:
    lists = rows.select_columns(["translations"]).with_format("arrow")[:]["translations"].combine_chunks()
    sizes = np.asarray(lists.value_lengths())
    weights = np.asarray(pc.struct_field(lists.flatten(), "weight"), np.float64)
    begins = np.cumsum(sizes) - sizes
    sound = (np.add.reduceat(weights, begins) > 0) & (np.minimum.reduceat(weights, begins) >= 0)  # NaN fails too
    for number in np.flatnonzero(~sound):
        key = rows[int(number)]["id"]
        raise InputError(f"{where}: the weights of {key} are not 0 or more with one above 0; prepare the data again.")


def _parallel(options: GenerationArguments, languages: Sequence[str]) -> tuple[dict[str, Dataset], list[Record]]:
    """General translations by language, columns `message` and `reply`, and what was read."""
    found: dict[str, list[tuple[str, str]]] = {}
    read: list[Record] = []
    for value in options.parallel:
        source = PairSource.parse(value, "--parallel")
        first, second = languages_of(source.language) or ("", "")
        other = second if first == ENGLISH else first
        if ENGLISH not in (first, second) or other not in languages:
            raise InputError(
                f"{source}: expected translations between {ENGLISH} and {' or '.join(languages)}; name them as "
                f"{ENGLISH}-{languages[0]}, or add --languages."
            )
        pairs, revision = list(source.items(Reading(pair_columns=options.parallel_columns))), source.resolved[1]
        begins_with = other if options.direction == TO_ENGLISH else ENGLISH
        found.setdefault(other, []).extend(pairs if first == begins_with else [(two, one) for one, two in pairs])
        digest = hashlib.sha256("".join(map(json.dumps, pairs)).encode()).hexdigest()[:16]
        entry = {"languages": source.language, "source": source.name(), "pairs": len(pairs), "hash": digest}
        read.append({**entry, "revision": revision} if revision else entry)
    columns = {
        code: Dataset.from_dict({"message": [one for one, _ in pairs], "reply": [two for _, two in pairs]})
        for code, pairs in found.items()
    }
    return columns, read
