"""What a metric declares: its options, its input, and what is shown.

The parser of `mrs score`, its refusals and help, the tables and the tables of docs/metrics.md follow from these rows.
"""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Literal, Union, cast, get_args, get_origin, get_type_hints

from mrs_suggest.evaluation.scores.metric_record import Scored


@dataclass(frozen=True)
class Option:
    """The metadata of an option: `nbest: Annotated[int, Option("...")] = 3`.

    Attributes:
        help: what it sets; of an option without a default, what the metric needs.
        choices: its values; empty: any of its type.
        metavar: its value in the help.
        unset: how the help describes a default of None.
        source: where the default comes from, shown after it: "from section 3.3 of MRS".
        flag: its name on the command line, if it is not that of the field.
        former: an older name, which the command line still takes.
        known: of an option without a default, values that could be meant.
    """

    help: str
    choices: tuple[str, ...] = ()
    metavar: str | None = None
    unset: str = ""
    source: str = ""
    flag: str = ""
    former: str = ""
    known: str = ""


class Metric(ABC):
    """A metric whose options are set. Subclasses are frozen dataclasses; each field is an option."""

    def check(self) -> None:  # noqa: B027 - most metrics have nothing to check
        """Refuse options that do not fit, before a file is read.

        Raises:
            InputError: an option has a value that the metric cannot use, or two contradict each other.
        """

    @abstractmethod
    def score(self, path: Path) -> Scored:
        """Score the file or folder of one system.

        Raises:
            InputError: the file is missing or broken.
            ValueError: the metric refuses its content.
            ImportError: a library that the metric needs is not installed.
        """


@dataclass(frozen=True)
class DeclaredOption:
    """An option of a metric as its class declares it.

    Attributes:
        name: of the field.
        type: `int`, `str` or `Path`, of one value.
        several: whether it takes one value or more.
        required: whether the metric needs it.
        default: None where there is none.
        about: the rest.
    """

    name: str
    type: type
    several: bool
    required: bool
    default: object
    about: Option

    @property
    def flag(self) -> str:
        """Its name on the command line."""
        return f"--{self.about.flag or self.name.replace('_', '-')}"


def declared_options(metric: type[Metric]) -> dict[str, DeclaredOption]:
    """The options of a metric by name, in the order of its fields."""
    hints = get_type_hints(metric, include_extras=True)
    found = {}
    for field in dataclasses.fields(metric):  # type: ignore[arg-type]  # every subclass is a dataclass
        hint, about = get_args(hints[field.name])
        value = next(one for one in _members(hint) if one is not NoneType)
        several = get_origin(value) is tuple
        required = field.default is dataclasses.MISSING
        found[field.name] = DeclaredOption(
            name=field.name,
            type=get_args(value)[0] if several else value,
            several=several,
            required=required,
            default=None if required else field.default,
            about=about,
        )
    return found


def _members(hint: object) -> tuple[type, ...]:
    """The types of a union; the type itself if it is not a union."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (cast(type, hint),)


@dataclass(frozen=True)
class Column:
    """A column of a table: name of the figure, heading, digits behind the point."""

    key: str
    name: str
    digits: int = 4


@dataclass(frozen=True)
class Input:
    """What a metric reads of a system: a file of these columns or lines, or a folder."""

    what: str
    folder: bool = False


N = Column("n", "n", 0)


@dataclass(frozen=True)
class MetricSpec:
    """One metric of `mrs score`.

    Attributes:
        name: also that of its folder in `mrs_metrics` and of its page in docs/metrics.
        tells: what it tells, for the table of metrics.
        compares_with: which published figures it compares with.
        metric: its class, whose fields are its options.
        reads: a system's file.
        columns: what a table shows.
        main: the figure that the interval and the comparison of systems are of.
        higher_is_better: which system comes first.
        mean_over_examples: whether the main figure is a mean of per-example scores, which `--compare` tests and
            `--save-scores` writes.
        interval: how its interval is computed: studentised for means and ratios of sums, percentiles for the rest.
        counts: figure -> what it counts, told where it is not 0.
    """

    name: str
    tells: str
    compares_with: str
    metric: type[Metric]
    reads: Input
    columns: tuple[Column, ...]
    main: str
    higher_is_better: bool = True
    mean_over_examples: bool = False
    interval: Literal["studentised", "percentile"] | None = None
    counts: tuple[tuple[str, str], ...] = ()
