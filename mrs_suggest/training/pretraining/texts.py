"""Text to pretrain on, by language: sentences and translations, with a part held out."""

import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, compress
from operator import itemgetter
from pathlib import Path
from typing import IO, Any, Generic, NamedTuple

import numpy as np

from mrs_datasets.texts.text_sources import Item, PairSource, Reading, Source, TextSource, languages_of, require_text
from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import MAX_LINE
from mrs_suggest.evaluation.language_data import EVALUATION_SEED
from mrs_suggest.models.saved.record import Record
from mrs_suggest.training.pretraining.cache import cached_folder

MOST_HELD_OUT = 10  # at most one sentence in this many is held out of a text (ours: a small text must still teach)
BLOCK = 4 << 20  # bytes of text whose rows are written together: a second or two of work
LINES = 25_000  # lines of copied text, which are about as much
PACKED = (".gz", ".xz", ".zst", ".parquet")
COPIED, SAMPLE = "copied.txt", "sample.txt"  # all of the sources that are copied, and what `most` leaves of texts
FACTS, HELD_OUT, KINDS = "facts.json", ("validation", "test"), (TextSource, PairSource)


class Part(NamedTuple):
    """Lines of a text: the number of their source, where they are, and their hash."""

    source: int
    file: str
    begin: int
    size: int
    lines: int
    digest: str


@dataclass(frozen=True)
class Streamed(Generic[Item]):
    """Sentences or translations to train on, which are read from files whenever they are needed.

    Its length is exact for a text of one part; else items that are held out are counted, too.

    Attributes:
        folder: of the files that are copies.
        held_out: texts that do not train, and `digest`, their hash.
    """

    sources: Sequence[Source[Item]]
    folder: Path
    parts: Sequence[Part]
    held_out: frozenset[str]
    digest: str

    def __len__(self) -> int:
        return sum(part.lines for part in self.parts)

    def __iter__(self) -> Iterator[Item]:
        return chain.from_iterable(map(self.part, self.parts))

    def part(self, part: Part) -> Iterator[Item]:
        """The items of a part; InputError if its file has changed since it was first read."""
        source, path, data = self.sources[part.source], self.folder / part.file, b""
        with suppress(OSError), path.open("rb") as file:
            file.seek(part.begin)
            data = file.read(part.size)
        if _hash(data) != part.digest:
            raise InputError(f"{source}: changed while it was being read; rerun when no other process writes to it.")
        items = source.lines(path, enumerate(data.decode("utf-8-sig", "surrogateescape").split("\n"), 1))
        return (item for item in items if self.held_out.isdisjoint(_sides(item)))


@dataclass(frozen=True)
class Splits(Generic[Item]):
    """Sentences by language, or translations by their two languages (`en-ht`)."""

    train: Mapping[str, Streamed[Item]] = field(default_factory=dict)
    validation: dict[str, list[Item]] = field(default_factory=dict)
    test: dict[str, list[Item]] = field(default_factory=dict)

    def by_name(self) -> dict[str, Mapping[str, Any]]:
        return {"train": self.train, "validation": self.validation, "test": self.test}


@dataclass(frozen=True)
class TextData(Splits[str]):
    """The sentences of a run by language, and its translations.

    Attributes:
        sources: for the record: language, name, sentences read, and the revision of a hub data set.
    """

    sources: list[Record] = field(default_factory=list)
    pairs: Splits[tuple[str, str]] = field(default_factory=Splits)

    def texts(self) -> Iterator[str]:
        """All training sentences, those of translations among them."""
        for items in chain(*(one.by_name()["train"].values() for one in (self, self.pairs))):
            for item in items:
                yield from _sides(item)

    def facts(self) -> Record:
        """Facts for the record of a run."""
        rows: dict[str, dict[str, int]] = {}
        digest = hashlib.sha256()
        for split, by_language in [*self.by_name().items(), *self.pairs.by_name().items()]:
            for language, items in by_language.items():
                rows.setdefault(language, {})[split] = len(items)
                own = [part.digest for part in items.parts] if isinstance(items, Streamed) else items
                digest.update(f"{split} {language} {len(items)} {own}\n".encode("utf-8", "surrogateescape"))
        parts = (f"text in {', '.join(self.train)}", f"translations {', '.join(self.pairs.train)}")
        title = ", ".join(part for part, has in zip(parts, (self.train, self.pairs.train), strict=True) if has)
        data = {"id": "text", "title": title, "content_hash": digest.hexdigest()[:16], "rows": rows}
        if all(source["source"] == "sample" for source in self.sources):
            data["reader"] = "sample"  # its licence is known
        return {"data": data, "texts": {"sources": self.sources}}


