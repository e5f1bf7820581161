"""The catalogue: one frozen, validated record per data set (`mrs_datasets/catalogue/NAME.yaml`)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources
from typing import Any

import pyarrow as pa
import yaml

from mrs_core.errors import InputError
from mrs_core.languages import require_language

DTYPES = {"string": pa.string(), "int64": pa.int64(), "float64": pa.float64()}
LANGUAGE = "{language}"


@dataclass(frozen=True)
class Column:
    """A column: its type by the name that `datasets` uses, and what it holds."""

    dtype: str
    meaning: str


@dataclass(frozen=True)
class Kind:
    """Configs of one shape; `config` is their name with `{language}` in it."""

    config: str
    splits: tuple[str, ...]
    columns: tuple[str, ...]
    about: str


@dataclass(frozen=True)
class Variant:
    """What the card says of a folder that one of the readers made."""

    title: str
    licence: str
    about: str
    limits: str


@dataclass(frozen=True)
class DatasetRecord:
    """One data set: what its configs hold and what its card says."""

    name: str
    homepage: str
    paper: str
    languages: tuple[str, ...]
    task_categories: tuple[str, ...]
    tags: tuple[str, ...]
    citation: str
    kinds: dict[str, Kind]
    columns: dict[str, Column]
    variants: dict[str, Variant]

    def configs(self) -> Iterator[tuple[str, str, Kind]]:
        """(config, language, kind) of every config that the data set can have: by kind, then by language."""
        for kind in self.kinds.values():
            for language in self.languages:
                yield kind.config.replace(LANGUAGE, language), language, kind

    def kind_of(self, config: str) -> Kind:
        """The kind of a config; KeyError for one that the data set cannot have."""
        return {name: kind for name, _, kind in self.configs()}[config]

    def language_of(self, config: str) -> str:
        """The language of a config; KeyError for one that the data set cannot have."""
        return {name: language for name, language, _ in self.configs()}[config]

    def schema(self, config: str) -> pa.Schema:
        """The Arrow schema of a config."""
        return pa.schema([(name, DTYPES[self.columns[name].dtype]) for name in self.kind_of(config).columns])


@cache
def read_record(name: str) -> DatasetRecord:
    """Read and check the record of a data set that this package knows."""
    path = resources.files("mrs_datasets").joinpath("catalogue").joinpath(f"{name}.yaml")
    return parse_record(path.read_text(encoding="utf-8"), f"catalogue/{name}.yaml")


def parse_record(text: str, where: str) -> DatasetRecord:
    """Check a record.

    Raises:
        InputError: an unknown or missing field, a column that no kind or no type has, an unknown language; the
            sentence names it.
    """
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: the record is not valid YAML ({str(error).splitlines()[0]}).") from None
    parts = {"kinds": Kind, "columns": Column, "variants": Variant}
    values = _checked(DatasetRecord, content, where)
    for field, cls in parts.items():
        if not isinstance(values[field], dict):
            raise InputError(f"{where}: {field} must map names to fields.")
        values[field] = {
            name: cls(**_checked(cls, entry, f"{where}, {field}, {name}")) for name, entry in values[field].items()
        }
    record = DatasetRecord(**values)
    for code in record.languages:
        require_language(code, where)
    for name, column in record.columns.items():
        if column.dtype not in DTYPES:
            raise InputError(
                f"{where}, columns, {name}: dtype must be one of {', '.join(DTYPES)}, not {column.dtype!r}."
            )
    for name, kind in record.kinds.items():
        unknown = [column for column in kind.columns if column not in record.columns]
        if unknown or LANGUAGE not in kind.config:
            problem = f"column {unknown[0]!r} is not described" if unknown else f"config needs {LANGUAGE}"
            raise InputError(f"{where}, kinds, {name}: {problem}.")
    return record


def _checked(cls: type, entry: Any, where: str) -> dict[str, Any]:
    """The fields of an entry, lists as tuples; every field of the class must be there and no other."""
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a mapping of fields.")
    known = {field.name for field in fields(cls)}
    for field in sorted(set(entry) ^ known):
        problem = "unknown field" if field in entry else "missing field"
        raise InputError(f"{where}: {problem} {field!r}; the fields are {', '.join(sorted(known))}.")
    return {name: tuple(value) if isinstance(value, list) else value for name, value in entry.items()}
