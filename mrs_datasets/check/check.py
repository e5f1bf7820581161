"""Errors in a prepared folder, and warnings about what only looks odd: the findings of `mrs data check`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrs_datasets.catalogue import ERROR, LIST, WARNING, DatasetRecord, Kind
from mrs_datasets.check.check_parts import parts_found
from mrs_datasets.check.check_texts import languages_found, scripts_found
from mrs_datasets.check.findings import EXAMPLES, Examples, Finding, batches, joined, shorten
from mrs_datasets.describe.describe import text_columns, texts_of
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import PreparedReport
from mrs_datasets.prepared.soundness import require_values, row_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.language_id import Identify
from mrs_suggest.common.text.text import is_blank

WEIGHT_TOLERANCE = 1e-3


def check(
    data: PreparedData,
    identify: Identify | None = None,
    known_languages: frozenset[str] = frozenset(),
    progress: Callable[[list[str]], Iterable[str]] = iter,
) -> Iterator[Finding]:
    """Yield the findings about a prepared folder.

    Args:
        identify: texts -> (language, probability) of each; None leaves the languages unchecked.
        known_languages: what `identify` can recognise; texts of other languages are not checked.
        progress: wraps the list of configs, to show progress.

    Raises:
        InputError: the data are not a folder, or their data set is not in the catalogue.
    """
    if data.folder is None:
        raise InputError(f"{data.name}: only a folder can be checked; download it first.")
    record = data.record()
    names = {config for config, _, _ in record.configs()}
    for path in sorted((data.folder / "data").iterdir()):
        if path.name not in names and not path.name.startswith("."):
            yield Finding(ERROR, "config unknown to the catalogue", path.name, 1, (str(path.name),))
    report = data.report()
    identifiers: dict[str, dict[tuple[str, str], pa.Table]] = {}
    for config in progress(data.configs()):
        kind, keys = record.kind_of(config), _Keys()
        columns = _Columns(record, kind, text_columns(record, config))
        for split in data.splits(config):
            where, files = f"{config}/{split}", data.files(config, split)
            broken = list(_schema(files, record.schema(config), where))
            yield from broken
            if broken:
                continue
            whole = kind.rows_of(record.language_of(config)).get(split)
            yield from _size(files, whole, split, where, report)
            try:
                unusable = list(_unusable(files, kind, where))
                yield from unusable
                if unusable:
                    continue
                yield from _rows(files, columns, where)
                yield from parts_found(files, kind, columns.identity, where)
                yield from keys.add(split, _hashes(files, columns.identity), files, columns, where)
                for language, held in columns.by_language.items():
                    yield from scripts_found(files, language, held, where)
                    if identify:
                        yield from languages_found(files, language, held, where, identify, known_languages)
                if kind.parallel:
                    table = pq.ParquetDataset(files).read([*columns.identifiers, *kind.parallel])
                    identifiers.setdefault(split, {})[kind.config, config] = table
            except (pa.ArrowException, OSError) as error:
                problem = f"cannot be read as Parquet ({str(error).splitlines()[0]})"
                yield Finding(ERROR, "schema", where, 1, (problem,))
        yield from keys.across(config)
    yield from _unreported(data, report)
    yield from _leakage(report)
    yield from _parallel(record, identifiers)


def _unreported(data: PreparedData, report: PreparedReport) -> Iterator[Finding]:
    """Splits that report.json lists and the folder lacks, and vice versa."""
    listed = {f"{config}/{split}" for config, splits in report.get("configs", {}).items() for split in splits}
    there = {f"{config}/{split}" for config in data.configs() for split in data.splits(config)}
    for where in sorted(listed - there):
        yield Finding(ERROR, "split that report.json lists", where, 1, ("the files are missing",))
    for where in sorted(there - listed if listed else ()):
        yield Finding(
            ERROR, "split that report.json does not list", where, 1, ("remove it, or prepare the folder again",)
        )
    if not there:
        yield Finding(ERROR, "no split", data.name, 1, ("data/ holds nothing of the catalogue's configs",))


def _leakage(report: PreparedReport) -> Iterator[Finding]:
    """Threads, messages and comments in several splits, as counted by the build, since ids are not in the data.

    With a split by example, as in the paper (section 2), they are expected, and figures on the test split are better
    than on new threads; with a split by thread there must be none.
    """
    level = ERROR if report.get("settings", {}).get("split_by") == "thread" else WARNING
    for language, counts in report.get("pipeline", {}).get("leakage", {}).items():
        for what in ("threads", "messages", "comments"):
            crossing = counts.get(f"{what} in several splits", 0)
            if crossing:
                of = (f"{crossing:,} of {counts[what]:,} (from report.json)",)
                yield Finding(level, f"{what} of Reddit in several splits", language, crossing, of)


class _Columns:
    """The roles of a kind's columns."""

    def __init__(self, record: DatasetRecord, kind: Kind, languages: dict[str, str]) -> None:
        columns = {name: record.columns[name] for name in kind.columns}
        plain = [name for name, column in columns.items() if column.dtype == "string"]
        self.record, self.kind = record, kind
        self.by_language = {
            language: [name for name, own in languages.items() if own == language]
            for language in dict.fromkeys(languages.values())
        }
        self.identifiers = [name for name, column in columns.items() if column.identifier]
        self.required = [name for name, column in columns.items() if not column.optional and name not in kind.hidden]
        self.texts = [*plain, *(name for name in languages if name not in plain)]
        apart = {*self.identifiers, *kind.corrected.values()}
        listed = [name for name, column in columns.items() if column.dtype == LIST + "string"]
        self.identity = [name for name in plain if name in self.required and name not in apart]
        self.identity = self.identity or [name for name in listed if name in self.required]
        self.values = {name: column.values for name, column in columns.items() if column.values} | kind.values
        self.weighted = [name for name, column in columns.items() if "weight: float64" in column.dtype]
        self.labels = {name: column.names for name, column in columns.items() if column.dtype == "class_label"}


