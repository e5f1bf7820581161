"""Installed packages compared with the requirements: fitting, missing, too old."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from mrs_suggest.cli.doctor import packages
from mrs_suggest.cli.doctor.checks import BROKEN, MISSING, OK


def plant(site: Path, name: str, version: str, *lines: str) -> None:
    """The metadata of an installed distribution."""
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True)
    header = ["Metadata-Version: 2.4", f"Name: {name}", f"Version: {version}"]
    (info / "METADATA").write_text("\n".join([*header, *lines]) + "\n", encoding="utf-8")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages: the project, with a base requirement and four extras."""
    wanted = ["base-x>=2", 'one-x>=1; extra == "one"', 'two-x>=1; extra == "two"', 'old-x>=3; extra == "old"']
    plant(
        tmp_path, "mrs-suggest", "7.8.9", "Requires-Python: >=3.11",
        *(f"Provides-Extra: {extra}" for extra in ("one", "two", "old", "most")),
        *(f"Requires-Dist: {line}" for line in [*wanted, 'mrs-suggest[one,two]; extra == "most"']),
    )  # fmt: skip
    plant(tmp_path, "base-x", "2.1")
    plant(tmp_path, "one-x", "1.5")
    plant(tmp_path, "old-x", "2.9")
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


def test_what_fits_is_told_with_its_version(site: Path) -> None:
    found = {finding.name: finding for finding in packages.base()}
    assert [*found] == ["mrs-suggest", "python", "base-x"]
    assert {finding.state for finding in found.values()} == {OK}
    assert (found["mrs-suggest"].says, found["base-x"].says) == ("7.8.9", "2.1")


def test_an_old_requirement_of_the_base_is_broken(
    site: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tmp_path_factory.mktemp("first")
    plant(first, "base-x", "1.9")
    monkeypatch.syspath_prepend(str(first))
    found = {finding.name: finding for finding in packages.base()}["base-x"]
    says = "base-x 1.9 is installed, but mrs-suggest needs >=2; run `pip install 'base-x>=2'`"
    assert (found.state, found.says) == (BROKEN, says)


def test_a_missing_requirement_of_the_base_is_broken(site: Path) -> None:
    (site / "base_x-2.1.dist-info").rename(site / "elsewhere")
    importlib.invalidate_caches()
    found = {finding.name: finding for finding in packages.base()}["base-x"]
    assert (found.state, found.says) == (BROKEN, "base-x is not installed; run `pip install 'base-x>=2'`")


def test_an_extra_is_installed_missing_or_broken(site: Path) -> None:
    found = {finding.name: (finding.state, finding.says) for finding in packages.extras()}
    assert found["one"] == (OK, "one-x 1.5")
    assert found["two"] == (MISSING, "needs two-x: pip install '.[two]' in a clone (docs/install.md)")
    assert found["most"] == (MISSING, "needs two-x: pip install '.[most]' in a clone (docs/install.md)")
    assert found["old"][0] == BROKEN
    assert "old-x 2.9 is installed, but mrs-suggest needs >=3" in found["old"][1]
