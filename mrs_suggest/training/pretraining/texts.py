"""Text to pretrain on, by language: sentences and translations, with a part held out."""

import hashlib
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, compress, islice, repeat
from pathlib import Path
from typing import Any, Generic

import numpy as np

from mrs_datasets.texts.text_sources import Item, Pair, PairSource, Reading, Source, TextSource, languages_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.pretraining.kept import kept

MOST_HELD_OUT = 10  # at most one sentence in this many is held out of a text (ours: a small text must still teach)
LINES = 100_000  # hashed at a time
FACTS, HELD_OUT = "facts.json", ("validation", "test")
NO_SOURCES: tuple[Sequence[Any], Sequence[Any], Sequence[Any]] = ((), (), ())


@dataclass(frozen=True)
class Streamed(Collection[Item]):
    """Sentences or translations to train on, which are read from their sources whenever they are iterated over.

    Attributes:
        unseen: texts that are held out; items with one of them are left out.
        most: of the `clean` items that are left, so many are drawn with `seed`; None: all.
        digest: of the items, equal for equal ones.
    """

    sources: Sequence[Source[Item]]
    reading: Reading
    unseen: frozenset[str]
    most: int | None
    seed: int
    clean: int
    digest: str

    def __len__(self) -> int:
        return self.clean if self.most is None else min(self.most, self.clean)

    def __iter__(self) -> Iterator[Item]:
        chosen: Iterable[bool] = repeat(True)
        if len(self) < self.clean:
            drawn = np.zeros(self.clean, dtype=bool)
            drawn[np.random.default_rng(self.seed).permutation(self.clean)[: self.most]] = True
            chosen = chain(drawn, repeat(False))  # the sources are read to their ends, where they are checked
        return compress(_clean(self.sources, self.reading, self.unseen), chosen)

    def __contains__(self, item: object) -> bool:
        return any(item == other for other in self)


@dataclass(frozen=True)
class Splits(Generic[Item]):
    """Sentences by language, or translations by their two languages (`en-ht`)."""

    train: Mapping[str, Collection[Item]] = field(default_factory=dict)
    validation: dict[str, list[Item]] = field(default_factory=dict)
    test: dict[str, list[Item]] = field(default_factory=dict)

    def by_name(self) -> dict[str, Mapping[str, Collection[Item]]]:
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

    def texts(self) -> Iterator[str]:
        """All training sentences, those of translations among them."""
        for items in chain(self.train.values(), self.pairs.train.values()):
            for item in items:
                yield from _sides(item)

    def facts(self) -> Record:
        """Facts for the record of a run."""
        rows: dict[str, dict[str, int]] = {}
        digest = hashlib.sha256()
        of_splits: list[tuple[str, Mapping[str, Collection[Any]]]] = [
            *self.by_name().items(), *self.pairs.by_name().items()
        ]  # fmt: skip
        for split, by_language in of_splits:
            for language, items in by_language.items():
                rows.setdefault(language, {})[split] = len(items)
                own = items.digest if isinstance(items, Streamed) else counted(items)[1]
                digest.update(f"{split} {language} {len(items)} {own}\n".encode())
        parts = (f"text in {', '.join(self.train)}", f"translations {', '.join(self.pairs.train)}")
        title = ", ".join(part for part, has in zip(parts, (self.train, self.pairs.train), strict=True) if has)
        data = {"id": "text", "title": title, "content_hash": digest.hexdigest()[:16], "rows": rows}
        if all(source["source"] == "sample" for source in self.sources):
            data["reader"] = "sample"  # its licence is known
        return {"data": data, "texts": {"sources": self.sources, "repeated": self.repeated}}