def _schema(files: list[Path], expected: pa.Schema, where: str) -> Iterator[Finding]:
    for path in files:
        try:
            found = pq.read_schema(path).remove_metadata()
            problem = _difference(found, expected)
        except (pa.ArrowException, OSError) as error:
            problem = f"cannot be read as Parquet ({str(error).splitlines()[0]})"
        if problem:
            yield Finding(ERROR, "schema", where, 1, (f"{path.name}: {problem}",))


def _unusable(files: list[Path], kind: Kind, where: str) -> Iterator[Finding]:
    """The first text that no command can use; then the split is left alone."""
    for start, table in batches(files, list(kind.columns)):
        try:
            require_values(table, (), partial(row_of, where, start))
        except InputError as error:
            yield Finding(ERROR, "text that cannot be used", where, 1, (str(error).partition(";")[0],))
            return


def _difference(found: pa.Schema, expected: pa.Schema) -> str:
    """How a schema differs; empty if it does not."""
    missing = [name for name in expected.names if name not in found.names]
    extra = [name for name in found.names if name not in expected.names]
    if missing or extra:
        return "; ".join(
            f"{what} {', '.join(names)}" for what, names in (("lacks", missing), ("has also", extra)) if names
        )
    wrong = [
        f"{name} is {found.field(name).type}, not {expected.field(name).type}"
        for name in expected.names
        if not _same_type(found.field(name).type, expected.field(name).type)
    ]
    return "; ".join(wrong)


def _same_type(found: pa.DataType, expected: pa.DataType) -> bool:
    """Whether the types are equal, up to Parquet's name for list items."""
    if pa.types.is_list(expected) and pa.types.is_list(found):
        return bool(found.value_type == expected.value_type)
    return bool(found == expected)


def _size(files: list[Path], whole: int | None, split: str, where: str, report: PreparedReport) -> Iterator[Finding]:
    rows = sum(pq.read_metadata(path).num_rows for path in files)
    config = where.rpartition("/")[0]
    entry = report.get("configs", {}).get(config, {}).get(split)
    reported = entry.get("rows") if entry else None
    if reported is not None and reported != rows:
        yield Finding(
            ERROR, "rows that report.json counts", where, abs(rows - reported), (f"{rows:,}, not {reported:,}",)
        )
    if whole is not None and rows != whole:
        partial = where in report.get("partial_splits", [])
        level, rule = (
            (WARNING, "rows of a whole source (noted in report.json)") if partial else (ERROR, "rows of a whole source")
        )
        yield Finding(level, rule, where, abs(rows - whole), (f"{rows:,}, not {whole:,}",))


