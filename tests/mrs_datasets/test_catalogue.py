"""The records of the catalogue: complete, checked, and what the rest is derived from."""

import re
from collections.abc import Iterator

import pytest
from pydantic import TypeAdapter, ValidationError

from mrs_datasets.catalogue import LANGUAGE, DatasetRecord, Kind, catalogued, read_record
from mrs_suggest.common.errors import InputError, first_problem
from mrs_suggest.common.io.packaged import read_packaged
from mrs_suggest.common.text.languages import KNOWN


@pytest.fixture
def content() -> dict:
    return read_packaged("mrs_datasets", "catalogue", "mrs.yaml")


@pytest.mark.parametrize("name", catalogued())
def test_every_record_is_valid_named_as_its_file_and_refers_to_what_it_describes(name: str) -> None:
    record = read_record(name)
    assert record.name == name
    configs = [config for config, _, _ in record.configs()]
    assert len(configs) == len(set(configs))
    for config in configs:
        assert record.schema(config).names == list(record.kind_of(config).columns)
    assert [problem for kind in record.kinds.values() for problem in problems(record, kind)] == []


def problems(record: DatasetRecord, kind: Kind) -> Iterator[str]:
    """References of a kind to columns, languages or splits that do not exist."""
    named = {*kind.columns, *kind.stem, *kind.alternatives, *kind.parallel, *kind.corrected, *kind.corrected.values()}
    named |= {*kind.values, *kind.hidden, *kind.aligned, *kind.spans, *kind.spans.values()}
    named.update(column for columns in kind.texts.values() for column in columns)
    yield from (f"column {column!r} is not described" for column in sorted(named - set(record.columns)))
    unknown = {*kind.languages, *kind.sizes} - set(record.languages)
    unknown |= set(kind.texts) - {LANGUAGE, *KNOWN, *record.languages}
    yield from (f"language {code!r} is not described" for code in sorted(unknown))
    yield from (f"rows of {split!r}, which is not a split" for split in kind.rows if split not in kind.splits)
    if LANGUAGE not in kind.config:
        yield f"config needs {LANGUAGE}"


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: c.pop("citation"), "missing field 'citation'"),
        (lambda c: c.update(licenze="x"), "unknown field 'licenze'"),
        (lambda c: c["kinds"]["pairs"].update(empties="note"), "empties: input should be 'error' or 'warning'"),
        (lambda c: c["kinds"]["pairs"].pop("splits"), "kinds, pairs: missing field 'splits'"),
        *(
            (lambda c, dtype=dtype: c["columns"]["count"].update(dtype=dtype), "columns, count, dtype: expected one of")
            for dtype in ("int", "list of", "list of {}", "list of {a: b}", "list of class_label")
        ),
        (lambda c: c.update(languages=["en", "xx"]), "unknown language 'xx'"),
        (lambda c: c["variants"].update(other="text"), "variants, other: input should be a dictionary"),
    ],
)
def test_a_wrong_record_is_refused_by_name(content: dict, change, sentence: str) -> None:
    change(content)
    with pytest.raises((ValidationError, InputError)) as caught:
        TypeAdapter(DatasetRecord).validate_python(content)
    error = caught.value
    assert re.search(sentence, first_problem(error) if isinstance(error, ValidationError) else str(error))
