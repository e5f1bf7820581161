"""Checks of a prepared folder: errors, and warnings about unusual rows (`mrs data check`)."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from mrs_datasets.catalogue import CONTEXT, ERROR, LIST, WARNING, DatasetRecord, Kind
from mrs_datasets.check.findings import EXAMPLES, Examples, Finding, batches, joined, languages_found, scripts_found
from mrs_datasets.describe.describe import text_columns, texts_of
from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.report import PreparedReport
from mrs_datasets.prepared.soundness import require_values, required_columns, row_of, same_type
from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.text.language_id import Identify
from mrs_suggest.common.text.text import is_blank

WEIGHT_TOLERANCE = 1e-3
Hashes = NDArray[np.uint64]


def check(
    data: PreparedData,
    identify: Identify | None = None,
    known_languages: frozenset[str] = frozenset(),
    progress: Callable[[list[str]], Iterable[str]] = iter,
) -> Iterator[Finding]:
    """Yield the findings about a prepared folder.

    Args:
        identify: texts -> (language, probability) of each; None leaves the languages unchecked.
        known_languages: languages that `identify` can recognise; texts of other languages are not checked.
        progress: wraps the list of configs, to show progress.

    Raises:
        InputError: the data are not a folder, or their data set is not in the catalogue.
    """
    if data.folder is None:
        raise InputError(f"{data.name}: only a folder can be checked; download it first.")
    record, report = data.record(), data.report()
    names = {config for config, _, _ in record.configs()}
    for path in sorted((data.folder / "data").iterdir()):
        if path.name not in names and not path.name.startswith("."):
            yield Finding(ERROR, "config unknown to the catalogue", path.name, 1, (str(path.name),))
    parallel: dict[tuple[str, str], dict[str, pa.Table]] = {}  # (kind's pattern, split) -> config -> columns
    for config in progress(data.configs()):
        columns = _Columns(record, config)
        kind = columns.kind
        splits: dict[str, Hashes] = {}
        for split in data.splits(config):
            where, files = f"{config}/{split}", data.files(config, split)
            broken = list(_schema(files, record.schema(config), where))
            yield from broken
            if broken:
                continue
            yield from _size(files, kind.rows_of(record.language_of(config)).get(split), split, where, report)
            try:
                unusable = list(_unusable(files, kind, where))
                yield from unusable
                if unusable:
                    continue
                yield from _rows(files, columns, where)
                splits[split] = _hashes(files, columns.identity)
                rule = "row identical to an earlier one"
                yield from _found(files, _repeated(splits[split]), columns.identity, kind.repeats, rule, where)
                for language, texts in columns.by_language.items():
                    yield from scripts_found(files, language, texts, where)
                    if identify:
                        yield from languages_found(files, language, texts, where, identify, known_languages)
                if kind.parallel:
                    table = pq.ParquetDataset(files).read([*columns.identifiers, *kind.parallel])
                    parallel.setdefault((kind.config, split), {})[config] = table
            except (pa.ArrowException, OSError) as error:
                yield Finding(ERROR, "schema", where, 1, (f"cannot be read as Parquet ({first_line(error)})",))
        yield from _leaks(data, config, columns, splits)
    yield from _unreported(data, report)
    yield from _reddit_leaks(report)
    for (_, split), tables in parallel.items():
        yield from _differences(record, split, tables)


class _Columns:
    """The roles of a config's columns."""

    def __init__(self, record: DatasetRecord, config: str) -> None:
        self.kind = record.kind_of(config)
        columns = {name: record.columns[name] for name in self.kind.columns}
        plain = [name for name, column in columns.items() if column.dtype == "string"]
        self.by_language: dict[str, list[str]] = defaultdict(list)
        for name, language in text_columns(record, config).items():
            self.by_language[language].append(name)
        self.identifiers = [name for name, column in columns.items() if column.identifier]
        self.required = required_columns(record, config)
        texts = dict.fromkeys([*plain, *text_columns(record, config)])
        self.texts = [name for name in texts if name != CONTEXT]  # empty at the start of a thread
        apart = {*self.identifiers, *self.kind.corrected.values()}
        self.identity = [name for name in plain if name in self.required and name not in apart]
        self.identity = self.identity or [name for name in self.required if columns[name].dtype == LIST + "string"]
        self.values = {name: column.values for name, column in columns.items() if column.values} | self.kind.values
        self.weighted = [name for name, column in columns.items() if "weight: float64" in column.dtype]
        self.labels = {name: column.names for name, column in columns.items() if column.dtype == "class_label"}


