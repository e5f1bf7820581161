"""One line of the examination."""

from __future__ import annotations

from dataclasses import dataclass

OK = "ok"
NOTE = "note"  # works; something to know
MISSING = "missing"  # optional, and not installed
BROKEN = "broken"  # installed, and does not work
INSTALL = "in a clone (docs/install.md)"


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        area: the group under which it is shown, such as `packages`.
        name: the thing that was checked, such as `torch`.
        state: OK, NOTE, MISSING or BROKEN.
        says: a version, a path, or the problem and its remedy.
    """

    area: str
    name: str
    state: str
    says: str
