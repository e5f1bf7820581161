"""Tables and notes on a terminal: rich's console, with the control characters of texts made visible."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.text.text import visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table


def make_console(width: int | None = None, **options: Any) -> Console:
    """A rich console that makes control characters in texts visible; rich's own colour codes stay.

    Args:
        width: columns if the output is not a terminal; None: rich's own guess.
    """
    from rich.console import Console
    from rich.text import Text

    class VisibleConsole(Console):
        def render_str(self, text: str, **named: Any) -> Text:
            return super().render_str(visible(text, "\n\t"), **named)

    to_terminal = "file" not in options and sys.stdout.isatty()
    return VisibleConsole(width=None if to_terminal else width, highlight=False, **options)


def make_table(*columns: str, title: str | None = None) -> Table:
    """A rich table; columns whose names begin with `>` are aligned to the right."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    for column in columns:
        table.add_column(column.removeprefix(">"), justify="right" if column.startswith(">") else "left")
    return table


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], left: int = 1) -> None:
    """Print a table whose first `left` columns are text, and whose others are figures."""
    table = make_table(*(name if number < left else f">{name}" for number, name in enumerate(header)), title=title)
    for row in rows:
        table.add_row(*row)
    make_console().print(table)