def counted(items: Iterable[Any]) -> tuple[int, str]:
    """How many sentences or pairs there are, and their hash, one a line."""
    digest, count, left = hashlib.sha256(), 0, iter(items)
    while part := list(islice(left, LINES)):
        lines = "".join(f"{chr(9).join(_sides(item))}\n" for item in part)
        digest.update(lines.encode("utf-8", "surrogateescape"))
        count += len(part)
    return count, digest.hexdigest()


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
    """Look through all sources, unless they are known: what was found is kept (see `kept`).

    Training text is not in memory, which needs up to 9 bytes a sentence while a part is drawn: what is held out of a
    source, or `most` sentences.

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
    reading = Reading(column, pair_columns, stream, None if most is None else most + held_out)
    kinds = ((train, validation, test), pairs)
    own = {source.language for source in pairs[0]} | {name for name in validated if languages_of(name)}
    wanted = [[name for name in validated if (name in own) is paired] for paired in (False, True)]

    def write(folder: Path) -> None:
        found = _look_through(kinds, wanted, held_out, reading, most, seed)
        (folder / FACTS).write_text(json.dumps(found), encoding="utf-8")

    stamps = [[[source.stamp for source in part] for part in kind] for kind in kinds]
    settings = json.dumps([stamps, held_out, list(validated), most, seed, asdict(reading)])
    facts = json.loads((kept(settings, write) / FACTS).read_text(encoding="utf-8"))
    unseen = _unseen(facts["kinds"])
    texts, translations = (
        Splits(
            {
                language: Streamed([s for s in kind[0] if s.language == language], reading, unseen, most, seed, *counts)
                for language, counts in found["train"].items()
            },
            *({code: list(map(_item, items)) for code, items in found[split].items()} for split in HELD_OUT),
        )
        for kind, found in zip(kinds, facts["kinds"], strict=True)
    )
    repeated = sum(found["repeated"] for found in facts["kinds"])
    return TextData(texts.train, texts.validation, texts.test, facts["sources"], repeated, translations)


def _look_through(
    kinds: Sequence[Sequence[Sequence[Source[Any]]]],
    wanted: Sequence[Sequence[str]],
    held_out: int,
    reading: Reading,
    most: int | None,
    seed: int,
) -> Record:
    """What is held out, and how many items of each language are left, with their hash."""
    sources: list[Record] = []
    found = [_held_out(kind, names, held_out, reading, sources) for kind, names in zip(kinds, wanted, strict=True)]
    unseen = _unseen(found)
    for (train, *_), facts in zip(kinds, found, strict=True):
        for language in dict.fromkeys(source.language for source in train):
            left = _clean([source for source in train if source.language == language], reading, unseen)
            count, digest = counted(left)
            if not count:
                what = "pair has a sentence that" if languages_of(language) else "sentence"
                option = "parallel" if languages_of(language) else "text"
                raise InputError(f"--{option} {language}: every {what} is held out too; pass text that is not.")
            drawn = most is not None and most < count
            facts["train"][language] = count, f"{digest} {most} {seed}" if drawn else digest
            facts["repeated"] -= count
    return {"sources": sources, "kinds": found}


def _unseen(found: Sequence[Record]) -> frozenset[str]:
    parts = [items for facts in found for split in HELD_OUT for items in facts[split].values()]
    return frozenset(text for items in parts for item in items for text in _sides(item))


def _clean(sources: Sequence[Source[Item]], reading: Reading, unseen: frozenset[str]) -> Iterator[Item]:
    """Items without a text that is held out."""
    return (item for source in sources for item in source.items(reading) if unseen.isdisjoint(_sides(item)))


def _held_out(
    parts: Sequence[Sequence[Source[Item]]],
    validated: Sequence[str],
    most: int,
    reading: Reading,
    record: list[Record],
) -> Record:
    """Held-out sentences, or translations, by language; `repeated` are the others in training sources."""
    train, validation, test = parts

    def note(source: Source[Item], split: str, count: int) -> None:
        entry = {"language": source.language, "source": source.name(), "for": split, "sentences": count}
        if source.config or source.split != "train":
            entry["part"] = f"{source.config or source.language}/{source.split}"
        revision = source.settled[1]
        record.append({**entry, "revision": revision} if revision else entry)

    found: Record = {"train": {}, "validation": {}, "test": {}, "repeated": 0}
    wanted = dict.fromkeys(validated or [source.language for source in train])
    for source in train:
        language, count = source.language, sum(1 for _ in source.items(reading))
        note(source, "train", count)
        found["repeated"] += count
        if not validation and most and language in wanted and language not in found["validation"]:
            order = np.random.default_rng(EVALUATION_SEED).permutation(count)
            chosen = set(order[: min(most, count // MOST_HELD_OUT)].tolist())
            items = enumerate(source.items(reading))
            found["validation"][language] = [item for number, item in items if number in chosen]
            found["repeated"] -= len(chosen)
    for language in wanted:
        if not validation and most and not found["validation"].get(language):
            kind = "parallel" if languages_of(language) else "text"
            have = language in {source.language for source in train}
            where = f"--{kind} has too little of it" if have else f"--{kind} lacks it"
            raise InputError(f"--validation {language}: {where}; pass --validation_{kind} {language}=FILE.")
    for split, more in zip(HELD_OUT, (validation, test), strict=True):
        for source in more:
            items = list(source.items(replace(reading, most=None)))
            found[split].setdefault(source.language, []).extend(items)
            note(source, split, len(items))
    return found


def _item(item: Any) -> Any:
    return item if isinstance(item, str) else tuple(item)


def _sides(item: Item) -> Sequence[str]:
    return (item,) if isinstance(item, str) else item
