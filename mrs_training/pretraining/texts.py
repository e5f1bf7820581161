"""Text to pretrain on, by language: from text files, folders, prepared data sets and the hub, with a part held out."""

from __future__ import annotations

import hashlib
import lzma
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mrs_core.errors import InputError, first_line
from mrs_core.hub import commit_of, is_repo_id, split_revision
from mrs_core.languages import find_language
from mrs_core.lines import open_binary, read_lines
from mrs_datasets.catalogue import LANGUAGE
from mrs_datasets.prepared import PreparedData, open_prepared
from mrs_evaluation.language_data import EVALUATION_SEED
from mrs_training.card import Record

FILES = ("*.txt", "*.txt.gz", "*.txt.xz")  # of a folder of texts
START = 1 << 13  # bytes that are looked at before a file is read as text
MOST_HELD_OUT = 10  # at most one sentence in this many is held out of a text (ours: a small text must still teach)


@dataclass(frozen=True)
class TextSource:
    """A value of `--text`: `LANG=SOURCE`, or `LANG=SOURCE:CONFIG:SPLIT` for a data set.

    Attributes:
        option: where it was given, for errors.
        config: of a data set; None: the language's (prepared data), or the data set's own default.
    """

    option: str
    language: str
    where: str
    config: str | None = None
    split: str = "train"

    @staticmethod
    def parse(text: str, option: str = "--text") -> TextSource:
        """Read a value; InputError where it names no language or nothing."""
        language, equals, where = text.partition("=")
        if not equals or not where:
            raise InputError(f"{option} {text}: expected LANG=SOURCE, such as ht=texts/ht.txt.")
        if find_language(language) is None:
            raise InputError(f"{option} {text}: {language!r} is not the code of a language, such as ht or pt-BR.")
        if Path(where).exists():
            return TextSource(option, language, where)
        name, *rest = where.split(":")
        if len(rest) > 2:
            raise InputError(f"{option} {text}: expected LANG=SOURCE:CONFIG:SPLIT at most.")
        return TextSource(option, language, name, (rest[0] or None) if rest else None, *rest[1:])

    def sentences(self, column: str) -> tuple[list[str], str | None]:
        """All sentences in order, without empty ones, and the revision of a hub data set.

        Raises:
            InputError: the source does not exist, cannot be read, or has no text.
        """
        path, revision = Path(self.where), None
        if path.is_file():
            found = list(_lines(path))
        elif path.is_dir() and not (path / "data").is_dir():
            files = sorted({file for pattern in FILES for file in path.glob(pattern)})
            if not files:
                raise InputError(f"{self}: the folder has no {' or '.join(FILES)}, and is not a prepared one.")
            found = [line for file in files for line in _lines(file)]
        elif path.is_dir() or self.where == "sample":
            found = self._prepared(open_prepared(self.where))
        elif is_repo_id(self.where):
            name, revision = split_revision(self.where)
            revision = commit_of("dataset", name, revision) or revision
            data = PreparedData(name, None, revision)
            found = self._prepared(data) if data.report().get("data_set") else self._hub(name, revision, column)
        else:
            raise InputError(f"{self}: no such file or folder, and not a hub id such as ORG/NAME.")
        if not found:
            raise InputError(f"{self}: has no text; leave it out, or pass another.")
        return found, revision

    def __str__(self) -> str:
        return f"{self.option} {self.language}={self.where}"

    def _prepared(self, data: PreparedData) -> list[str]:
        config = self.config or self.language
        have = data.configs()
        if config not in have:
            raise InputError(f"{self}: no text of {config!r}; the data have {' '.join(have)}.")
        texts = data.record().kind_of(config).texts
        columns = texts.get(self.language) or texts.get(LANGUAGE) or ()
        if not columns:
            raise InputError(f"{self}: {config} has no text in {self.language}; name another config.")
        rows = data.load(config, self.split)
        return _clean(text for row in zip(*(rows[column][:] for column in columns), strict=True) for text in row)

    def _hub(self, name: str, revision: str | None, column: str) -> list[str]:
        from datasets import load_dataset
        from datasets.exceptions import DatasetNotFoundError

        try:
            rows = load_dataset(name, self.config, split=self.split, revision=revision)
        except (DatasetNotFoundError, ValueError, OSError) as error:
            raise InputError(f"{self}: cannot be loaded ({first_line(error)}).") from None
        if column not in rows.column_names:
            raise InputError(f"{self}: no column {column!r}; pass --text_column, one of {' '.join(rows.column_names)}.")
        return _clean(line for text in rows[column][:] for line in (text or "").split("\n"))


def _lines(path: Path) -> Iterator[str]:
    with open_binary(path) as file:
        try:
            binary = b"\0" in file.read(START)
        except (OSError, EOFError, lzma.LZMAError, zlib.error):
            binary = False  # `read_lines` says what is wrong
    if binary:
        raise InputError(f"{path}: is a binary file; expected text in UTF-8 with one sentence a line.")
    yield from _clean(line for _, line in read_lines(path))


