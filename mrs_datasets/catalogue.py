"""The catalogue: one frozen, validated record per data set (`mrs_datasets/catalogue/NAME.yaml`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, ConfigDict, TypeAdapter
from pydantic.dataclasses import dataclass

from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.languages import Language, find_language, is_made_up, require_known

if TYPE_CHECKING:
    import pyarrow as pa

# Types of a column -> their names in Arrow.
DTYPES = {"string": "string", "int64": "int64", "float64": "float64", "bool": "bool", "class_label": "int64"}
LIST = "list of "  # a list type names its entries: `list of string`, `list of {text: string, weight: float64}`
LANGUAGE = "{language}"
CONTEXT = "context"  # the column with the turns before a message, oldest first, one a line
ERROR, WARNING = "error", "warning"  # levels of a finding of `mrs data check`
Level = Literal["error", "warning"]
STRICT = ConfigDict(extra="forbid")


def list_entries(dtype: str) -> str | dict[str, str]:
    """The type of a list column's entries, or of each of their fields; ValueError if it is not a list type."""
    entries = dtype.removeprefix(LIST)
    plain = set(DTYPES) - {"class_label"}
    if entries in plain:
        return entries
    struct = re.fullmatch(r"\{(\w+: \w+(?:, \w+: \w+)*)\}", entries)
    found = dict(part.split(": ") for part in struct[1].split(", ")) if struct else {}
    if not found or not set(found.values()) <= plain:
        raise ValueError(
            f"expected one of {', '.join(DTYPES)}, or a list such as `list of string` or "
            f"`list of {{text: string, weight: float64}}`, found {dtype!r}"
        )
    return found


def _known_dtype(dtype: str) -> str:
    if dtype not in DTYPES:
        list_entries(dtype)
    return dtype


@dataclass(frozen=True, config=STRICT)
class Column:
    """A column: its type, named as in `datasets`, and its meaning.

    Attributes:
        values: the only texts allowed in a `string`.
        optional: whether it may be null.
        identifier: whether it identifies a row of its split (no two rows share a value).
    """

    dtype: Annotated[str, AfterValidator(_known_dtype)]
    meaning: str
    names: tuple[str, ...] = ()
    values: tuple[str, ...] = ()
    optional: bool = False
    identifier: bool = False

    def feature(self, name: str) -> dict[str, object]:
        """The column in the YAML of a card."""
        if self.dtype == "class_label":
            return {"name": name, "dtype": {"class_label": {"names": {str(i): n for i, n in enumerate(self.names)}}}}
        if self.dtype in DTYPES:
            return {"name": name, "dtype": self.dtype}
        entries = list_entries(self.dtype)
        if isinstance(entries, str):
            return {"name": name, "list": entries}
        return {"name": name, "list": [{"name": field, "dtype": dtype} for field, dtype in entries.items()]}

    def arrow(self) -> pa.DataType:
        """The column's type in Arrow."""
        import pyarrow as pa  # here, since a model's card cites the catalogue without it

        if self.dtype in DTYPES:
            return pa.type_for_alias(DTYPES[self.dtype])
        entries = list_entries(self.dtype)
        if isinstance(entries, str):
            return pa.list_(pa.type_for_alias(DTYPES[entries]))
        return pa.list_(pa.struct([(field, pa.type_for_alias(DTYPES[dtype])) for field, dtype in entries.items()]))


