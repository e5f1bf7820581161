"""The catalogue: one frozen, validated record per data set (`mrs_datasets/catalogue/NAME.yaml`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

import yaml

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import KNOWN, Language, find_language, is_made_up, require_known

if TYPE_CHECKING:
    import pyarrow as pa

# Types of a column -> their names in Arrow.
DTYPES = {"string": "string", "int64": "int64", "float64": "float64", "bool": "bool", "class_label": "int64"}
LIST = "list of "  # a list type names its entries: `list of string`, `list of {text: string, weight: float64}`
LANGUAGE = "{language}"
ERROR, WARNING = "error", "warning"  # levels of a finding of `mrs data check`


@dataclass(frozen=True)
class Column:
    """A column: its type, named as in `datasets`, and its meaning.

    Attributes:
        names: of a `class_label`'s values.
        values: the only texts allowed in a `string`.
        optional: it may be null.
        identifier: it identifies a row of its split, so that no two rows have the same.
    """

    dtype: str
    meaning: str
    names: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    optional: bool = False
    identifier: bool = False

    def feature(self, name: str) -> dict[str, object]:
        """The column in the YAML of a card."""
        if self.dtype == "class_label":
            return {"name": name, "dtype": {"class_label": {"names": {str(i): n for i, n in enumerate(self.names)}}}}
        if self.dtype.startswith(LIST):
            held = _held(self.dtype)
            if isinstance(held, dict):
                return {"name": name, "list": [{"name": field, "dtype": dtype} for field, dtype in held.items()]}
            return {"name": name, "list": held}
        return {"name": name, "dtype": self.dtype}

    def require_known_type(self) -> None:
        """ValueError for an unknown type."""
        if self.dtype.startswith(LIST):
            _held(self.dtype)
        elif self.dtype not in DTYPES:
            raise ValueError(self.dtype)

    def arrow(self) -> pa.DataType:
        """The column's type in Arrow."""
        import pyarrow as pa  # here, since a model's card cites the catalogue without it

        if not self.dtype.startswith(LIST):
            return pa.type_for_alias(DTYPES[self.dtype])
        held = _held(self.dtype)
        if isinstance(held, dict):
            return pa.list_(pa.struct([(field, pa.type_for_alias(DTYPES[dtype])) for field, dtype in held.items()]))
        return pa.list_(pa.type_for_alias(DTYPES[held]))


def _held(dtype: str) -> str | dict[str, str]:
    """The type of a list's entries, or of each of their fields; ValueError for anything else."""
    held = dtype.removeprefix(LIST)
    plain = set(DTYPES) - {"class_label"}
    if held in plain:
        return held
    entry = re.fullmatch(r"\{(.+)\}", held)
    fields = [re.fullmatch(r"(\w+): (\w+)", part) for part in entry[1].split(", ")] if entry else []
    found = {field[1]: field[2] for field in fields if field}
    if not found or len(found) != len(fields) or not set(found.values()) <= plain:
        raise ValueError(dtype)
    return found


@dataclass(frozen=True)
class Kind:
    """Configs with the same columns; `config` is their name with `{language}` in it.

    Attributes:
        languages: those that have such a config; empty for all.
        rows: rows of each split in a complete source, if known.
        sizes: language -> the same, where languages differ (else `rows`).
        texts: language -> the columns in that language; `{language}` is the config's own.
        repeats: level of identical rows in a split, `error` or `warning` (people do say the same thing twice).
        leaks: level of a row that is in another split too, `error` or `warning`.
        stem: the columns that are seldom equal in two rows.
        alternatives: the columns that are seldom equal in one row.
        parallel: column -> level, `error` or `warning`, if rows with the same identifier differ in it between the
            configs of this kind.
        corrected: column -> the column with its corrections; rows where they differ are counted.
        values: column -> the only texts allowed in it, where they differ between kinds (else `Column.values`).
        hidden: the columns that are null where the publisher keeps the answers (of all kinds: `Column.optional`).
        empties: level of an empty text, `error` or `warning`.
        aligned: list columns with an entry for each entry of the other.
        spans: column of `{text, start}` -> the text column that they are parts of.
        on_demand: a view, written only on request.
    """

    config: str
    splits: tuple[str, ...]
    columns: tuple[str, ...]
    about: str
    languages: tuple[str, ...] = ()
    rows: dict[str, int] = field(default_factory=dict)
    texts: dict[str, tuple[str, ...]] = field(default_factory=dict)
    repeats: str = ERROR
    leaks: str = ERROR
    stem: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    parallel: dict[str, str] = field(default_factory=dict)
    corrected: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    empties: str = ERROR
    aligned: tuple[str, ...] = ()
    spans: dict[str, str] = field(default_factory=dict)
    on_demand: bool = False

    def rows_of(self, language: str) -> dict[str, int]:
        """The rows of each split of a language in a complete source, as far as known."""
        return self.sizes.get(language, self.rows)

    @property
    def shown(self) -> str:
        """The configs' name as shown to users: with `LANG` instead of the code if there is more than one."""
        return self.config.replace(LANGUAGE, self.languages[0] if len(self.languages) == 1 else "LANG")


