"""What a table's file says of a claim of its paper."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field

from mrs_suggest.common.errors import InputError

CLOSE, WORSE, BETTER = "close", "worse", "better"  # what a claim says of the first of two rows


@dataclass(frozen=True)
class ClaimSpec:
    """A sentence of a paper about two rows of a table, tested over the columns that both have.

    Attributes:
        title: the sentence.
        says: `close`, `worse` or `better`: the first row, than the second.
        rows: the two.
        paper: its section.
        columns: of those, these alone.
        within: how far apart close ones may be, as a share of the second row's figure.
        about: where its words leave something open, such as what is close.
    """

    title: str
    says: str
    rows: list[str]
    paper: str = ""
    columns: list[str] = field(default_factory=list)
    within: float = 0.0
    about: str = ""

    def require_sound(self, columns: Container[str], where: str) -> None:
        """Refuse a claim that cannot be tested.

        Raises:
            InputError: a column is not there, or what it says is not known.
        """
        for column in (column for column in self.columns if column not in columns):
            raise InputError(f"{where}: there is no column {column!r}.")
        if self.says not in (CLOSE, WORSE, BETTER) or (self.says == CLOSE) != (self.within > 0):
            raise InputError(
                f"{where}: {self.title!r} says {self.says!r}; expected {WORSE}, {BETTER}, or {CLOSE} with `within`, a "
                "share above 0."
            )
