"""The records of the catalogue: complete, checked, and what the rest is derived from."""

from __future__ import annotations

from importlib import resources

import pytest
import yaml

from mrs_datasets.catalogue import parse_record, read_record
from mrs_suggest.common.errors import InputError

NAMES = [path.name for path in resources.files("mrs_datasets").joinpath("catalogue").iterdir()]


@pytest.fixture
def content() -> dict:
    text = resources.files("mrs_datasets").joinpath("catalogue").joinpath("mrs.yaml").read_text(encoding="utf-8")
    return yaml.safe_load(text)


@pytest.mark.parametrize("name", sorted(name.removesuffix(".yaml") for name in NAMES))
def test_every_record_is_valid_and_named_as_its_file(name: str) -> None:
    record = read_record(name)
    assert record.name == name
    configs = [config for config, _, _ in record.configs()]
    assert len(configs) == len(set(configs))
    for config in configs:
        assert record.schema(config).names == list(record.kind_of(config).columns)


def test_mrs_has_its_configs() -> None:
    record = read_record("mrs")
    assert record.language_of("mt-ja") == record.language_of("ja-responses") == "ja"
    assert record.kind_of("es").splits == ("train", "validation", "test")
    assert [str(kind) for kind in record.schema("es-responses").types] == [
        "string", "int64", "double", "string", "string",
    ]  # fmt: skip
    with pytest.raises(KeyError):
        record.kind_of("xx")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda c: c.pop("citation"), "missing field 'citation'"),
        (lambda c: c.update(licenze="x"), "unknown field 'licenze'"),
        (lambda c: c.update(like="glue"), "like must name a record, one of .*mrs, "),
        (lambda c: c["kinds"]["pairs"].update(hidden=["answer"]), "'answer' is not described"),
        (lambda c: c["kinds"]["pairs"].update(sizes={"xx": {"train": 1}}), "language 'xx' is not described"),
        (lambda c: c["kinds"]["pairs"].update(empties="note"), "empties: input should be 'error' or 'warning'"),
        (lambda c: c["kinds"]["pairs"].pop("splits"), "kinds, pairs: missing field 'splits'"),
        (lambda c: c["kinds"]["pairs"].update(config="pairs"), "config needs"),
        (lambda c: c["columns"]["count"].update(dtype="int"), "columns, count, dtype: expected one of string"),
        (lambda c: c.update(languages=["en", "xx"]), "unknown language 'xx'"),
        (lambda c: c.update(columns=[]), "columns: input should be a valid dictionary"),
        (lambda c: c["variants"].update(other="text"), "variants, other: input should be a dictionary"),
    ],
)
def test_a_wrong_record_is_refused_by_name(content: dict, change, sentence: str) -> None:
    change(content)
    with pytest.raises(InputError, match=sentence):
        parse_record(yaml.safe_dump(content, allow_unicode=True), "x.yaml")
    with pytest.raises(InputError, match="not valid YAML"):
        parse_record("a: [", "x.yaml")
