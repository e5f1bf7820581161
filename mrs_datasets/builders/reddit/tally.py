"""Base class of the stages' counts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass


@dataclass
class Tally:
    """Counts of a stage."""

    def as_dict(self) -> dict[str, object]:
        """All values, for JSON, the most frequent of a kind first (`asdict` breaks counters before 3.12)."""
        return {
            name: dict(value.most_common()) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
        }