def _schema(files: list[Path], expected: pa.Schema, where: str) -> Iterator[Finding]:
    for path in files:
        try:
            found = pq.read_schema(path)
        except (pa.ArrowException, OSError) as error:
            yield Finding(ERROR, "schema", where, 1, (f"{path.name}: cannot be read as Parquet ({first_line(error)})",))
            continue
        missing = [name for name in expected.names if name not in found.names]
        extra = [name for name in found.names if name not in expected.names]
        problems = [f"{what} {', '.join(n)}" for what, n in (("lacks", missing), ("also has", extra)) if n]
        problems = problems or [
            f"{field.name} is {found.field(field.name).type}, not {field.type}"
            for field in expected
            if not same_type(found.field(field.name).type, field.type)
        ]
        if problems:
            yield Finding(ERROR, "schema", where, 1, (f"{path.name}: {'; '.join(problems)}",))


def _size(files: list[Path], whole: int | None, split: str, where: str, report: PreparedReport) -> Iterator[Finding]:
    rows = sum(pq.read_metadata(path).num_rows for path in files)
    entry = report.get("configs", {}).get(where.rpartition("/")[0], {}).get(split)
    if entry and entry["rows"] != rows:
        difference = abs(rows - entry["rows"])
        yield Finding(ERROR, "rows that report.json counts", where, difference, (f"{rows:,}, not {entry['rows']:,}",))
    if whole is not None and rows != whole:
        noted = where in report.get("partial_splits", [])
        rule = "rows of a whole source" + " (noted in report.json)" * noted
        yield Finding(WARNING if noted else ERROR, rule, where, abs(rows - whole), (f"{rows:,}, not {whole:,}",))


def _unusable(files: list[Path], kind: Kind, where: str) -> Iterator[Finding]:
    """The first text that no command can use; the rest of the split is not checked then."""
    for start, table in batches(files, list(kind.columns)):
        try:
            require_values(table, (), partial(row_of, where, start))
        except InputError as error:
            yield Finding(ERROR, "text that cannot be used", where, 1, (str(error).partition(";")[0],))
            return


