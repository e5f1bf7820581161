"""Sources of text to train on: files, folders, Parquet, prepared data sets and the hub; sentences or pairs."""

import lzma
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cached_property
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar, cast
from uuid import uuid4

from mrs_datasets.catalogue import LANGUAGE
from mrs_datasets.prepared.prepared import PreparedData, open_prepared
from mrs_datasets.prepared.remote_data import fetched_texts
from mrs_datasets.readers.sample import SAMPLE, SAMPLE_SOURCE
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.hub.hub import commit_of, is_repo_id, split_revision
from mrs_suggest.common.io.files import require_regular
from mrs_suggest.common.io.lines import open_binary, read_lines
from mrs_suggest.common.io.remote_errors import masked
from mrs_suggest.common.io.storage import Location, is_url, location
from mrs_suggest.common.text.languages import find_language

FILES = ("*.txt", "*.txt.gz", "*.txt.xz", "*.txt.zst")  # of a folder of texts
START = 1 << 13  # bytes that are checked before a file is read as text
ROWS = 10_000  # of a data set, in memory at a time
COMMIT = re.compile("[0-9a-f]{40}")
TRANSLATION = "translation"  # the column of the hub's translation data sets: language -> text
Pair = tuple[str, str]
Item = TypeVar("Item", str, Pair)


def split_language(text: str, option: str) -> tuple[str, str]:
    """The language and the source of `LANG=SOURCE`; InputError, naming the option, if one of them is missing."""
    language, _, where = text.partition("=")
    if not where:
        raise InputError(f"{option} {text}: expected LANG=SOURCE, such as ht=texts/ht.txt.")
    if find_language(language) is None:
        raise InputError(f"{option} {text}: {language!r} is not the code of a language, such as ht or pt-BR.")
    return language, where


def files_in(folder: Location, where: object, patterns: Sequence[str] = FILES) -> list[Location]:
    """The files of a folder that match a pattern, by name; InputError, naming `where`, without any."""
    files = [one for one in folder.iterdir() if any(fnmatchcase(one.name, p) for p in patterns) and one.is_file()]
    if not files:
        raise InputError(f"{where}: the folder has no {' or '.join(patterns)}, and is not a prepared one.")
    return sorted(files, key=lambda file: file.name)


def require_text(path: Location) -> None:
    """Refuse a pipe, and a binary file, which has a zero byte near its start; other errors are left to the reader."""
    if isinstance(path, Path):
        require_regular(path)
    try:
        with open_binary(path) as file:
            binary = b"\0" in file.read(START)
    except (OSError, EOFError, lzma.LZMAError, zlib.error):
        binary = False
    if binary:
        raise InputError(f"{path}: is a binary file; expected text in UTF-8 with one sentence a line.")


@dataclass(frozen=True)
class Reading:
    """How data sets are read.

    Attributes:
        column: of the texts in Parquet files and in data sets that the catalogue does not know.
        pair_columns: of the two sides of translations there; empty for those named as the languages, or `translation`.
        stream: read hub data sets without downloading them whole.
        most: sentences or pairs taken from each streamed source; None for all.
    """

    column: str = "text"
    pair_columns: Sequence[str] = ()
    stream: bool = False
    most: int | None = None


