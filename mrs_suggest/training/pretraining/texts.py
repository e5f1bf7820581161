"""Text to pretrain on, by language: sentences and translations, with a part held out."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

import numpy as np

from mrs_datasets.texts.text_sources import Item, Pair, PairSource, Reading, Source, TextSource, languages_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.saved.record import Record

MOST_HELD_OUT = 10  # at most one sentence in this many is held out of a text (ours: a small text must still teach)
LINES = 100_000  # hashed at a time
NO_SOURCES: tuple[Sequence[Any], Sequence[Any], Sequence[Any]] = ((), (), ())


@dataclass(frozen=True)
class Splits(Generic[Item]):
    """Sentences by language, or translations by their two languages (`en-ht`)."""

    train: dict[str, list[Item]] = field(default_factory=dict)
    validation: dict[str, list[Item]] = field(default_factory=dict)
    test: dict[str, list[Item]] = field(default_factory=dict)

    def by_name(self) -> dict[str, dict[str, list[Item]]]:
        return {"train": self.train, "validation": self.validation, "test": self.test}


@dataclass(frozen=True)
class TextData(Splits[str]):
    """The sentences of a run by language, and its translations.

    Attributes:
        sources: for the record: language, name, sentences read, and the revision of a hub data set.
        repeated: training sentences and pairs that were left out, since they are held out too.
    """

    sources: list[Record] = field(default_factory=list)
    repeated: int = 0
    pairs: Splits[Pair] = field(default_factory=Splits)

    def texts(self) -> list[str]:
        """All training sentences, those of translations among them."""
        own = [text for sentences in self.train.values() for text in sentences]
        return own + [text for pairs in self.pairs.train.values() for pair in pairs for text in pair]

    def facts(self) -> Record:
        """Facts for the record of a run."""
        rows: dict[str, dict[str, int]] = {}
        digest = hashlib.sha256()
        of_splits: list[tuple[str, dict[str, Any]]] = [*self.by_name().items(), *self.pairs.by_name().items()]
        for split, by_language in of_splits:
            for language, items in by_language.items():
                rows.setdefault(language, {})[split] = len(items)
                digest.update(f"{split} {language} {len(items)}\n".encode())
                add_lines(digest, items)
        parts = (f"text in {', '.join(self.train)}", f"translations {', '.join(self.pairs.train)}")
        title = ", ".join(part for part, has in zip(parts, (self.train, self.pairs.train), strict=True) if has)
        data = {"id": "text", "title": title, "content_hash": digest.hexdigest()[:16], "rows": rows}
        if all(source["source"] == "sample" for source in self.sources):
            data["reader"] = "sample"  # its licence is known
        return {"data": data, "texts": {"sources": self.sources, "repeated": self.repeated}}


def add_lines(digest: Any, items: Sequence[Any]) -> None:
    """Hash sentences or pairs, one a line, in parts: the lines together would be in memory twice more."""
    for first in range(0, len(items), LINES):
        part = ("\t".join(_sides(item)) for item in items[first : first + LINES])
        digest.update(("\n" * (first > 0) + "\n".join(part)).encode("utf-8", "surrogateescape"))


def read_texts(
    train: Sequence[TextSource],
    validation: Sequence[TextSource],
    test: Sequence[TextSource],
    column: str,
    held_out: int,
    validated: Sequence[str],
    most: int | None = None,
    seed: int = 0,
    *,
    pairs: tuple[Sequence[PairSource], Sequence[PairSource], Sequence[PairSource]] = NO_SOURCES,
    pair_columns: Sequence[str] = (),
    stream: bool = False,
) -> TextData:
    """Read all sources.

    A sentence that is held out does not train, wherever it stands: alone, or as a side of a pair.

    Args:
        validation: held-out text; without any, `held_out` sentences of the first source of each validated language
            are, but at most one in ten; which ones depends on the text alone.
        column: of the texts in Parquet files and in data sets that the catalogue does not know.
        validated: languages, and pairs of them, that are held out; none of a kind: all of it.
        most: training sentences of each language, and pairs of each two, drawn with `seed`; None: all.
        pairs: translations to train on, held-out ones, and those of the test; the rest is as for sentences.
        pair_columns: as `column`; none: those named as the languages, or `translation`.
        stream: read hub data sets without downloading them whole; of those that train, the first sentences: `most`,
            and those that are held out.

    Raises:
        InputError: a source cannot be read, has no text, or a validated language lacks it.
    """
    sources: list[Record] = []
    reading = Reading(column, pair_columns, stream)
    own = {source.language for source in pairs[0]} | {name for name in validated if languages_of(name)}
    texts, translations = (
        _read_kind(parts, names, held_out, most, reading, sources)
        for parts, names in (
            ((train, validation, test), [name for name in validated if name not in own]),
            (pairs, [name for name in validated if name in own]),
        )
    )
    unseen = {
        text
        for kind in (texts, translations)
        for part in (kind.validation, kind.test)
        for items in part.values()
        for item in items
        for text in _sides(item)
    }
    left, left_pairs = _clean(texts, unseen, most, seed), _clean(translations, unseen, most, seed)
    repeated = left[1] + left_pairs[1]
    return TextData(
        left[0], texts.validation, texts.test, sources, repeated, replace(translations, train=left_pairs[0])
    )


def _read_kind(
    parts: tuple[Sequence[Source[Item]], Sequence[Source[Item]], Sequence[Source[Item]]],
    validated: Sequence[str],
    held_out: int,
    most: int | None,
    reading: Reading,
    record: list[Record],
) -> Splits[Item]:
    """All sentences, or all translations."""
    train, validation, test = parts

    def read(source: Source[Item], split: str, reading: Reading) -> list[Item]:
        found, revision = source.read(reading)
        entry = {"language": source.language, "source": source.name(), "for": split, "sentences": len(found)}
        if source.config or source.split != "train":
            entry["part"] = f"{source.config or source.language}/{source.split}"
        record.append({**entry, "revision": revision} if revision else entry)
        return found

    found = Splits[Item]()
    wanted = dict.fromkeys(validated or [source.language for source in train])
    begins = replace(reading, most=None if most is None else most + held_out)
    for source in train:
        items, language = read(source, "train", begins), source.language
        if not validation and held_out and language in wanted and language not in found.validation:
            found.validation[language], items = _held_out(items, held_out)
        found.train.setdefault(language, []).extend(items)
    for language in wanted:
        if not validation and held_out and not found.validation.get(language):
            kind = "parallel" if languages_of(language) else "text"
            where = f"--{kind} has too little of it" if language in found.train else f"--{kind} lacks it"
            raise InputError(f"--validation {language}: {where}; pass --validation_{kind} {language}=FILE.")
    for more, split, into in ((validation, "validation", found.validation), (test, "test", found.test)):
        for source in more:
            into.setdefault(source.language, []).extend(read(source, split, reading))
    return found


def _clean(found: Splits[Item], unseen: set[str], most: int | None, seed: int) -> tuple[dict[str, list[Item]], int]:
    """Training items without a text that is held out, `most` of each language, and how many had one."""
    clean = {
        language: [item for item in items if unseen.isdisjoint(_sides(item))] for language, items in found.train.items()
    }
    repeated = _count(found.train) - _count(clean)
    for language, items in clean.items():
        if not items:
            what = "pair has a sentence that" if languages_of(language) else "sentence"
            option = "parallel" if languages_of(language) else "text"
            raise InputError(f"--{option} {language}: every {what} is held out too; pass text that is not.")
        if most is not None and len(items) > most:
            clean[language] = [items[n] for n in sorted(np.random.default_rng(seed).permutation(len(items))[:most])]
    return clean, repeated


def _count(by_language: Mapping[str, Sequence[Item]]) -> int:
    return sum(map(len, by_language.values()))


def _sides(item: Item) -> tuple[str, ...]:
    return (item,) if isinstance(item, str) else item


def _held_out(items: list[Item], wanted: int) -> tuple[list[Item], list[Item]]:
    """(held out, rest), each in the order of the text."""
    count = min(wanted, len(items) // MOST_HELD_OUT)
    chosen = np.zeros(len(items), dtype=bool)
    chosen[np.random.default_rng(EVALUATION_SEED).permutation(len(items))[:count]] = True
    both: tuple[list[Item], list[Item]] = ([], [])
    for item, out in zip(items, chosen, strict=True):
        both[0 if out else 1].append(item)
    return both