def drawn(batches: Iterable[list[str]], most: int, seed: int) -> list[tuple[float, int, str]]:
    """At most so many lines, each with the same chance: those with the least random numbers, these and their places."""
    random, bound, seen = np.random.default_rng(seed), 1.0, 0
    kept: list[tuple[float, int, str]] = []
    for lines in batches:
        numbers = random.random(len(lines))
        few = [(float(numbers[n]), seen + n, lines[n]) for n in np.flatnonzero(numbers < bound).tolist()]
        kept, seen = sorted([*kept, *few])[:most], seen + len(lines)
        bound = kept[-1][0] if len(kept) == most > 0 else float(most > 0)
    return kept


def read_texts(
    parts: Sequence[Sequence[Source[Any]]],
    reading: Reading,
    held_out: int,
    validated: Sequence[str] = (),
    most: int | None = None,
    seed: int = 0,
) -> TextData:
    """Read all sources once, to count, hash and split their sentences and translations; what is found is cached.

    No training text stays in memory. A plain text file of `BLOCK` bytes or more is read where it is whenever it is
    needed; other sources are copied into the cache as text. A sentence that is held out does not train, wherever it
    stands: alone, or as a side of a pair.

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
        with (folder / COPIED).open("wb") as copied, (folder / SAMPLE).open("wb") as sample:
            for paired, kind in zip((False, True), kinds, strict=True):
                names = [name for name in validated if bool(languages_of(name)) is paired]
                found.append(_read(kind, names, held_out, reading, record, copied))
            for kind, facts in zip(kinds, found, strict=True):
                for language, text in _streamed(kind, facts, found, folder).items():
                    facts["train"][language] = _kept(text, language, most, seed, sample)
        (folder / (SAMPLE if most is None else COPIED)).unlink()  # it is not read again
        (folder / FACTS).write_text(json.dumps([record, found]), encoding="utf-8")

    stamps = [[source.stamp for source in part] for part in parts]
    settings = json.dumps([stamps, held_out, list(validated), most, most and seed, asdict(reading)])
    folder = cached_folder(settings, write)
    record, found = json.loads((folder / FACTS).read_text(encoding="utf-8"))
    texts, pairs = (
        Splits(
            _streamed(kind, facts, found, folder),
            *({code: [item if isinstance(item, str) else tuple(item) for item in items]
               for code, items in facts[split].items()} for split in HELD_OUT),
        )
        for kind, facts in zip(kinds, found, strict=True)
    )  # fmt: skip
    return TextData(texts.train, texts.validation, texts.test, record, pairs)


def _streamed(kind: Any, facts: Record, found: Sequence[Record], folder: Path) -> dict[str, Streamed[Any]]:
    """The training text by language."""
    parts = (items for facts in found for split in HELD_OUT for items in facts[split].values())
    held_out = frozenset(text for items in parts for item in items for text in _sides(item))
    digest = _hash(str(sorted(held_out)).encode("utf-8", "surrogateescape"))
    return {
        language: Streamed(kind[0], folder, [Part(*part) for part in own], held_out, digest)
        for language, own in facts["train"].items()
    }


def _kept(text: Streamed[Any], language: str, most: int | None, seed: int, file: IO[bytes]) -> list[Part]:
    """The parts to train on; with `most`, a sample written to `file`, unless the text is small and not a copy."""
    if next(iter(text), None) is None:
        what = "pair has a sentence that" if languages_of(language) else "sentence"
        option = text.sources[text.parts[0].source].option
        raise InputError(f"{option} {language}: every {what} is held out too; pass text that is not.")
    if most is not None and (most < len(text) or any(part.file == COPIED for part in text.parts)):
        chosen = np.zeros(sum(1 for _ in text), bool)
        chosen[np.random.default_rng(seed).permutation(len(chosen))[:most]] = True
        lines = map(_line, compress(text, chosen))
        return [_written(0, some, file) for some in in_batches(lines, LINES)]
    first, *others = text.parts
    return [*text.parts] if others else [first._replace(lines=sum(1 for _ in text))]


def _read(
    parts: Sequence[Sequence[Source[Any]]],
    validated: Sequence[str],
    most: int,
    reading: Reading,
    record: list[Record],
    copied: IO[bytes],
) -> Record:
    """The parts of the training text by language, and held-out items."""
    train, validation, test = parts

    def note(source: Source[Any], split: str, count: int) -> None:
        entry = {"language": source.language, "source": source.name(), "for": split, "sentences": count}
        if source.config or source.split != "train":
            entry["part"] = f"{source.config or source.language}/{source.split}"
        revision = source.resolved[1]
        record.append({**entry, "revision": revision} if revision else entry)

    found: Record = {"train": {}, "validation": {}, "test": {}}
    wanted = dict.fromkeys(validated or [source.language for source in train])
    for number, source in enumerate(train):
        language = source.language
        own = found["train"].setdefault(language, [])
        draws = not validation and most and language in wanted and language not in found["validation"]
        first, batches = len(own), _once(source, number, reading, copied, own)
        kept = drawn(batches, most if draws else 0, EVALUATION_SEED)
        note(source, "train", size := sum(part.lines for part in own[first:]))
        if draws:
            chosen = sorted(kept[: size // MOST_HELD_OUT], key=itemgetter(1))
            found["validation"][language] = list(source.lines(Path(), ((place, line) for _, place, line in chosen)))
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


def _once(
    source: Source[Any], number: int, reading: Reading, copied: IO[bytes], parts: list[Part]
) -> Iterator[list[str]]:
    """The lines of a source; its `parts` are where they are in large text files, or else in a copy."""
    files = [] if "," in source.where else source.files()
    packed = any(file.suffix in PACKED for file in files)
    if packed or not files or sum(file.stat().st_size for file in files) < BLOCK * len(files):
        for lines in in_batches(map(_line, source.items(reading)), LINES):
            parts.append(_written(number, lines, copied))
            yield lines
        return
    try:
        for file in files:
            require_text(file)
            for begin, data, digest in _blocks(file):
                lines = [line for line in data.decode("utf-8-sig").split("\n") if line and not line.isspace()]
                if isinstance(source, PairSource) and {line.count("\t") for line in lines} - {1}:
                    raise ValueError(file)
                parts.append(Part(number, str(file.resolve()), begin, len(data), len(lines), digest))
                yield lines
        if not any(part.lines for part in parts if part.source == number):
            raise ValueError(source)
    except (ValueError, OSError):
        deque(source.items(reading), 0)  # says what is wrong with it, and in which line
        raise


def _blocks(path: Path) -> Iterator[tuple[int, bytes, str]]:
    """Where blocks of whole lines begin, the blocks and their hashes; a thread reads the next one meanwhile."""
    with path.open("rb") as file, ThreadPoolExecutor(1) as ahead:

        def read() -> tuple[int, bytes, str]:
            begin, data, rest = file.tell(), file.read(BLOCK), file.readline(MAX_LINE + 2 * BLOCK)
            if len(rest) == MAX_LINE + 2 * BLOCK:  # more than any reader takes, whose error is better
                raise ValueError(path)
            return begin, data + rest, _hash(data + rest)

        following = ahead.submit(read)
        while (block := following.result())[1]:
            following = ahead.submit(read)
            yield block


def _written(number: int, lines: list[str], file: IO[bytes]) -> Part:
    """A part of a source, written to the end of a file."""
    data = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    begin = file.tell()
    file.write(data)
    file.flush()
    return Part(number, Path(file.name).name, begin, len(data), len(lines), _hash(data))


def _hash(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _line(item: Any) -> str:
    return "\t".join(_sides(item))


def _sides(item: Any) -> Sequence[str]:
    return (item,) if isinstance(item, str) else item