@dataclass(frozen=True)
class Variant:
    """A reader's source, and the texts for the card of a folder made from it.

    Attributes:
        uses: what the data are for, and what is out of scope.
        curation: why and how they were collected, by whom, and who labelled them.
        personal: personal and sensitive information in them, as far as known.
        layout: file of the source -> its contents.
        revision: of the source, as its authors name it: the one that `rows` and `layout` describe.
    """

    title: str
    licence: str
    about: str
    limits: str
    uses: str
    curation: str
    personal: str
    layout: dict[str, str]
    revision: str


@dataclass(frozen=True)
class DatasetRecord:
    """One data set: its source, its configs' contents and the texts of its card.

    Attributes:
        paper: the sections that the data set and its figures come from.
        source: what `--source` accepts, as the end of a sentence.
        restricted: why publishing a copy is restricted and where to ask for one; empty for a free data set.
        archive_gib: archives that unpack to more GiB are refused.
        open_languages: a folder may have configs of other languages too (see `covering`).
        like: name of the record that kinds and columns come from, as far as they are in this one's languages.
    """

    name: str
    homepage: str
    paper: str
    languages: dict[str, Language]
    task_categories: tuple[str, ...]
    tags: tuple[str, ...]
    citation: str
    kinds: dict[str, Kind]
    columns: dict[str, Column]
    variants: dict[str, Variant]
    source: str
    restricted: str = ""
    archive_gib: int = 1  # XCOPA is 5 MB, SIQA 8 MB, all of STAPLE 300 MB
    open_languages: bool = False
    like: str = ""

    def covering(self, configs: Iterable[str]) -> DatasetRecord:
        """The record with the languages of these configs after its own; names that do not match a kind are ignored.

        Without `open_languages` it is the record itself.
        """
        if not self.open_languages:
            return self
        own = {config for config, _, _ in self.configs()}
        more = {code: found for name in sorted(set(configs) - own) for code, found in self._language_in(name)}
        return replace(self, languages={**self.languages, **more}) if more else self

    def _language_in(self, config: str) -> Iterator[tuple[str, Language]]:
        """The language of a config, by its name; the longest pattern first: `mt-es` is a translation, not Maltese."""
        for kind in sorted(self.kinds.values(), key=lambda kind: -len(kind.config)):
            head, _, tail = kind.config.partition(LANGUAGE)
            if not kind.languages and config.startswith(head) and config.endswith(tail):
                code = config[len(head) : len(config) - len(tail)]
                language = find_language(code)
                if language is not None:
                    yield code, language
                    return

    def configs(self) -> Iterator[tuple[str, str, Kind]]:
        """(config, language, kind) of every config that the data set can have: by kind, then by language."""
        for kind in self.kinds.values():
            for language in kind.languages or self.languages:
                yield kind.config.replace(LANGUAGE, language), language, kind

    def kind_of(self, config: str) -> Kind:
        """The kind of a config; KeyError for one that the data set cannot have."""
        return {name: kind for name, _, kind in self.configs()}[config]

    def language_of(self, config: str) -> str:
        """The language of a config; KeyError for one that the data set cannot have."""
        return {name: language for name, language, _ in self.configs()}[config]

    def schema(self, config: str) -> pa.Schema:
        """The Arrow schema of a config."""
        import pyarrow as pa

        return pa.schema([(name, self.columns[name].arrow()) for name in self.kind_of(config).columns])


def catalogued() -> list[str]:
    """The names of the data sets that have a record."""
    folder = resources.files("mrs_datasets").joinpath("catalogue")
    return sorted(path.name.removesuffix(".yaml") for path in folder.iterdir() if path.name.endswith(".yaml"))


@cache
def read_record(name: str) -> DatasetRecord:
    """Read and check the record of a data set that this package knows."""
    path = resources.files("mrs_datasets").joinpath("catalogue").joinpath(f"{name}.yaml")
    return parse_record(path.read_text(encoding="utf-8"), f"catalogue/{name}.yaml")