def _rows(files: list[Path], columns: _Columns, where: str) -> Iterator[Finding]:
    """Checks of single rows, then of repeated identifiers and stems."""
    kind = columns.kind
    found: dict[tuple[str, str], Examples] = defaultdict(Examples)
    for start, table in batches(files, list(kind.columns)):
        row = joined(table, columns.identity)
        for name in columns.required:
            found[ERROR, "null where a value is needed"].add(pc.is_null(table[name]), row, start)
        for name in columns.texts:
            texts = texts_of(table[name])
            blank = [text is not None and is_blank(text) for text in texts.to_pylist()]
            zeros = pc.fill_null(pc.match_substring(texts, "\0"), False)
            found[kind.empties, "empty text"].add(_rows_with(table[name], blank), row, start)
            found[ERROR, "NUL character in a text"].add(_rows_with(table[name], zeros), row, start)
        for name, allowed in columns.values.items():
            texts = texts_of(table[name])
            other = pc.invert(pc.or_(pc.is_in(texts, pa.array(allowed, pa.string())), pc.is_null(texts)))
            examples = found[ERROR, "value that the column does not have"]
            examples.add(_rows_with(table[name], other), joined(table, [name]), start)
        for name, names in columns.labels.items():
            outside = pc.or_(pc.less(table[name], 0), pc.greater_equal(table[name], len(names)))
            found[ERROR, "label out of range"].add(pc.fill_null(outside, False), table[name], start)
        for name in columns.weighted:
            wrong, off = _bad_weights(table[name])
            found[ERROR, "entry without text or with an invalid weight"].add(wrong, row, start)
            found[ERROR, "weights that do not sum to 1"].add(off, row, start)
        for left, right in combinations(kind.alternatives, 2):
            rule = f"equal {' and '.join(kind.alternatives)}"
            found[WARNING, rule].add(pc.fill_null(pc.equal(table[left], table[right]), False), row, start)
        for published, better in kind.corrected.items():
            differ = pc.fill_null(pc.not_equal(table[published], table[better]), False)
            found[WARNING, f"{published} other than {better}"].add(differ, row, start)
        for column, text in kind.spans.items():
            rows = zip(table[column].to_pylist(), table[text].to_pylist(), strict=True)
            outside = [not all(_is_part(span, whole) for span in spans or ()) for spans, whole in rows]
            found[ERROR, f"{column} that are not in {text} where they start"].add(outside, row, start)
        if kind.aligned:
            parts = zip(*(table[name].to_pylist() for name in kind.aligned), strict=True)
            uneven = [len({len(entries) for entries in lists if entries is not None}) > 1 for lists in parts]
            found[ERROR, f"{' and '.join(kind.aligned)} of different lengths"].add(uneven, row, start)
    for (level, rule), examples in found.items():
        yield from examples.finding(level, rule, where)
    if columns.identifiers:
        again = _repeated(_hashes(files, columns.identifiers))
        yield from _found(files, again, columns.identity, ERROR, "identifier of another row", where)
    if kind.stem:
        stem = list(kind.stem)
        rule = f"{' and '.join(stem)} of another row"
        yield from _found(files, _repeated(_hashes(files, stem)), stem, WARNING, rule, where)


def _rows_with(column: pa.ChunkedArray, mask: Any) -> NDArray[np.bool_]:
    """For each row, whether the mask over its texts (see `texts_of`) is true for one of them."""
    found = np.asarray(mask, bool)
    if not pa.types.is_list(column.type):
        return found
    rows = np.zeros(len(column), bool)
    rows[np.asarray(pc.list_parent_indices(column))[found]] = True
    return rows


def _is_part(span: dict[str, Any] | None, whole: str | None) -> bool:
    if span is None or span["text"] is None or span["start"] is None or whole is None:
        return False
    return bool(span["start"] >= 0 and whole.startswith(span["text"], span["start"]))


def _bad_weights(column: pa.ChunkedArray) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """For each row: whether an entry is null, has no text or a weight below 0; whether the weights do not sum to 1."""
    rows = np.asarray(pc.list_parent_indices(column))
    entries = pc.list_flatten(column)
    texts, weights = pc.struct_field(entries, "text"), pc.struct_field(entries, "weight")
    bad = pc.or_(pc.is_null(texts), pc.invert(pc.fill_null(pc.greater_equal(weights, 0.0), False)))
    sums = np.bincount(rows, np.asarray(pc.fill_null(weights, 0.0), float), len(column))
    filled = np.bincount(rows, minlength=len(column)) > 0  # blind prompts have no entries
    return _rows_with(column, bad), filled & (np.abs(sums - 1) > WEIGHT_TOLERANCE)


def _hashes(files: list[Path], columns: list[str]) -> Hashes:
    """64 bits per row: with a hundred million rows, one data set in 3,700 has a false pair."""
    parts = [
        pd.util.hash_array(np.asarray(joined(table, columns).to_pylist(), object), categorize=False)
        for _, table in batches(files, columns)
    ]
    return np.concatenate(parts) if parts else np.zeros(0, np.uint64)


def _repeated(hashes: Hashes) -> NDArray[np.bool_]:
    """(n,) whether a row has the same hash as an earlier one."""
    return np.asarray(pd.Series(hashes).duplicated(), np.bool_)