@dataclass(frozen=True, config=STRICT)
class Kind:
    """Configs with the same columns; `config` is their name with `{language}` in it.

    Attributes:
        languages: those that have such a config; empty for all.
        rows: rows of each split in a complete source, if known.
        sizes: the same by language, where languages differ (else `rows`).
        texts: language -> the columns in that language; `{language}` is the config's language.
        repeats: level of identical rows in a split.
        leaks: level of a row that also occurs in another split.
        stem: columns that rarely repeat across rows.
        alternatives: columns that rarely agree within one row.
        parallel: column -> level, if rows with the same identifier differ in it between the configs of this kind.
        corrected: column -> the column with its corrections; rows where they differ are counted.
        values: column -> the only texts allowed in it, where they differ between kinds (else `Column.values`).
        hidden: columns that are null where the publisher keeps the answers (for all kinds: `Column.optional`).
        empties: level of an empty text.
        aligned: list columns with one entry for each entry of the others.
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
    repeats: Level = "error"
    leaks: Level = "error"
    stem: tuple[str, ...] = ()
    alternatives: tuple[str, ...] = ()
    parallel: dict[str, Level] = field(default_factory=dict)
    corrected: dict[str, str] = field(default_factory=dict)
    values: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: tuple[str, ...] = ()
    sizes: dict[str, dict[str, int]] = field(default_factory=dict)
    empties: Level = "error"
    aligned: tuple[str, ...] = ()
    spans: dict[str, str] = field(default_factory=dict)
    on_demand: bool = False

    def rows_of(self, language: str) -> dict[str, int]:
        """The known row counts of each split of a language in a complete source."""
        return self.sizes.get(language, self.rows)

    @property
    def shown(self) -> str:
        """The configs' name as shown to users: with `LANG` instead of the code if there is more than one."""
        return self.config.replace(LANGUAGE, self.languages[0] if len(self.languages) == 1 else "LANG")


@dataclass(frozen=True, config=STRICT)
class Variant:
    """A reader's source, and the texts for the card of a folder made from it.

    Attributes:
        uses: intended uses, and what is out of scope.
        curation: why and how the data were collected, by whom, and who labelled them.
        personal: known personal and sensitive information.
        layout: file of the source -> its contents.
        revision: the source's version that `rows` and `layout` describe.
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


def _languages(codes: list[str] | dict[str, Language]) -> dict[str, Language]:
    """Languages of `languages.yaml`, or synthetic ones with a private-use code (ISO 639-3: qaa to qtz)."""
    if isinstance(codes, dict):
        return codes
    found = {}
    for code in codes:
        synthetic = find_language(code) if isinstance(code, str) and is_made_up(code) else None
        found[code] = synthetic or require_known(code, "languages")
    return found


@dataclass(frozen=True, config=STRICT)
class DatasetRecord:
    """One data set: its source, its configs' contents and the texts of its card.

    Attributes:
        paper: the sections that the data set and its figures come from.
        source: what `--source` accepts, as the end of a sentence.
        restricted: why publishing a copy is restricted and where to ask for one; empty for a free data set.
        archive_gib: archives that unpack to more GiB are refused.
        open_languages: whether a folder may have configs of other languages too (see `covering`).
        annotations_creators, source_datasets: as the hub names them: who labelled the rows, and what they derive from.
        like: the record whose columns and kinds (in this one's languages) are reused.
    """

    name: str
    homepage: str
    paper: str
    languages: Annotated[dict[str, Language], BeforeValidator(_languages)]
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
    annotations_creators: tuple[str, ...] = ("no-annotation",)
    source_datasets: tuple[str, ...] = ("original",)
    like: str = ""

    def covering(self, configs: Iterable[str]) -> DatasetRecord:
        """The record with the languages of these configs too, if `open_languages`; other names are ignored."""
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

    def with_context(self, turns: object) -> DatasetRecord:
        """The record with the column `CONTEXT` in its pairs, if they were built with earlier turns."""
        if not turns:
            return self
        pairs = self.kinds["pairs"]
        return replace(self, kinds={**self.kinds, "pairs": replace(pairs, columns=(*pairs.columns, CONTEXT))})

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
    """The record of a data set that this package knows; tests check that it only refers to what it describes."""
    content = read_packaged("mrs_datasets", "catalogue", f"{name}.yaml")
    if like := content.get("like"):
        model = read_record(like)
        content |= {"kinds": _kinds_in(model, content["languages"]), "columns": model.columns}
    return TypeAdapter(DatasetRecord).validate_python(content)


def _kinds_in(model: DatasetRecord, languages: Iterable[str]) -> dict[str, Kind]:
    """The kinds of a record in some languages, without its row counts."""
    own = {name: kind.languages or tuple(model.languages) for name, kind in model.kinds.items()}
    return {
        name: replace(model.kinds[name], languages=tuple(c for c in languages if c in codes), rows={}, sizes={})
        for name, codes in own.items()
    }