def parse_record(text: str, where: str) -> DatasetRecord:
    """Check a record.

    Raises:
        InputError: an unknown or missing field, an undescribed column, an unknown type or language; the sentence names
            it.
    """
    try:
        content = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InputError(f"{where}: the record is not valid YAML ({str(error).splitlines()[0]}).") from None
    model = None
    if isinstance(content, dict) and "like" in content:
        if content["like"] not in catalogued():
            raise InputError(f"{where}: like must name a record, one of {', '.join(catalogued())}.")
        model = read_record(content["like"])
        content = {"kinds": {}, "columns": {}, **content}
    parts = {"kinds": Kind, "columns": Column, "variants": Variant}
    values = _checked(DatasetRecord, content, where)
    for part, cls in parts.items():
        if not isinstance(values[part], dict):
            raise InputError(f"{where}: {part} must map names to fields.")
        values[part] = {
            name: cls(**_checked(cls, entry, f"{where}, {part}, {name}")) for name, entry in values[part].items()
        }
    values["languages"] = {code: _language(code, where) for code in values["languages"]}
    record = DatasetRecord(**values)
    if model is not None:
        record = replace(record, kinds=_kinds_in(model, record.languages), columns=model.columns)
    for name, column in record.columns.items():
        try:
            column.require_known_type()
        except (ValueError, AttributeError):  # AttributeError: not a text in YAML
            raise InputError(
                f"{where}, columns, {name}: dtype must be one of {', '.join(DTYPES)}, or a list such as "
                f"`list of string` or `list of {{text: string, weight: float64}}`, not {column.dtype!r}."
            ) from None
    for name, kind in record.kinds.items():
        for problem in _problems(record, kind):
            raise InputError(f"{where}, kinds, {name}: {problem}.")
    return record


def _kinds_in(model: DatasetRecord, languages: Iterable[str]) -> dict[str, Kind]:
    """The kinds of a record in some languages; how many rows they have is that record's alone."""
    own = {name: kind.languages or tuple(model.languages) for name, kind in model.kinds.items()}
    return {
        name: replace(model.kinds[name], languages=tuple(c for c in languages if c in codes), rows={}, sizes={})
        for name, codes in own.items()
    }


def _language(code: str, where: str) -> Language:
    """A language of `mrs_suggest/common/text/languages.yaml`, or a made-up one with a private-use code (ISO 639-3: qaa
    to qtz)."""
    made_up = find_language(code) if isinstance(code, str) and is_made_up(code) else None
    return made_up or require_known(code, where)


def _problems(record: DatasetRecord, kind: Kind) -> Iterator[str]:
    """What a kind refers to that does not exist."""
    named = {*kind.columns, *kind.stem, *kind.alternatives, *kind.parallel, *kind.corrected, *kind.corrected.values()}
    named |= {*kind.values, *kind.hidden, *kind.aligned, *kind.spans, *kind.spans.values()}
    for columns in kind.texts.values():
        named.update(columns)
    yield from (f"column {column!r} is not described" for column in sorted(named - set(record.columns)))
    unknown = {*kind.languages, *kind.sizes} - set(record.languages)
    unknown |= set(kind.texts) - {LANGUAGE, *KNOWN, *record.languages}
    yield from (f"language {code!r} is not described" for code in sorted(unknown))
    yield from (f"rows of {split!r}, which is not a split" for split in kind.rows if split not in kind.splits)
    levels = {kind.repeats, kind.leaks, kind.empties, *kind.parallel.values()} - {ERROR, WARNING}
    yield from (f"expected {ERROR} or {WARNING}, found {level!r}" for level in levels)
    if LANGUAGE not in kind.config:
        yield f"config needs {LANGUAGE}"


def _checked(cls: type, entry: Any, where: str) -> dict[str, Any]:
    """The fields of an entry, lists as tuples: fields without a default are required, unknown ones are refused."""
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a mapping of fields.")
    known = {field.name for field in fields(cls)}
    needed = {f.name for f in fields(cls) if f.default is MISSING and f.default_factory is MISSING}
    for name in sorted((set(entry) - known) | (needed - set(entry))):
        problem = "unknown field" if name in entry else "missing field"
        raise InputError(f"{where}: {problem} {name!r}; the fields are {', '.join(sorted(known))}.")
    return {name: _frozen(value) for name, value in entry.items()}


def _frozen(value: Any) -> Any:
    """Lists as tuples, also inside a mapping."""
    if isinstance(value, dict):
        return {name: _frozen(held) for name, held in value.items()}
    return tuple(value) if isinstance(value, list) else value