def _found(
    files: list[Path], mask: NDArray[np.bool_], shown: list[str], level: str, rule: str, where: str
) -> Iterator[Finding]:
    """One finding for the rows of a mask; the files are read until there are enough examples."""
    examples = Examples()
    for start, table in batches(files, shown) if mask.any() else ():
        if (some := mask[start : start + len(table)]).any():
            examples.add(some, joined(table, shown), start)
        if len(examples.shown) == EXAMPLES:
            break
    examples.count = int(mask.sum())
    yield from examples.finding(level, rule, where)


def _leaks(data: PreparedData, config: str, columns: _Columns, splits: dict[str, Hashes]) -> Iterator[Finding]:
    """Rows that are in two splits: a model must not be tested on its training data."""
    for earlier, later in combinations(splits, 2):
        files, where = data.files(config, later), f"{config}/{later}"
        same = np.isin(splits[later], splits[earlier])
        rule = f"row identical to one of {earlier}"
        yield from _found(files, same, columns.identity, columns.kind.leaks, rule, where)
        if "message" in columns.identity:
            messages, others = (_hashes(data.files(config, split), ["message"]) for split in (later, earlier))
            rule = f"message of {earlier} with another reply"
            yield from _found(files, np.isin(messages, others) & ~same, columns.identity, WARNING, rule, where)


def _unreported(data: PreparedData, report: PreparedReport) -> Iterator[Finding]:
    """Splits that report.json lists and the folder lacks, and vice versa."""
    listed = {f"{config}/{split}" for config, splits in report.get("configs", {}).items() for split in splits}
    there = {f"{config}/{split}" for config in data.configs() for split in data.splits(config)}
    for where in sorted(listed - there):
        yield Finding(ERROR, "split that report.json lists", where, 1, ("the files are missing",))
    for where in sorted(there - listed if listed else ()):
        advice = "remove it, or prepare the folder again"
        yield Finding(ERROR, "split that report.json does not list", where, 1, (advice,))
    if not there:
        yield Finding(ERROR, "no split", data.name, 1, ("data/ contains no config of the catalogue",))


def _reddit_leaks(report: PreparedReport) -> Iterator[Finding]:
    """Threads, messages and comments in several splits, as counted by the build, since ids are not in the data.

    They are expected with a split by example, as in the paper (section 2), and make figures on the test split better
    than on new threads; with a split by thread they are errors.
    """
    level = ERROR if report.get("settings", {}).get("split_by") == "thread" else WARNING
    for language, counts in report.get("pipeline", {}).get("leakage", {}).items():
        for what in ("threads", "messages", "comments"):
            crossing = counts.get(f"{what} in several splits", 0)
            if crossing:
                of = (f"{crossing:,} of {counts[what]:,} (from report.json)",)
                yield Finding(level, f"the same {what} of Reddit in several splits", language, crossing, of)


def _differences(record: DatasetRecord, split: str, tables: dict[str, pa.Table]) -> Iterator[Finding]:
    """Rows that differ from most configs of their kind in a column that should be equal."""
    kind = record.kind_of(next(iter(tables)))
    keys = [name for name in kind.columns if record.columns[name].identifier]
    for column, level in kind.parallel.items():
        frame = pd.concat(
            [table.select([*keys, column]).to_pandas().assign(config=config) for config, table in tables.items()]
        )
        frame = frame.dropna()  # nulls are found by another rule
        usual = frame.groupby(keys)[column].transform(lambda values: values.mode().iloc[0])
        for config, rows in frame[frame[column] != usual].groupby("config", sort=False):
            shown = tuple(
                f"{', '.join(f'{key} {row[key]}' for key in keys)}: {row[column]}"
                for _, row in rows[:EXAMPLES].iterrows()
            )
            yield Finding(level, f"{column} other than in most languages", f"{config}/{split}", len(rows), shown)
