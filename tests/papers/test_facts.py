"""Every value of a configuration that names a paper is the paper's, the official code's, or has a reason."""

import re
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest
import yaml

CONFIGS = Path(__file__).resolve().parents[2] / "trainers" / "configs"
TABLE = yaml.safe_load((Path(__file__).parent / "facts.yaml").read_text(encoding="utf-8"))
REPOSITORIES = "|".join(TABLE["repositories"])
SOURCE = re.compile(
    rf"paper (\d[\d.]*|appendix [A-Z]|Table \d+)(, eq\. \d| note \d+)?|({REPOSITORIES}) [\w./-]+:\d+", re.ASCII
)


def named() -> Iterator[str]:
    """The configurations that name a paper, without `.yaml`."""
    for path in sorted(CONFIGS.rglob("*.yaml")):
        name = path.relative_to(CONFIGS).as_posix()
        text = path.read_text(encoding="utf-8")
        left_out = any(fnmatch(name, one) for one in TABLE["left_out"])
        if re.search(r"et al\. 20|paper \d|XGLUE \d", text) and not left_out:
            yield name.removesuffix(".yaml")


FILES = list(named())


def groups_of(name: str) -> list[dict[str, Any]]:
    return [group for group in TABLE["groups"] if any(fnmatch(name, pattern) for pattern in group["files"])]


def plain(value: object) -> object:
    """1e-5 is a text in YAML 1.1."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def read(name: str) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text(encoding="utf-8"))
    return found


OFFICIAL = [group for group in TABLE["groups"] if "base" in group]


def source_of(fact: Any) -> str:
    """Where a fact is from."""
    return str(fact["source"] if isinstance(fact, dict) else fact[1])


def differences(found: dict[str, Any], groups: list[dict[str, Any]]) -> list[str]:
    """How the values of a file differ from the table, one sentence a key."""
    facts = [
        (key, fact) for group in groups for part in ("values", "ours") for key, fact in group.get(part, {}).items()
    ]
    expected = {key: fact["ours"] if isinstance(fact, dict) else fact[0] for key, fact in facts}
    twice = [key for key in expected if [other for other, _ in facts].count(key) > 1]
    missing = sorted(found.keys() - expected.keys() - set(TABLE["identity"]))
    return [
        *(f"{key}: twice in the table" for key in twice),
        *(f"{key}: not in the table" for key in missing),
        *(
            f"{key}: {found.get(key)!r}, the table has {value!r}"
            for key, value in expected.items()
            if plain(found.get(key)) != value
        ),
    ]


@pytest.mark.parametrize("name", FILES)
def test_every_value_is_the_tables(name: str) -> None:
    assert not differences(read(name), groups_of(name))


@pytest.mark.parametrize("table", ["mrs", "staple", "xcopa", "xglue"])
def test_every_value_that_a_table_of_runs_changes_is_the_tables(table: str) -> None:
    found, used = list[str](), list[dict[str, Any]]()
    for cell, spec in read(f"reproduce/{table}")["cells"].items():
        file = read(spec["config"].removesuffix(".yaml")) if "config" in spec else {}
        changed = {key: value for key, value in spec.get("options", {}).items() if plain(value) != plain(file.get(key))}
        own = {key: value for key, value in changed.items() if not re.search("^@|{data:", str(value))}
        groups = [group for group in TABLE["cells"] if any(fnmatch(f"{table}/{cell}", one) for one in group["files"])]
        found += [f"{cell}: {one}" for one in differences(own, groups)]
        used += groups
    assert not found
    assert all(group in used for group in TABLE["cells"] if group["files"][0].startswith(table))


@pytest.mark.parametrize("name", FILES)
def test_comments_say_where_each_value_is_from(name: str) -> None:
    text = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    comments = dict(re.findall(r"^(\w+):.*? # (.*)$", text, re.MULTILINE))
    for key, fact in ((key, fact) for group in groups_of(name) for key, fact in group.get("values", {}).items()):
        comment, official = comments.get(key, ""), isinstance(fact, list) and not fact[1].startswith("paper")
        if official:
            assert re.search("official|fairseq|^the same", comment), f"{key}: {comment}"
    for key in (key for group in groups_of(name) for key in group.get("ours", ())):
        assert re.fullmatch("(.*;.*)?ours.+|the same.*|as .*", comments[key]), f"{key}: {comments[key]}"
    assert not re.search(NOBODY, text), "what was searched: a section, or a repository and its file"


NOBODY = "no source|neither source|the paper (names|says|gives) no|none is named|not named|not published|unpublished"


@pytest.mark.parametrize("group", OFFICIAL, ids=lambda group: group["files"][0])
def test_an_official_file_has_what_the_script_sets_otherwise(group: dict[str, Any]) -> None:
    [name] = group["files"]
    bases = [base for base in FILES if any(fnmatch(base, pattern) for pattern in group["base"])]
    for key, value in read(name).items():
        assert any(plain(read(base).get(key)) != plain(value) for base in bases), f"{key}: as in the paper's files"
    header = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    first, second = re.findall(r"--config trainers/configs/(\S+)\.yaml", header)
    assert first in bases
    assert second == name


def test_the_table_is_sound() -> None:
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", place) for place in TABLE["repositories"].values())
    groups = [*TABLE["groups"], *TABLE["cells"]]
    facts = [fact for group in groups for fact in group.get("values", {}).values()]
    for fact in [*facts, *TABLE["without_key"]]:
        assert SOURCE.fullmatch(source_of(fact)), fact
    for group in OFFICIAL:
        assert not any(source_of(fact).startswith("paper") for fact in group["values"].values())
    for value, reason in (fact for group in groups for fact in group.get("ours", {}).values()):
        assert value is not None
        assert len(reason) > 5
    for fact in (fact for fact in facts if isinstance(fact, dict)):
        assert fact["reason"]
        assert fact["theirs"] != fact["ours"]