@dataclass(frozen=True)
class Source(Generic[Item]):
    """A value of an option: `LANG=SOURCE`, or `LANG=SOURCE:CONFIG:SPLIT` for a data set.

    `TextSource` and `PairSource` say how a value is split, which columns are read, and how lines and rows become items.

    Attributes:
        language: its code; for translations, two with a hyphen between them.
        config: of a data set; None for the language's (prepared data), or the data set's own default.
    """

    option: str
    language: str
    where: str
    config: str | None = None
    split: str = "train"
    patterns: ClassVar[Sequence[str]] = ()

    @classmethod
    def parse(cls, text: str, option: str) -> Self:
        """Read a value; InputError if it names no language or no source."""
        language, where = cls._split(text, option)
        if cls._is_local(where) or is_url(where):
            return cls(option, language, where)
        name, *rest = where.split(":")
        if len(rest) > 2:
            raise InputError(f"{option} {text}: expected LANG=SOURCE:CONFIG:SPLIT at most.")
        return cls(option, language, name, (rest[0] or None) if rest else None, *rest[1:])

    def items(self, reading: Reading) -> Iterator[Item]:
        """The sentences or pairs in order, without empty ones; InputError if the source cannot be read, has no text,
        or has changed since `stamp` was first read."""
        stamp, items = self.stamp, self._read(reading)
        for first in items:
            yield first
            yield from items
            break
        else:
            raise InputError(f"{self}: has no text; leave it out, or pass another.")
        if not stamp.startswith(self._stamp()):
            raise InputError(f"{self}: changed while it was being read; rerun when no other process writes to it.")

    @cached_property
    def on_hub(self) -> bool:
        return not (is_url(self.where) or self._is_local(self.where) or self.where == SAMPLE_SOURCE)

    @cached_property
    def resolved(self) -> tuple[str, str | None]:
        """Where it is read from: a path, also of the local copy of a URL, or a data set on the hub, and its commit."""
        if not self.on_hub:
            where = str(SAMPLE) if self.where == SAMPLE_SOURCE else self.where
            return str(fetched_texts(where)) if is_url(where) else where, None
        if not is_repo_id(self.where) or "," in self.where:
            raise InputError(f"{self}: no such file or folder, and not a hub id such as ORG/NAME.")
        name, revision = split_revision(self.where)
        return name, commit_of("dataset", name, revision) or revision

    def _stamp(self) -> str:
        """The names, sizes and times of the files that are read, or the commit of a data set on the hub."""
        where, revision = self.resolved
        path: Path = Path(where)
        files = self.files() or [path / "README.md", *path.glob("data/*/*")]
        here = sorted({file.resolve() for file in files if file.is_file()})
        facts = [(str(file), (stat := file.stat()).st_size, stat.st_mtime_ns) for file in here]
        own = self.name(), where, revision, self.language, self.config, self.split
        return f"{type(self).__name__} {own} {facts}"

    @cached_property
    def stamp(self) -> str:
        """Equal for equal contents, as far as is known: never for a data set whose commit the hub does not tell."""
        known = not self.on_hub or COMMIT.fullmatch(self.resolved[1] or "")
        return self._stamp() + ("" if known else uuid4().hex)

    def files(self) -> list[Path]:
        """The files that are read: one after the other, or two line by line; none of a data set."""
        where, _ = self.resolved
        path = Path(where)
        if self.on_hub or (path / "data").is_dir():
            return []
        if path.is_dir():
            return cast("list[Path]", files_in(path, self, self.patterns))
        return [path] if path.exists() else [Path(part) for part in where.split(",")]

    def _read(self, reading: Reading) -> Iterator[Item]:
        where, revision = self.resolved
        if Path(where, "data").is_dir():
            return self._data_set(open_prepared(where), True, replace(reading, stream=False))
        if not self.on_hub:
            return self._files(reading)
        data = PreparedData(where, None, revision)
        items = self._data_set(data, bool(data.report().get("data_set")), reading)
        return islice(items, reading.most if reading.stream else None)

    def name(self) -> str:
        """The name in records: a hub id or `sample`; of files, folders and URLs the last part of the path."""
        if is_url(self.where):
            return location(self.where).name
        return ",".join(Path(part).name for part in self.where.split(",")) if self._is_local(self.where) else self.where

    def __str__(self) -> str:
        return f"{self.option} {self.language}={masked(self.where)}"

    @staticmethod
    def _split(text: str, option: str) -> tuple[str, str]:
        raise NotImplementedError

    def lines(self, path: Path, numbered: Iterator[tuple[int, str]]) -> Iterator[Item]:
        """The items in lines of a text file; `path` and the lines' numbers are only used in errors."""
        raise NotImplementedError

    def _columns(self, names: Sequence[str], reading: Reading) -> Sequence[str]:
        """The columns to read of a table that the catalogue does not know."""
        raise NotImplementedError

    def _known_columns(self, data: PreparedData, config: str, names: Sequence[str], reading: Reading) -> Sequence[str]:
        """The columns to read of a prepared data set."""
        raise NotImplementedError

    def _items(self, row: Sequence[Any]) -> Iterator[Item]:
        """The items in a row's values of these columns."""
        raise NotImplementedError

    @staticmethod
    def _is_local(where: str) -> bool:
        return Path(where).exists()

    def _files(self, reading: Reading) -> Iterator[Item]:
        for file in self.files():
            yield from self._parquet(file, reading) if file.suffix == ".parquet" else self.lines(file, _read(file))

    def _parquet(self, path: Path, reading: Reading) -> Iterator[Item]:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            with pq.ParquetFile(path) as file:
                columns = self._columns(file.schema_arrow.names, reading)
                for batch in file.iter_batches(columns=list(columns)):
                    for row in zip(*(batch.column(name).to_pylist() for name in columns), strict=True):
                        yield from self._items(row)
        except (pa.ArrowInvalid, OSError) as error:
            raise InputError(f"{path}: cannot be read as Parquet ({first_line(error)}).") from None

    def _data_set(self, data: PreparedData, known: bool, reading: Reading) -> Iterator[Item]:
        """The items of a data set; `known` to the catalogue, if it was prepared by this package."""
        from datasets import load_dataset

        config = self.config or (self.language if known else None)
        if known and config not in (have := data.configs()):
            raise InputError(f"{self}: no text of {config!r}; the data have {' '.join(have)}.")
        try:
            rows: Any = (
                data.load(str(config), self.split)
                if known and not reading.stream
                else load_dataset(data.name, config, split=self.split, revision=data.revision, streaming=reading.stream)
            )
            names = rows.column_names or list(next(iter(rows), {}))
            columns = self._known_columns(data, str(config), names, reading) if known else self._columns(names, reading)
            for batch in rows.select_columns(list(dict.fromkeys(columns))).iter(
                batch_size=min(ROWS, reading.most or ROWS)
            ):
                for row in zip(*(batch[column] for column in columns), strict=True):
                    yield from self._items(row)
        except (ValueError, OSError) as error:
            raise InputError(f"{self}: cannot be loaded ({first_line(error)}).") from None

    def _text(self, value: Any) -> str:
        if value is None:
            return ""
        if not isinstance(value, str):
            raise InputError(f"{self}: expected texts, found {type(value).__name__}; name another column.")
        return value


