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
        if "et al. 20" in path.read_text(encoding="utf-8") and not any(fnmatch(name, one) for one in TABLE["left_out"]):
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


@pytest.mark.parametrize("name", FILES)
def test_every_value_is_explained(name: str) -> None:
    groups, values = groups_of(name), read(name)
    places = [key for group in groups for part in ("values", "ours") for key in group.get(part, ())]
    assert len(places) == len(set(places)), "one place for each key"
    facts = {key: fact for group in groups for key, fact in group.get("values", {}).items()}
    assert set(values) - set(places) <= set(TABLE["identity"]), "in neither the table nor a list of ours"
    expected = {key: fact["ours"] if isinstance(fact, dict) else fact[0] for key, fact in facts.items()}
    found = {key: plain(values.get(key)) for key in facts}
    assert found == expected, "neither the sources' value nor a stated difference"


@pytest.mark.parametrize("name", FILES)
def test_comments_say_which_values_are_of_the_official_code(name: str) -> None:
    facts = {key: fact for group in groups_of(name) for key, fact in group.get("values", {}).items()}
    text = (CONFIGS / f"{name}.yaml").read_text(encoding="utf-8")
    comments = dict(re.findall(r"^(\w+):.*? # (.*)$", text, re.MULTILINE))
    for key, fact in facts.items():
        comment, official = comments.get(key, ""), isinstance(fact, list) and not fact[1].startswith("paper")
        if official:
            assert re.search("official|fairseq|^the same", comment), f"{key}: {comment}"
        assert not re.search("no source|neither source", comment), f"{key}: {comment}"


def test_the_table_is_sound() -> None:
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", place) for place in TABLE["repositories"].values())
    facts = [fact for group in TABLE["groups"] for fact in group.get("values", {}).values()]
    for fact in [*facts, *TABLE["without_key"]]:
        source = fact["source"] if isinstance(fact, dict) else fact[1]
        assert SOURCE.fullmatch(source), source
    for fact in (fact for fact in facts if isinstance(fact, dict)):
        assert fact["reason"]
        assert fact["theirs"] != fact["ours"]


def test_every_group_is_of_some_file_that_has_its_keys() -> None:
    for group in TABLE["groups"]:
        for pattern in group["files"]:
            files = [name for name in FILES if fnmatch(name, pattern)]
            assert files, pattern
        keys = {key for name in FILES if group in groups_of(name) for key in read(name)}
        assert set(group.get("values", {})) | set(group.get("ours", ())) <= keys, group["files"]
