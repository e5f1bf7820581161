"""What a build read, kept and dropped, and why: the source of `report.json`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Report:
    """Counts per config and split, filled by a reader and the writer; `notes` are sentences for the person."""

    reader: str
    settings: dict[str, Any] = field(default_factory=dict)
    dropped: dict[str, Counter[str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    partial: bool = False  # configs may lack splits that the source does not have
    partial_splits: list[str] = field(default_factory=list)  # config/split: the source had not all of its rows
    extra: dict[str, Callable[[], Any]] = field(default_factory=dict)  # of one reader; asked for at the end

    def drop(self, part: str, reason: str, rows: int = 1) -> None:
        """Count `rows` of `part` (config/split) as dropped for `reason`."""
        if rows:
            self.dropped.setdefault(part, Counter())[reason] += rows

    def as_dict(self) -> dict[str, Any]:
        return {
            "reader": self.reader,
            "settings": self.settings,
            "dropped": {part: dict(sorted(reasons.items())) for part, reasons in sorted(self.dropped.items())},
            "notes": self.notes,
            "partial_splits": self.partial_splits,
            **{name: give() for name, give in self.extra.items()},
        }