@dataclass(frozen=True)
class TextSource(Source[str]):
    """A value of `--text`: sentences of one language."""

    patterns: ClassVar[Sequence[str]] = (*FILES, "*.parquet")

    _split = staticmethod(split_language)

    def lines(self, path: Path, numbered: Iterator[tuple[int, str]]) -> Iterator[str]:
        return _one_lines(line for _, line in numbered)

    def _columns(self, names: Sequence[str], reading: Reading) -> Sequence[str]:
        if reading.column not in names:
            raise InputError(f"{self}: no column {reading.column!r}; pass --text_column, one of {' '.join(names)}.")
        return [reading.column]

    def _known_columns(self, data: PreparedData, config: str, names: Sequence[str], reading: Reading) -> Sequence[str]:
        texts = data.record().kind_of(config).texts
        columns = texts.get(self.language) or texts.get(LANGUAGE) or ()
        if not columns:
            raise InputError(f"{self}: {config} has no text in {self.language}; name another config.")
        return columns

    def _items(self, row: Sequence[Any]) -> Iterator[str]:
        return _one_lines(line for value in row for line in self._text(value).split("\n"))


@dataclass(frozen=True)
class PairSource(Source[Pair]):
    """A value of `--parallel`: translations, `en-ht=SOURCE`, or `en-ht=FILE,FILE` for two files line by line."""

    patterns: ClassVar[Sequence[str]] = ("*.tsv", "*.tsv.gz", "*.tsv.xz", "*.tsv.zst", "*.parquet")

    @staticmethod
    def _split(text: str, option: str) -> tuple[str, str]:
        pair, _, where = text.partition("=")
        if not where:
            raise InputError(
                f"{option} {text}: expected LANG-LANG=SOURCE, such as en-ht=pairs.tsv or "
                "en-ht=texts/en.txt,texts/ht.txt."
            )
        if languages_of(pair) is None:
            raise InputError(
                f"{option} {text}: {pair!r} is not two codes of languages with a hyphen between them, such as en-ht."
            )
        return pair, where

    @staticmethod
    def _is_local(where: str) -> bool:
        return Path(where).exists() or _two_files(where) is not None

    def _files(self, reading: Reading) -> Iterator[Pair]:
        two = None if Path(self.where).exists() else _two_files(self.where)
        return self._aligned(*two) if two else super()._files(reading)

    def lines(self, path: Path, numbered: Iterator[tuple[int, str]]) -> Iterator[Pair]:
        for number, line in numbered:
            if not line.strip():
                continue
            cells = line.split("\t")
            if len(cells) != 2:
                raise InputError(
                    f"{path}, line {number}: expected a text, a tab and its translation, found {len(cells)} columns; "
                    "leave others out."
                )
            yield from self._items(cells)

    def _aligned(self, *paths: Path) -> Iterator[Pair]:
        ends = [0, 0]
        for cells in zip_longest(*map(_read, paths)):
            ends = [end if cell is None else cell[0] for end, cell in zip(ends, cells, strict=True)]
            if None not in cells:
                yield from self._items([cell[1] for cell in cells])
        if ends[0] != ends[1]:
            raise InputError(
                f"{self}: the files have {ends[0]:,} and {ends[1]:,} lines; each line must be the translation of the "
                "same line of the other."
            )

    def _columns(self, names: Sequence[str], reading: Reading) -> Sequence[str]:
        wanted = list(reading.pair_columns or languages_of(self.language) or ())
        if set(wanted) <= set(names):
            return wanted
        if not reading.pair_columns and TRANSLATION in names:
            return [TRANSLATION]
        raise InputError(
            f"{self}: no columns {' and '.join(wanted)}; pass --parallel_columns, two of {' '.join(names)}."
        )

    def _known_columns(self, data: PreparedData, config: str, names: Sequence[str], reading: Reading) -> Sequence[str]:
        """One column in each of the languages, if the catalogue knows them."""
        record = data.record()
        texts, own = record.kind_of(config).texts, record.language_of(config)
        sides = languages_of(self.language) or ()
        known = [texts.get(side) or (texts.get(LANGUAGE) if side == own else None) or () for side in sides]
        if not reading.pair_columns and known and all(len(columns) == 1 for columns in known):
            return [columns[0] for columns in known]
        return self._columns(names, reading)

    def _items(self, row: Sequence[Any]) -> Iterator[Pair]:
        if len(row) == 1:  # a column `translation`
            sides = dict(row[0] or {})
            languages = languages_of(self.language) or ()
            if sides and not set(languages) <= sides.keys():
                raise InputError(f"{self}: the translations are of {' '.join(sides)}; name two of these languages.")
            row = [sides.get(language) for language in languages]
        first, second = (" ".join(self._text(value).split()) for value in row)
        if first and second:
            yield first, second


def languages_of(pair: str) -> Pair | None:
    """The two languages of a pair such as en-ht or pt-BR-zh-Hant; None if it is not a pair.

    >>> languages_of("pt-BR-zh-Hant"), languages_of("pt-BR")
    (('pt-BR', 'zh-Hant'), None)
    """
    parts = pair.split("-")
    both = (("-".join(parts[:cut]), "-".join(parts[cut:])) for cut in range(1, len(parts)))
    return next((sides for sides in both if all(map(find_language, sides))), None)


def _two_files(where: str) -> tuple[Path, Path] | None:
    first, comma, second = where.partition(",")
    both = Path(first), Path(second)
    return both if comma and all(path.is_file() for path in both) else None


def _read(path: Path) -> Iterator[tuple[int, str]]:
    require_text(path)
    yield from read_lines(path)


def _one_lines(lines: Iterator[str]) -> Iterator[str]:
    """The lines with single spaces between their words, without the empty ones."""
    return (text for line in lines if (text := " ".join(line.split())))
