"""One version in all places, and a date in CHANGELOG.md only once it is released."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import yaml

UNRELEASED = "unreleased"
VERSION = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")


@dataclass(frozen=True)
class Section:
    """The heading of a version in CHANGELOG.md: `## 0.1.0 - unreleased`, `## 0.1.0 - 2030-01-31`."""

    version: str
    date: str


def sections(changelog: str) -> list[Section]:
    """The headings of the versions, the newest first."""
    return [Section(*pair) for pair in re.findall(r"^## (\S+) - (.+)$", changelog, re.MULTILINE)]


def stated(repository: Path) -> dict[str, str]:
    """File -> the version that it states."""
    code = (repository / "mrs_suggest" / "common" / "__init__.py").read_text(encoding="utf-8")
    signature = (repository / "mrs_metrics" / "signature.py").read_text(encoding="utf-8")
    citation = yaml.safe_load((repository / "CITATION.cff").read_text(encoding="utf-8"))
    top = sections((repository / "CHANGELOG.md").read_text(encoding="utf-8"))
    return {
        "mrs_suggest/common/__init__.py": _only(r'^__version__ = "(.+)"$', code),
        "mrs_metrics/signature.py": _only(r'^FALLBACK_VERSION = "(.+)"$', signature),
        "CITATION.cff": str(citation.get("version")),
        "CHANGELOG.md": top[0].version if top else "none",
    }


def check_versions(repository: Path, tag: str | None = None) -> list[str]:
    """A sentence for each place that states another version than `mrs_suggest.common.__version__`, and what a tag
    needs."""
    found = stated(repository)
    version = found["mrs_suggest/common/__init__.py"]
    told = [
        f"{place}: states version {other}, but mrs_suggest.common.__version__ is {version}; write the same in both."
        for place, other in found.items()
        if other != version
    ]
    if not VERSION.fullmatch(version):
        told.append(
            f"mrs_suggest/common/__init__.py: version {version!r} is not X.Y.Z (or X.Y.ZaN, bN, rcN); "
            "see docs/release.md."
        )
    top, *older = sections((repository / "CHANGELOG.md").read_text(encoding="utf-8"))
    told += [
        f"CHANGELOG.md: version {one.version} has no date, but a newer one stands above it."
        for one in older
        if not _is_date(one.date)
    ]
    if top.date != UNRELEASED and not _is_date(top.date):
        told.append(
            f"CHANGELOG.md: expected a date as 2030-01-31, or {UNRELEASED}, for {top.version}, found {top.date!r}."
        )
    if tag is None:
        return told
    if tag != f"v{version}":
        told.append(
            f"tag {tag}: mrs_suggest.common.__version__ is {version}, whose tag is v{version}; tag the right commit."
        )
    if not _is_date(top.date):
        told.append(f"CHANGELOG.md: {top.version} is {top.date}, but is tagged; write the day of the release.")
    return told


def _is_date(text: str) -> bool:
    return re.fullmatch(r"\d{4}-\d\d-\d\d", text) is not None


def _only(form: str, text: str) -> str:
    found = re.findall(form, text, re.MULTILINE)
    return str(found[0]) if len(found) == 1 else "none"
