"""One line of the examination."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

OK = "ok"
NOTE = "note"  # works; something to know
MISSING = "missing"  # optional, and not installed
BROKEN = "broken"  # installed, and does not work
STATES = (OK, NOTE, MISSING, BROKEN)


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes:
        area: the group that it is shown in, such as `packages`.
        name: what was checked, such as `torch`.
        state: one of `STATES`.
        says: a version, a path, or what is wrong and what to do.
        facts: the same for programs.
    """

    area: str
    name: str
    state: str
    says: str
    facts: Mapping[str, object] = field(default_factory=dict)
