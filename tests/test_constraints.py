"""The versions that the tests run with are those that setup.cfg promises: the newest, and the lowest."""

import configparser
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version


def requirements(repository: Path) -> dict[str, Requirement]:
    """What setup.cfg asks for, with and without extras."""
    setup = configparser.ConfigParser()
    setup.read(repository / "setup.cfg", encoding="utf-8")
    lists = [setup["options"]["install_requires"], *setup["options.extras_require"].values()]
    found = [Requirement(line) for lines in lists for line in lines.splitlines() if line]
    named = {canonicalize_name(requirement.name): requirement for requirement in found}
    del named["mrs-suggest"]  # an extra that includes another
    return named


def pins(path: Path) -> dict[str, Version]:
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    pairs = [line.split("==") for line in lines]
    assert len({canonicalize_name(name) for name, _ in pairs}) == len(lines), f"{path.name}: a package stands twice"
    return {canonicalize_name(name): Version(version) for name, version in pairs}


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-min.txt"])
def test_every_requirement_is_pinned(repository: Path, name: str) -> None:
    asked, pinned = requirements(repository), pins(repository / name)
    assert sorted(pinned) == sorted(asked)
    assert {
        package: str(version) for package, version in pinned.items() if version not in asked[package].specifier
    } == {}


def test_the_lowest_versions_are_the_floors(repository: Path) -> None:
    pinned = pins(repository / "constraints-min.txt")
    floors = {}
    for package, requirement in requirements(repository).items():
        (specifier,) = requirement.specifier
        assert specifier.operator in (">=", "=="), f"{requirement}: state the lowest version that works"
        floors[package] = Version(specifier.version)
    assert pinned == floors
