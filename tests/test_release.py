"""`make release-check` finds what it says, and the workflow of a release publishes what was checked."""

from __future__ import annotations

import gzip
import io
import json
import re
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import yaml


@pytest.fixture(scope="module")
def check(repository: Path) -> SimpleNamespace:
    """The modules of the check."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(repository / ".ci" / "release_check"))
        import archive_contents
        import installed_licences
        import two_builds
        import versions_agree

    def as_any(module: ModuleType) -> Any:
        return module

    modules = (archive_contents, installed_licences, two_builds, versions_agree)
    return SimpleNamespace(**{module.__name__: as_any(module) for module in modules})


def test_this_checkout_states_one_version(repository: Path, check: SimpleNamespace) -> None:
    from mrs_suggest.common import __version__

    assert check.versions_agree.check_versions(repository) == []
    assert set(check.versions_agree.stated(repository).values()) == {__version__}


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
    ("file", "old", "new", "tag", "says"),
    [
        ("CITATION.cff", "1.2.3", "1.2.2", None, "CITATION.cff: states version 1.2.2, but"),
        ("mrs_metrics/signature.py", "1.2.3", "0.1.0", None, "mrs_metrics/signature.py: states version 0.1.0, but"),
        ("CHANGELOG.md", "1.2.3", "1.3.0", None, "CHANGELOG.md: states version 1.3.0, but"),
        ("CHANGELOG.md", "2030-01-31", "soon", None, "CHANGELOG.md: expected a date as 2030-01-31, or unreleased"),
        ("CHANGELOG.md", "2029-12-31", "unreleased", None, "CHANGELOG.md: version 1.2.2 has no date, but"),
        ("CHANGELOG.md", "", "", "v1.2.4", "tag v1.2.4: mrs_suggest.common.__version__ is 1.2.3"),
        ("CHANGELOG.md", "2030-01-31", "unreleased", "v1.2.3", "CHANGELOG.md: 1.2.3 is unreleased, but is tagged"),
    ],
)
def test_versions_that_differ_are_told(
    places: Path, check: SimpleNamespace, file: str, old: str, new: str, tag: str | None, says: str
) -> None:
    assert check.versions_agree.check_versions(places, "v1.2.3") == []
    text = (places / file).read_text(encoding="utf-8")
    (places / file).write_text(text.replace(old, new, 1), encoding="utf-8")
    (told,) = check.versions_agree.check_versions(places, tag)
    assert told.startswith(says)


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


def test_every_file_that_ships_has_its_licence_in_notice(repository: Path, check: SimpleNamespace) -> None:
    contents = check.archive_contents
    lines = contents.read_notice((repository / "NOTICE").read_text(encoding="utf-8"))
    names = shipped(repository)
    assert len(names) > 200
    assert contents.without_licence(names, lines) == []
    (told,) = contents.without_licence([*names, "mrs_suggest/common/fonts/new.woff2"], lines)
    assert told.startswith("mrs_suggest/common/fonts/new.woff2: ships in the wheel, but no line of NOTICE")
    unused = [*lines, contents.Line("mrs_suggest/common/gone.bin", "MIT", "nowhere")]
    assert contents.without_licence(names, unused) == [
        "NOTICE: mrs_suggest/common/gone.bin names no file of the wheel; remove the line."
    ]


@pytest.mark.parametrize("table", ["", "a | MIT\n", "a | | b\n"])
def test_a_broken_table_of_licences_is_refused(check: SimpleNamespace, table: str) -> None:
    with pytest.raises(ValueError, match="expected .*PATTERN"):
        check.archive_contents.read_notice(f"\n{check.archive_contents.HEAD}\n{table}")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"key = 'hf_" + b"a" * 34 + b"'", "a token of the hub"),
        (b"-----BEGIN RSA PRIVATE" + b" KEY-----", "a private key"),
        (b'{"path": "/ho' + b'me/ann/runs"}', "a path of one machine"),
        (b"https://example.org/home/ann ./tmp/x hf_short", None),
    ],
)
def test_secrets_and_paths_are_found(check: SimpleNamespace, content: bytes, says: str | None) -> None:
    told = check.archive_contents.suspicious("mrs_suggest/common/x.json", content)
    assert len(told) == (says is not None)
    assert says is None or says in told[0]


def test_large_files_are_found(tmp_path: Path, check: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    contents = check.archive_contents
    wheel = tmp_path / "x.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("mrs_suggest/common/big.py", b"#" * 1001)
    monkeypatch.setattr(contents, "MAX_FILE", 1000)
    told = contents.check_contents({"x.whl": wheel}, f"\n{contents.HEAD}\nnothing | MIT | x\n")
    assert told[0] == "mrs_suggest/common/big.py: 1,001 bytes, expected at most 1,000; leave it out, or fetch it."


def make_sdist(path: Path, names: list[str], mtime: int, mode: int) -> Path:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as tar:
        for name in names:
            member = tarfile.TarInfo(name)
            member.size, member.mtime, member.mode, member.uname = 3, mtime, mode, f"user{mtime}"
            tar.addfile(member, io.BytesIO(b"abc"))
    path.write_bytes(gzip.compress(content.getvalue(), mtime=mtime))
    return path


def test_source_distributions_of_two_machines_become_equal(tmp_path: Path, check: SimpleNamespace) -> None:
    builds = check.two_builds
    one = make_sdist(tmp_path / "one.tar.gz", ["x/a", "x/b"], 100, 0o600)
    other = make_sdist(tmp_path / "other.tar.gz", ["x/b", "x/a"], 200, 0o664)
    (told,) = builds.differences({"x.tar.gz": one}, {"x.tar.gz": other})
    assert told.startswith("x.tar.gz: two builds of one commit differ")
    for path in (one, other):
        builds.normalise(path, 300)
    assert builds.differences({"x.tar.gz": one}, {"x.tar.gz": other}) == []
    with tarfile.open(one) as tar:
        assert [(m.name, m.mtime, m.mode, m.uname) for m in tar] == [("x/a", 300, 0o644, ""), ("x/b", 300, 0o644, "")]
        assert tar.extractfile("x/a").read() == b"abc"  # type: ignore[union-attr]
    assert builds.differences({"a": one}, {}) == ["a: only one of two builds made it."]


def test_a_failed_build_is_one_sentence(tmp_path: Path, check: SimpleNamespace) -> None:
    with pytest.raises(check.two_builds.BuildError, match=r"^`false` failed in .*: no output\.$"):
        check.two_builds.run("false", cwd=tmp_path)


def test_the_base_installation_brings_no_gpl(check: SimpleNamespace) -> None:
    licences = check.installed_licences
    base = licences.closure()
    assert {"mrs-suggest", "numpy", "huggingface-hub"} <= set(base)
    assert "pytest" not in base
    assert "numpy" in base["mrs-suggest"].needs
    assert licences.check_licences(base) == []
    bad = licences.Brought("evil", "1", "GPL-3.0-or-later", ())
    assert licences.check_licences({"evil": bad}) == [
        "evil 1: GPL-3.0-or-later, in the base installation; make it an extra."
    ]
    silent = licences.Brought("silent", "1", "unknown", ())
    (told,) = licences.check_licences({"silent": silent})
    assert told.startswith("silent 1: its metadata have no licence")
    rows = licences.table(base, {**base, "evil": bad})
    assert "| evil | 1 | **GPL-3.0-or-later** | extras |" in rows


def test_the_bill_of_materials_follows_its_schema(
    repository: Path, check: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cyclonedx")
    monkeypatch.syspath_prepend(str(repository / ".ci" / "release_check"))
    import bill_of_materials

    wheel = tmp_path / "x.whl"
    wheel.write_bytes(b"wheel")
    brought = check.installed_licences.Brought
    base = {
        "mrs-suggest": brought("mrs-suggest", "1.2.3", "Apache-2.0", ("numpy",)),
        "numpy": brought("numpy", "2.0", "BSD-3-Clause", ()),
    }
    targets = [tmp_path / "1.cdx.json", tmp_path / "2.cdx.json"]
    for target in targets:
        assert bill_of_materials.write_bill(base, {"x.whl": wheel}, 1_900_000_000, target) == []
    assert targets[0].read_bytes() == targets[1].read_bytes()
    bill = json.loads(targets[0].read_text(encoding="utf-8"))
    assert bill["metadata"]["component"]["version"] == "1.2.3"
    assert [part["purl"] for part in bill["components"]] == ["pkg:pypi/numpy@2.0"]
    assert {"ref": "pkg:pypi/mrs-suggest@1.2.3", "dependsOn": ["pkg:pypi/numpy@2.0"]} in bill["dependencies"]


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


@pytest.mark.parametrize(
    ("tag", "starts"), [("v0.1.0", True), ("v12.3.4rc1", True), ("0.1.0", False), ("vnext", False)]
)
def test_a_tag_of_a_version_starts_it(workflow: dict[str, Any], tag: str, starts: bool) -> None:
    (pattern,) = workflow["on"]["push"]["tags"]
    form = pattern.replace(".", r"\.").replace("*", ".*")  # `+` means the same in both
    assert bool(re.fullmatch(form, tag)) == starts


def test_the_page_names_what_exists(repository: Path) -> None:
    page = (repository / "docs" / "release.md").read_text(encoding="utf-8")
    makefile = (repository / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^release-check:.*\n\t.*\.ci/release_check \$\(RELEASE\)$", makefile, re.MULTILINE)
    for name in (
        "mrs_suggest/common/__init__.py",
        "mrs_metrics/signature.py",
        "CITATION.cff",
        "CHANGELOG.md",
        "release.yml",
    ):
        assert name in page
