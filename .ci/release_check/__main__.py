"""`make release-check`: may this commit be released? It builds, compares and looks through what would be published.

Into `--out` go wheel, source distribution, bill of materials (`*.cdx.json`) and the table of licences; a problem is one
sentence, and the exit code is then 1. docs/release.md has the whole way of a release.
"""

from __future__ import annotations

import argparse
import importlib.util
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from archive_contents import check_contents
from two_builds import BuildError, build_twice, epoch_of, run
from versions_agree import check_versions, stated

REPOSITORY = Path(__file__).resolve().parents[2]
TOOLS = ("build", "twine", "cyclonedx", "packaging")


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="release_check", description=__doc__)
    parser.add_argument("--tag", help="also check what the tag vX.Y.Z of a release needs")
    parser.add_argument("--out", type=Path, default=REPOSITORY / "dist", help="the folder to write (default dist)")
    options = parser.parse_args()
    missing = [name for name in TOOLS if importlib.util.find_spec(name) is None]
    if missing:
        print(f"release-check needs {', '.join(missing)}: run `pip install '.[release]'`.", file=sys.stderr)
        return 1
    if run("git", "status", "--porcelain", "--untracked-files=no", cwd=REPOSITORY):
        print("note: what is not committed is not in the build.")
    with tempfile.TemporaryDirectory(prefix="mrs-release-") as work:
        try:
            problems = _all(Path(work), options.out.resolve(), options.tag)
        except BuildError as error:
            problems = [str(error)]
    for problem in problems:
        print(f"release-check: {problem}", file=sys.stderr)
    print(f"release-check: {f'{len(problems)} problems' if problems else 'ok'}")
    return 1 if problems else 0


def _all(work: Path, out: Path, tag: str | None) -> list[str]:
    problems = _timed("versions", lambda: check_versions(REPOSITORY, tag))
    files: dict[str, Path] = {}

    def build() -> list[str]:
        built, told = build_twice(REPOSITORY, work)
        files.update(_kept(built, out))
        return told

    problems += _timed("two builds", build)
    version = stated(REPOSITORY)["mrs_suggest/common/__init__.py"]
    expected = {f"mrs_suggest-{version}-py3-none-any.whl", f"mrs_suggest-{version}.tar.gz"}
    if set(files) != expected:
        return [*problems, f"{out}: expected {' and '.join(sorted(expected))}, found {' and '.join(files)}."]
    notice = (REPOSITORY / "NOTICE").read_text(encoding="utf-8")
    problems += _timed("contents of the wheel", lambda: check_contents(files, notice))
    problems += _timed("metadata and README", lambda: _metadata(files))
    return problems + _timed("licences and bill of materials", lambda: _brought(files, out, version))


def _timed(what: str, check: Callable[[], list[str]]) -> list[str]:
    started = time.monotonic()
    problems = check()
    print(f"{what}: {'ok' if not problems else len(problems)} ({time.monotonic() - started:.0f} s)", flush=True)
    return problems


def _kept(built: dict[str, Path], out: Path) -> dict[str, Path]:
    """Move the built files to `out`, in place of those of an earlier check."""
    out.mkdir(parents=True, exist_ok=True)
    for old in (*out.glob("mrs_suggest-*"), *out.glob("mrs-suggest-*")):
        old.unlink()
    return {name: Path(shutil.copy(path, out / name)) for name, path in built.items()}


def _metadata(files: dict[str, Path]) -> list[str]:
    """twine checks the metadata, and renders the README as PyPI does."""
    try:
        run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", *files.values(), cwd=REPOSITORY)
    except BuildError as error:
        return [f"the metadata or README.md would be refused or not shown: {error}"]
    return []


def _brought(files: dict[str, Path], out: Path, version: str) -> list[str]:
    from bill_of_materials import write_bill
    from installed_licences import DEVELOPMENT, PROJECT, check_licences, closure, table

    installed = metadata.version(PROJECT)
    if installed != version:
        return [f"version {installed} is installed, not {version}; run `pip install --editable .` again."]
    base = closure()
    extras = set(metadata.metadata(PROJECT).get_all("Provides-Extra") or ()) - DEVELOPMENT
    try:
        every = closure(extras=extras)
    except metadata.PackageNotFoundError as error:
        print(f"note: the table of licences has the base alone: {error.name} of an extra is not installed.")
        every = base
    (out / f"mrs_suggest-{version}.licences.md").write_text(table(base, every), encoding="utf-8")
    return check_licences(base) + write_bill(base, files, epoch_of(REPOSITORY), out / f"mrs_suggest-{version}.cdx.json")


if __name__ == "__main__":
    sys.exit(main())