def _clean(lines: Iterator[str]) -> list[str]:
    return [text for line in lines if (text := " ".join(line.split()))]


@dataclass(frozen=True)
class TextData:
    """The sentences of a run by language.

    Attributes:
        sources: for the record: language, name, sentences read, and the revision of a hub data set.
        repeated: training sentences that were left out, since they are held out too.
    """

    train: dict[str, list[str]]
    validation: dict[str, list[str]] = field(default_factory=dict)
    test: dict[str, list[str]] = field(default_factory=dict)
    sources: list[Record] = field(default_factory=list)
    repeated: int = 0

    def texts(self) -> list[str]:
        """All training sentences."""
        return [text for sentences in self.train.values() for text in sentences]

    def facts(self) -> Record:
        """Facts for the record of a run."""
        rows: dict[str, dict[str, int]] = {}
        digest = hashlib.sha256()
        parts = {"train": self.train, "validation": self.validation, "test": self.test}
        for split, by_language in parts.items():
            for language, sentences in by_language.items():
                rows.setdefault(language, {})[split] = len(sentences)
                digest.update(f"{split} {language} {len(sentences)}\n".encode())
                digest.update("\n".join(sentences).encode("utf-8", "surrogateescape"))
        title = f"text in {', '.join(self.train)}"
        data = {"id": "text", "title": title, "content_hash": digest.hexdigest()[:16], "rows": rows}
        if all(source["source"] == "sample" for source in self.sources):
            data["reader"] = "sample"  # its licence is known
        return {"data": data, "texts": {"sources": self.sources, "repeated": self.repeated}}


def read_texts(
    train: Sequence[TextSource],
    validation: Sequence[TextSource],
    test: Sequence[TextSource],
    column: str,
    held_out: int,
    validated: Sequence[str],
    most: int | None = None,
    seed: int = 0,
) -> TextData:
    """Read all sources.

    Args:
        validation: held-out text; without any, `held_out` sentences of the first source of each validated language
            are, but at most one in ten; which ones depends on the text alone.
        column: of the texts in a data set that the catalogue does not know.
        validated: languages that are held out; none: all.
        most: training sentences of each language, drawn with `seed`; None: all.

    Raises:
        InputError: a source cannot be read, has no text, or a validated language has none.
    """
    sources: list[Record] = []

    def read(source: TextSource, split: str) -> list[str]:
        found, revision = source.sentences(column)
        name = Path(source.where).name if Path(source.where).exists() else source.where
        entry = {"language": source.language, "source": name, "for": split, "sentences": len(found)}
        if source.config or source.split != "train":
            entry["part"] = f"{source.config or source.language}/{source.split}"
        sources.append({**entry, "revision": revision} if revision else entry)
        return found

    wanted = dict.fromkeys(validated or [source.language for source in train])
    texts: dict[str, list[str]] = {}
    kept: dict[str, list[str]] = {}
    for source in train:
        found = read(source, "train")
        language = source.language
        if not validation and held_out and language in wanted and language not in kept:
            kept[language], found = _held_out(found, held_out)
        texts.setdefault(language, []).extend(found)
    for language in wanted:
        if not validation and held_out and not kept.get(language):
            where = "--text has too little" if language in texts else "there is no --text in it"
            raise InputError(f"--validation {language}: {where}; pass --validation_text {language}=FILE.")
    tested: dict[str, list[str]] = {}
    for parts, split, into in ((validation, "validation", kept), (test, "test", tested)):
        for source in parts:
            into.setdefault(source.language, []).extend(read(source, split))
    unseen = {text for part in (kept, tested) for sentences in part.values() for text in sentences}
    clean = {language: [text for text in found if text not in unseen] for language, found in texts.items()}
    repeated = sum(map(len, texts.values())) - sum(map(len, clean.values()))
    for language, found in clean.items():
        if not found:
            raise InputError(f"--text {language}: every sentence is held out too; pass text that is not.")
        if most is not None and len(found) > most:
            clean[language] = [found[n] for n in sorted(np.random.default_rng(seed).permutation(len(found))[:most])]
    return TextData(clean, kept, tested, sources, repeated)


def _held_out(sentences: list[str], wanted: int) -> tuple[list[str], list[str]]:
    """(held out, rest), each in the order of the text."""
    count = min(wanted, len(sentences) // MOST_HELD_OUT)
    chosen = np.zeros(len(sentences), dtype=bool)
    chosen[np.random.default_rng(EVALUATION_SEED).permutation(len(sentences))[:count]] = True
    both: tuple[list[str], list[str]] = ([], [])
    for text, out in zip(sentences, chosen, strict=True):
        both[0 if out else 1].append(text)
    return both
