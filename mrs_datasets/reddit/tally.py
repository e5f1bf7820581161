"""What the counts of the stages have in common."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any


@dataclass
class Tally:
    """Counts of a stage."""

    def as_dict(self) -> dict[str, Any]:
        """All values as JSON has them, the most frequent of a kind first (`asdict` breaks counters before 3.12)."""
        return {
            name: dict(value.most_common()) if isinstance(value, Counter) else value
            for name, value in vars(self).items()
        }
