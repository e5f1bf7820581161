"""Draws the pairs of an audit from a prepared data set: stratified by language and split, seeded, none twice."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import pydantic.dataclasses

from mrs_datasets.audit.questions import TEXTS, Kind
from mrs_datasets.catalogue import STRICT
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.schema import MRS
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import require_any_language

Part = tuple[str, str]  # language, split


@pydantic.dataclasses.dataclass(frozen=True, config=STRICT)
class Stratum:
    """One split of a language.

    Attributes:
        rows: pairs in the data.
        drawn: pairs in the sample.
    """

    language: str
    split: str
    rows: int
    drawn: int


@dataclass(frozen=True)
class Drawn:
    """One pair of the sample; `row` is its place in the split, from 0."""

    language: str
    split: str
    row: int
    message: str
    reply: str


def audited_languages(data: PreparedData, chosen: Sequence[str] | None) -> list[str]:
    """The chosen languages (None for all) in the order of the data set, which must have message-reply pairs of them."""
    if (name := data.data_set()) != MRS.name:
        raise InputError(f"{data.name}: an audit needs message-reply pairs; this is {name}.")
    have = data.languages()
    for code in chosen or []:
        require_any_language(code, "--languages")
        if code not in have:
            raise InputError(f"--languages {code}: {data.name} has {' '.join(have)}.")
    return [code for code in have if not chosen or code in chosen]


def shares(sizes: Sequence[int], total: int) -> list[int]:
    """Divide `total` in proportion to `sizes`, to whole numbers by the largest remainders; none exceeds its size.

    >>> shares([50, 30, 20], 4), shares([5, 0, 1], 100)
    ([2, 1, 1], [5, 0, 1])
    """
    everything = sum(sizes)
    total = min(total, everything)
    if not total:
        return [0] * len(sizes)
    found = [total * size // everything for size in sizes]
    remainders = [total * size % everything for size in sizes]
    for place in sorted(range(len(sizes)), key=lambda i: -remainders[i])[: total - sum(found)]:
        found[place] += 1
    return found


def allocate(sizes: Mapping[Part, int], kind: Kind, examples: int) -> dict[Part, int]:
    """The number of pairs to draw from each language and split.

    In proportion to the pairs over all languages and splits, or over the splits of each language if the kind takes
    equally many of each language. All pairs of a language with fewer are drawn.
    """
    if not kind.per_language:
        return dict(zip(sizes, shares(list(sizes.values()), examples), strict=True))
    counts: dict[Part, int] = {}
    for language in dict.fromkeys(language for language, _ in sizes):
        parts = [part for part in sizes if part[0] == language]
        counts |= dict(zip(parts, shares([sizes[part] for part in parts], examples), strict=True))
    return counts


def draw_sample(
    data: PreparedData, languages: Sequence[str], kind: Kind, examples: int, seed: int
) -> tuple[list[Stratum], list[Drawn]]:
    """Draw the sample.

    The random numbers of a split depend only on the seed and its name: other languages do not change its sample, and a
    larger sample extends a smaller one. A pair of texts that repeats in a language is drawn once.
    """
    tables = {(code, split): data.load(code, split) for code in languages for split in data.splits(code)}
    sizes = {part: len(rows) for part, rows in tables.items()}
    if not sum(sizes.values()):
        raise InputError(f"{data.name}: no pairs in {' '.join(languages)}.")
    strata: list[Stratum] = []
    drawn: list[Drawn] = []
    for part, count in allocate(sizes, kind, examples).items():
        language, split = part
        seen = {(pair.message, pair.reply) for pair in drawn if pair.language == language}
        own: list[Drawn] = []
        rows = tables[part].select_columns(list(TEXTS))
        name = hashlib.sha256(f"{language}/{split}".encode()).digest()[:8]
        order = _shuffled(len(rows), np.random.default_rng([seed, int.from_bytes(name, "big")]))
        while len(own) < count and (places := list(islice(order, count - len(own)))):
            found = rows[places]
            for place, *texts in zip(places, *(found[column] for column in TEXTS), strict=True):
                message, reply = (text or "" for text in texts)
                if (message, reply) not in seen:
                    seen.add((message, reply))
                    own.append(Drawn(language, split, place, message, reply))
        drawn += own
        strata.append(Stratum(language, split, sizes[part], len(own)))
    return strata, drawn


def _shuffled(size: int, generator: np.random.Generator) -> Iterator[int]:
    """Yield 0 to size - 1 in random order; memory grows with what is taken, not with the size (Fisher and Yates)."""
    moved: dict[int, int] = {}
    for place in range(size):
        other = int(generator.integers(place, size))
        yield moved.get(other, other)
        moved[other] = moved.pop(place, place)