def _rows(files: list[Path], columns: _Columns, where: str) -> Iterator[Finding]:
    """Checks of single rows: nulls, empty texts, values, labels, alternatives; and repeated stems."""
    nulls, empty, zeros, values, labels, alike, weights, sums = (Examples() for _ in range(8))
    corrected = {pair: Examples() for pair in columns.kind.corrected.items()}
    kind = columns.kind
    for start, table in batches(files, list(kind.columns)):
        row = joined(table, columns.identity)
        for name in columns.required:
            nulls.add(pc.is_null(table[name]), row, start)
        for name in columns.texts:
            texts = texts_of(table[name])
            blank = pa.array([text is not None and is_blank(text) for text in texts.to_pylist()], pa.bool_())
            empty.add(_rows_with(table[name], blank), row, start)
            zeros.add(_rows_with(table[name], pc.fill_null(pc.match_substring(texts, "\0"), False)), row, start)
        for name, allowed in columns.values.items():
            texts = texts_of(table[name])
            known = pc.or_(pc.is_in(texts, pa.array(allowed, pa.string())), pc.is_null(texts))
            values.add(_rows_with(table[name], pc.invert(known)), joined(table, [name]), start)
        for name, names in columns.labels.items():
            outside = pc.or_(pc.less(table[name], 0), pc.greater_equal(table[name], len(names)))
            labels.add(pc.fill_null(outside, False), table[name], start)
        for name in columns.weighted:
            wrong, off = _bad_weights(table[name])
            weights.add(wrong, row, start)
            sums.add(off, row, start)
        for left, right in _pairs(kind.alternatives):
            alike.add(pc.fill_null(pc.equal(table[left], table[right]), False), row, start)
        for (published, better), differing in corrected.items():
            differing.add(pc.fill_null(pc.not_equal(table[published], table[better]), False), row, start)
    yield from nulls.finding(ERROR, "null where a value is needed", where)
    yield from empty.finding(kind.empties, "empty text", where)
    yield from zeros.finding(ERROR, "NUL character in a text", where)
    yield from values.finding(ERROR, "value that the column does not have", where)
    yield from labels.finding(ERROR, "label out of range", where)
    yield from weights.finding(ERROR, "entry without text or with an invalid weight", where)
    yield from sums.finding(ERROR, "weights that do not sum to 1", where)
    yield from alike.finding(WARNING, f"equal {' and '.join(kind.alternatives)}", where)
    for (published, better), differing in corrected.items():
        yield from differing.finding(WARNING, f"{published} other than {better}", where)
    if columns.identifiers:
        yield from _repeated(files, columns.identifiers, columns.identity, ERROR, "identifier of another row", where)
    if kind.stem:
        rule = f"{' and '.join(kind.stem)} of another row"
        yield from _repeated(files, list(kind.stem), list(kind.stem), WARNING, rule, where)


def _rows_with(column: pa.ChunkedArray, mask: pa.Array | pa.ChunkedArray) -> NDArray[np.bool_]:
    """For each row, whether the mask over its texts (see `texts_of`) is true for one of them."""
    found = np.asarray(mask, bool)
    if not pa.types.is_list(column.type):
        return found
    rows = np.zeros(len(column), bool)
    rows[np.asarray(pc.list_parent_indices(column))[found]] = True
    return rows


