"""Text to pretrain on, by language: sentences and translations, with a part held out."""

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from itertools import chain, compress, islice, repeat
from pathlib import Path
from typing import Any, Generic

import numpy as np

from mrs_datasets.texts.text_sources import Item, Pair, PairSource, Reading, Source, TextSource, languages_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.pretraining.cache import cached_folder

MOST_HELD_OUT = 10  # at most one sentence in this many is held out of a text (ours: a small text must still teach)
LINES = 100_000  # hashed at a time
FACTS, HELD_OUT, KINDS = "facts.json", ("validation", "test"), (TextSource, PairSource)


@dataclass(frozen=True)
class Streamed(Collection[Item]):
    """Sentences or translations to train on, which are read from their sources whenever they are iterated over.

    Attributes:
        digest: hash of the whole text and of the draw; different for different items.
    """

    read: Callable[[], Iterator[Item]]
    size: int
    digest: str

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Iterator[Item]:
        return self.read()

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
        both: list[Mapping[str, Mapping[str, Collection[Any]]]] = [self.by_name(), self.pairs.by_name()]
        for split, by_language in chain(*(splits.items() for splits in both)):
            for language, items in by_language.items():
                rows.setdefault(language, {})[split] = len(items)
                own = items.digest if isinstance(items, Streamed) else count_and_hash(items)[1]
                digest.update(f"{split} {language} {len(items)} {own}\n".encode())
        parts = (f"text in {', '.join(self.train)}", f"translations {', '.join(self.pairs.train)}")
        title = ", ".join(part for part, has in zip(parts, (self.train, self.pairs.train), strict=True) if has)
        data = {"id": "text", "title": title, "content_hash": digest.hexdigest()[:16], "rows": rows}
        if all(source["source"] == "sample" for source in self.sources):
            data["reader"] = "sample"  # its licence is known
        return {"data": data, "texts": {"sources": self.sources, "repeated": self.repeated}}


def in_batches(items: Iterable[Any], size: int) -> Iterator[list[Any]]:
    left = iter(items)
    while batch := list(islice(left, size)):
        yield batch


def count_and_hash(items: Iterable[Any]) -> tuple[int, str]:
    """The number of sentences or pairs, and the hash of their lines."""
    digest, count = hashlib.sha256(), 0
    for part in in_batches(items, LINES):
        lines = "".join(f"{chr(9).join(_sides(item))}\n" for item in part)
        digest.update(lines.encode("utf-8", "surrogateescape"))
        count += len(part)
    return count, digest.hexdigest()


def read_texts(
    parts: Sequence[Sequence[Source[Any]]],
    reading: Reading,
    held_out: int,
    validated: Sequence[str] = (),
    most: int | None = None,
    seed: int = 0,
) -> TextData:
    """Count, hash and split the sentences and translations of all sources; what is found is cached.

    No training text stays in memory. Drawing a sample temporarily needs up to 9 bytes per sentence.
    A sentence that is held out does not train, wherever it stands: alone, or as a side of a pair.

    Args:
        parts: sources to train on, of validation and of the test. Without validation of a kind, `held_out` sentences of
            the first source of each validated language are, at most one in ten; which ones depends on the text alone.
        validated: languages, and pairs of them, that are held out; none of a kind: all of it.
        most: training sentences of each language, and pairs of each two, drawn with `seed`; None: all. Of a data set
            that is streamed, the first ones.

    Raises:
        InputError: a source cannot be read, has no text, or a validated language lacks it.
    """
    reading = replace(reading, most=None if most is None else most + held_out)
    kinds: list[list[list[Source[Any]]]] = [
        [[source for source in part if isinstance(source, kind)] for part in parts] for kind in KINDS
    ]

    def write(folder: Path) -> None:
        record: list[Record] = []
        found: list[Record] = []
        for paired, kind in zip((False, True), kinds, strict=True):
            names = [name for name in validated if bool(languages_of(name)) is paired]
            found.append(_held_out(kind, names, held_out, reading, record))
        for kind, facts in zip(kinds, found, strict=True):
            for language in dict.fromkeys(source.language for source in kind[0]):
                count, digest = count_and_hash(_clean(kind, language, reading, found))
                if not count:
                    what = "pair has a sentence that" if languages_of(language) else "sentence"
                    option = "parallel" if languages_of(language) else "text"
                    raise InputError(f"--{option} {language}: every {what} is held out too; pass text that is not.")
                drawn = (most, count, seed) if most is not None and most < count else None
                facts["train"][language] = drawn, most if drawn else count, f"{digest} {drawn}"
                facts["repeated"] -= count
        (folder / FACTS).write_text(json.dumps([record, found]), encoding="utf-8")

    stamps = [[source.stamp for source in part] for part in parts]
    settings = json.dumps([stamps, held_out, list(validated), most, most and seed, asdict(reading)])
    record, found = json.loads((cached_folder(settings, write) / FACTS).read_text(encoding="utf-8"))
    texts, pairs = (
        Splits(
            {language: Streamed(partial(_clean, kind, language, reading, found, drawn), size, digest)
             for language, (drawn, size, digest) in facts["train"].items()},
            *({code: [item if isinstance(item, str) else tuple(item) for item in items]
               for code, items in facts[split].items()} for split in HELD_OUT),
        )
        for kind, facts in zip(kinds, found, strict=True)
    )  # fmt: skip
    return TextData(texts.train, texts.validation, texts.test, record, sum(one["repeated"] for one in found), pairs)


def _clean(
    kind: Sequence[Sequence[Source[Any]]], language: str, reading: Reading, found: Sequence[Record], drawn: Any = None
) -> Iterator[Any]:
    """The training items of a language without a text that is held out; `drawn`: how many of how many, with a seed."""
    parts = [items for facts in found for split in HELD_OUT for items in facts[split].values()]
    unseen = {text for items in parts for item in items for text in _sides(item)}
    sources = (source for source in kind[0] if source.language == language)
    items = (item for source in sources for item in source.items(reading) if unseen.isdisjoint(_sides(item)))
    if drawn is None:
        return items
    most, count, seed = drawn
    chosen = np.zeros(count, dtype=bool)
    chosen[np.random.default_rng(seed).permutation(count)[:most]] = True
    return compress(items, chain(chosen, repeat(False)))  # to the end, where sources are checked


def _held_out(
    parts: Sequence[Sequence[Source[Any]]],
    validated: Sequence[str],
    most: int,
    reading: Reading,
    record: list[Record],
) -> Record:
    """Held-out sentences, or translations, by language; `repeated` are the others in training sources."""
    train, validation, test = parts

    def note(source: Source[Any], split: str, count: int) -> None:
        entry = {"language": source.language, "source": source.name(), "for": split, "sentences": count}
        if source.config or source.split != "train":
            entry["part"] = f"{source.config or source.language}/{source.split}"
        revision = source.resolved[1]
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
            known = list(source.items(replace(reading, most=None)))
            found[split].setdefault(source.language, []).extend(known)
            note(source, split, len(known))
    return found


def _sides(item: Any) -> Sequence[str]:
    return (item,) if isinstance(item, str) else item
