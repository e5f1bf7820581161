"""`make release-check` reports what it promises, and the release workflow publishes what was checked."""

import importlib.util
import json
import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cases import cases


@pytest.fixture(scope="module")
def check(repository: Path) -> Any:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("release_check", repository / ".ci" / "release_check.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_this_checkout_states_one_version(repository: Path, check: Any) -> None:
    check.compare_versions(repository, None)


@pytest.fixture
def places(tmp_path: Path) -> Path:
    """The four files that state a version, agreed on 1.2.3 of 2030-01-31."""
    (tmp_path / "mrs_suggest" / "common").mkdir(parents=True)
    (tmp_path / "mrs_suggest" / "common" / "__init__.py").write_text('__version__ = "1.2.3"\n', encoding="utf-8")
    (tmp_path / "mrs_metrics").mkdir()
    (tmp_path / "mrs_metrics" / "signature.py").write_text('FALLBACK_VERSION = "1.2.3"\n', encoding="utf-8")
    (tmp_path / "CITATION.cff").write_text("version: 1.2.3\n", encoding="utf-8")
    (tmp_path / "CHANGELOG.md").write_text("## 1.2.3 - 2030-01-31\n\n## 1.2.2 - 2029-12-31\n", encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("file", "old", "new", "tag", "says"), cases(__file__, "test_versions_that_differ_are_refused")
)
def test_versions_that_differ_are_refused(
    places: Path, check: Any, file: str, old: str, new: str, tag: str | None, says: str
) -> None:
    check.compare_versions(places, "v1.2.3")
    text = (places / file).read_text(encoding="utf-8")
    (places / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(SystemExit, match=says):
        check.compare_versions(places, tag)


def shipped(repository: Path) -> list[str]:
    """The files that the wheel holds, as setup.cfg's packages and package data say, by their installed names."""
    import configparser

    setup = configparser.ConfigParser()
    setup.read(repository / "setup.cfg", encoding="utf-8")
    folders = dict(line.split(" = ") for line in setup["options"]["package_dir"].strip().splitlines())
    names = []
    for package, patterns in setup["options.package_data"].items():
        first, *below = package.split(".")
        top = repository.joinpath(folders.get(first, first), *below)
        for pattern in patterns.split():
            found = [path for path in top.glob(pattern) if path.is_file() and path.suffix != ".pyc"]
            names += [f"{package.replace('.', '/')}/{path.relative_to(top).as_posix()}" for path in found]
    return sorted(set(names))


def test_every_file_that_ships_has_its_licence_in_notice(repository: Path) -> None:
    """Below "Files that are not code": PATTERN | LICENCE | ORIGIN; `*` stands for any letters."""
    table = (repository / "NOTICE").read_text(encoding="utf-8").partition("\nFiles that are not code\n")[2]
    rows = [[cell.strip() for cell in line.split("|")] for line in table.splitlines() if "|" in line]
    assert [row for row in rows if len(row) != 3 or not all(row)] == []
    files = [name for name in shipped(repository) if not name.endswith((".py", "py.typed"))]
    assert len(files) > 200
    assert [name for name in files if not any(fnmatchcase(name, row[0]) for row in rows)] == []
    assert [row[0] for row in rows if not any(fnmatchcase(name, row[0]) for name in files)] == []


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"key = 'hf_" + b"a" * 34 + b"'", "contains a token of the hub"),
        (b"-----BEGIN RSA PRIVATE" + b" KEY-----", "contains a private key"),
        (b"hf_short " * 200, "1,800 bytes, expected at most 1,000"),
    ],
)
def test_secrets_and_large_files_are_refused(
    check: Any, content: bytes, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(check, "MAX_FILE", 1000)
    check.scan_file("mrs_suggest/x.json", b"hf_short")
    with pytest.raises(SystemExit, match=says):
        check.scan_file("mrs_suggest/x.json", content)


@pytest.mark.parametrize(("licences", "says"), cases(__file__, "test_a_licence_of_the_base_installation"))
def test_a_licence_of_the_base_installation(check: Any, licences: list[object], says: str | None) -> None:
    problem = check.licence_problem({"licenses": licences})
    assert problem is None if says is None else says in problem


@pytest.fixture(scope="module")
def workflow(repository: Path) -> dict[str, Any]:
    """The workflow of a release; YAML reads its key `on` as true."""
    content = yaml.safe_load((repository / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8"))
    return {"on" if key is True else key: value for key, value in content.items()}


def test_the_workflow_publishes_only_what_was_checked_and_without_a_secret(workflow: dict[str, Any]) -> None:
    jobs = workflow["jobs"]
    assert jobs["publish"]["needs"] == ["check", "wheel"]
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert workflow["permissions"] == {"contents": "read"}
    assert [name for name, job in jobs.items() if "permissions" in job] == ["publish"]
    steps = [step for job in jobs.values() for step in job["steps"]]
    assert "secrets." not in json.dumps(workflow)
    (publishing,) = (step for step in steps if "gh-action-pypi-publish" in step.get("uses", ""))
    assert publishing["with"] == {"attestations": True}
    (running,) = (step["run"] for step in jobs["check"]["steps"] if "run" in step)
    assert running == 'make release-check RELEASE="--tag $GITHUB_REF_NAME"'
    (sent,) = (
        s["with"]["path"].split()
        for s in steps
        if s.get("with", {}).get("name") == "packages" and "upload" in s["uses"]
    )
    assert sent == ["dist/*.whl", "dist/*.tar.gz"]


@pytest.mark.parametrize("name", ["checks", "properties", "release"])
def test_every_action_is_pinned_and_no_checkout_keeps_its_credentials(repository: Path, name: str) -> None:
    text = (repository / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    used = re.findall(r"uses: (.+)$", text, re.MULTILINE)
    assert used
    assert [use for use in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)] == []
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]
    checkouts = [step for step in steps if step.get("uses", "").startswith("actions/checkout@")]
    assert checkouts
    assert all(step["with"] == {"persist-credentials": False} for step in checkouts)