def _bad_weights(column: pa.ChunkedArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For each row: whether an entry is null, has no text or a weight below 0; whether the weights do not sum to 1."""
    rows = np.asarray(pc.list_parent_indices(column))
    entries = pc.list_flatten(column)
    texts, weights = pc.struct_field(entries, "text"), pc.struct_field(entries, "weight")
    bad = pc.or_(pc.is_null(texts), pc.invert(pc.fill_null(pc.greater_equal(weights, 0.0), False)))
    wrong = np.zeros(len(column), bool)
    wrong[rows[np.asarray(bad, bool)]] = True
    sums = np.bincount(rows, np.asarray(pc.fill_null(weights, 0.0), float), len(column))
    filled = np.bincount(rows, minlength=len(column)) > 0  # blind prompts have no entries
    return wrong, filled & (np.abs(sums - 1) > WEIGHT_TOLERANCE)


def _pairs(names: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    for number, left in enumerate(names):
        for right in names[number + 1 :]:
            yield left, right


def _hashes(files: list[Path], columns: list[str]) -> NDArray[np.uint64]:
    """64 bits per row: with a hundred million rows, one data set in 3,700 has a false pair."""
    parts = [
        pd.util.hash_array(np.asarray(joined(table, columns).to_pylist(), object), categorize=False)
        for _, table in batches(files, columns)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _repeated(
    files: list[Path], columns: list[str], shown: list[str], level: str, rule: str, where: str
) -> Iterator[Finding]:
    """Rows that are equal to an earlier row in `columns`."""
    again = _again(_hashes(files, columns))
    yield from _found(files, again, shown, level, rule, where)


def _again(hashes: NDArray[np.uint64]) -> NDArray[np.int64]:
    """The rows with the same hash as an earlier one."""
    _, first = np.unique(hashes, return_index=True)
    mask = np.ones(len(hashes), bool)
    mask[first] = False
    return np.flatnonzero(mask)


def _found(
    files: list[Path], rows: NDArray[np.int64], shown: list[str], level: str, rule: str, where: str
) -> Iterator[Finding]:
    """One finding for some rows; only the examples' texts are read."""
    if not len(rows):
        return
    wanted = rows[:EXAMPLES]
    examples = []
    for start, table in batches(files, shown):
        inside = wanted[(wanted >= start) & (wanted < start + len(table))]
        texts = joined(table, shown) if len(inside) else None
        examples += [f"row {row}: {shorten(texts[int(row - start)].as_py())}" for row in inside if texts is not None]
    yield Finding(level, rule, where, len(rows), tuple(examples))


class _Keys:
    """The rows of a config, by hash, to find repeated ones within a split or in two splits."""

    def __init__(self) -> None:
        self.splits: dict[str, tuple[NDArray[np.uint64], list[Path], _Columns]] = {}

    def add(
        self, split: str, hashes: NDArray[np.uint64], files: list[Path], columns: _Columns, where: str
    ) -> Iterator[Finding]:
        level = columns.kind.repeats
        yield from _found(files, _again(hashes), columns.identity, level, "row identical to an earlier one", where)
        self.splits[split] = (hashes, files, columns)

    def across(self, config: str) -> Iterator[Finding]:
        """Rows that are in two splits: a model must not be tested on its training data."""
        names = list(self.splits)
        for number, earlier in enumerate(names):
            for later in names[number + 1 :]:
                hashes, files, columns = self.splits[later]
                rows = np.flatnonzero(np.isin(hashes, self.splits[earlier][0]))
                rule = f"row identical to one of {earlier}"
                level = columns.kind.leaks
                yield from _found(files, rows, columns.identity, level, rule, f"{config}/{later}")
                if "message" in columns.identity:
                    messages, others = (_hashes(self.splits[name][1], ["message"]) for name in (later, earlier))
                    rows = np.flatnonzero(np.isin(messages, others) & ~np.isin(hashes, self.splits[earlier][0]))
                    rule = f"message of {earlier} with another reply"
                    yield from _found(files, rows, columns.identity, WARNING, rule, f"{config}/{later}")


def _parallel(record: DatasetRecord, tables: dict[str, dict[tuple[str, str], pa.Table]]) -> Iterator[Finding]:
    """Rows that differ from most configs of their kind and split in a column that should be equal."""
    for split, of_kind in tables.items():
        for pattern in dict.fromkeys(pattern for pattern, _ in of_kind):
            configs = {config: table for (own, config), table in of_kind.items() if own == pattern}
            kind = record.kind_of(next(iter(configs)))
            keys = [name for name in kind.columns if record.columns[name].identifier]
            for column, level in kind.parallel.items():
                frame = pd.concat(
                    [
                        table.select([*keys, column]).to_pandas().assign(config=config)
                        for config, table in configs.items()
                    ]
                )
                frame = frame.dropna()  # nulls are found by another rule
                usual = frame.groupby(keys)[column].transform(lambda values: values.mode().iloc[0])
                for config, rows in frame[frame[column] != usual].groupby("config", sort=False):
                    shown = [
                        f"{', '.join(f'{key} {row[key]}' for key in keys)}: {row[column]}"
                        for _, row in rows[:EXAMPLES].iterrows()
                    ]
                    rule = f"{column} other than in most languages"
                    yield Finding(level, rule, f"{config}/{split}", len(rows), tuple(shown))
