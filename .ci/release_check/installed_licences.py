"""What a distribution brings with it, from the metadata of what is installed: packages, versions, licences."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PROJECT = "mrs-suggest"
DEVELOPMENT = {"test", "bench", "release", "docs"}  # extras that no user installs
COPYLEFT = re.compile(r"\bA?GPL|GNU (?:Affero )?General Public", re.IGNORECASE)  # not the LGPL
LIBRARY_LICENCE = re.compile(r"LGPL|Lesser General", re.IGNORECASE)
# Packages whose metadata have no licence, from the licence file that they bring.
STATED_ELSEWHERE: dict[str, str] = {}


@dataclass(frozen=True)
class Brought:
    """An installed package that comes with ours. `needs`: the names of those that come with it."""

    name: str
    version: str
    licence: str
    needs: tuple[str, ...]


def closure(project: str = PROJECT, extras: Iterable[str] = ()) -> dict[str, Brought]:
    """Everything that the project requires here, with what that requires in turn.

    Raises:
        PackageNotFoundError: something that is required is not installed.
    """
    found: dict[str, Brought] = {}
    waiting = [(project, frozenset(extras))]
    seen = set()
    while waiting:
        name, wanted = waiting.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        asked = [Requirement(line) for line in metadata.requires(name) or []]
        asked = [one for one in asked if applies(one, wanted)]
        waiting += [(canonicalize_name(one.name), frozenset(one.extras)) for one in asked]
        needs = {canonicalize_name(one.name) for one in asked} - {canonicalize_name(project)}
        earlier = found[name].needs if name in found else ()
        found[name] = Brought(name, metadata.version(name), licence_of(name), tuple(sorted({*needs, *earlier})))
    return dict(sorted(found.items()))


def applies(requirement: Requirement, extras: Iterable[str]) -> bool:
    """Whether a requirement counts on this machine, with these extras."""
    marker = requirement.marker
    return marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras))


def licence_of(name: str) -> str:
    """The licence by the metadata: the SPDX expression, else the classifiers, else a short text; `unknown` without."""
    about = metadata.metadata(name)
    classifiers = [text for text in about.get_all("Classifier") or () if text.startswith("License :: ")]
    short = (about.get("License") or "").strip()
    one_line = short if short and "\n" not in short and len(short) < 60 else ""
    named = [text.rpartition(" :: ")[2] for text in classifiers if text.count("::") > 1]
    return about.get("License-Expression") or "; ".join(named) or one_line or STATED_ELSEWHERE.get(name, "unknown")


def is_copyleft(licence: str) -> bool:
    """Whether all choices of a licence are the GPL or AGPL; the LGPL does not count.

    >>> is_copyleft("GPL-3.0-only"), is_copyleft("LGPL-2.1-or-later"), is_copyleft("MIT OR GPL-2.0"), is_copyleft("MIT")
    (True, False, False, False)
    """
    choices = re.split(r" OR ", licence)
    return all(COPYLEFT.search(choice) and not LIBRARY_LICENCE.search(choice) for choice in choices)


def check_licences(base: dict[str, Brought]) -> list[str]:
    """A sentence for each package of the base installation under the GPL, and for each without a licence."""
    told = []
    for one in base.values():
        if is_copyleft(one.licence):
            told.append(f"{one.name} {one.version}: {one.licence}, in the base installation; make it an extra.")
        elif one.licence == "unknown":
            told.append(
                f"{one.name} {one.version}: its metadata have no licence; read the licence file that it brings and add "
                "it to STATED_ELSEWHERE in .ci/release_check/installed_licences.py."
            )
    return told


def table(base: dict[str, Brought], every: dict[str, Brought]) -> str:
    """The packages as Markdown: base first, then what extras add; copyleft is marked."""
    rows = ["| package | version | licence | comes with |", "|---|---|---|---|"]
    for name, one in sorted(every.items(), key=lambda item: (item[0] not in base, item[0])):
        licence = f"**{one.licence}**" if is_copyleft(one.licence) else one.licence
        rows.append(f"| {name} | {one.version} | {licence} | {'base' if name in base else 'extras'} |")
    return "\n".join(rows) + "\n"
