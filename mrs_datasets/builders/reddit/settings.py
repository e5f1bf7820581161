"""Settings of a build of MRS from dumps: two profiles, every value of which can be changed."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, TypeAlias

from mrs_datasets.builders.reddit.shards.partition import MAX_BUCKETS
from mrs_datasets.prepared.responses import MAX_RESPONSES, PAPER_MIN_REPLY_COUNT
from mrs_suggest.common.errors import InputError

_MONTH = re.compile(r"(\d{4})-(0[1-9]|1[0-2])")
SPLITS_BY = ("example", "thread")
RESPONSES_FROM = ("all", "training")
ALL_MONTHS = "all"
SettingValue: TypeAlias = str | int | float | bool | None  # of a setting, as JSON has it


@dataclass(frozen=True)
class Settings:
    """The values of a build; the defaults are the paper's (Zhang et al. 2021, section 2).

    Attributes:
        profile: the name of the profile that the values come from.
        min_score: comments below are dropped (section 2: "score less than one").
        min_language_score: fastText's probability must be above (section 2: 0.7).
        min_examples: languages with fewer pairs are left out (section 2: 100,000).
        english_months: first and last month of English replies that are kept (section 2: 2018 only); empty: all.
        min_reply_count, max_responses: of the response sets (section 2.1: twenty times; 30,000 to 50,000).
        responses_from: where those replies are counted: `all` splits (section 2.1: "in the dataset"), or `training`, so
            that no test reply gets into the response set.
        drop_bots: leave out bots' comments (the paper does not mention this).
        clean: turn Markdown into text, leave out quotes and HTML tags, repair mojibake, drop duplicates (ours). Links,
            users' names, e-mail and IP addresses and telephone numbers are masked in every profile, which the paper
            does not mention.
        split_by: `example` (section 2: 80/10/10 at random), or `thread`, so that no thread is in two splits.
        min_characters, max_characters: of both sides; None: no bound (the paper names none).
        buckets: parts of the join; changes memory and files, not results.
        keep_rejects: texts to store for inspection, per reason.
    """

    profile: str = "paper"
    min_score: int = 1
    min_language_score: float = 0.7
    min_examples: int = 100_000
    english_months: tuple[str, str] | None = ("2018-01", "2018-12")
    min_reply_count: int = PAPER_MIN_REPLY_COUNT
    max_responses: int = MAX_RESPONSES
    responses_from: str = "all"
    drop_bots: bool = False
    clean: bool = False
    split_by: str = "example"
    min_characters: int | None = None
    max_characters: int | None = None
    buckets: int = 64
    keep_rejects: int = 0

    def __post_init__(self) -> None:
        for name, least in (
            ("min_examples", 1),
            ("min_reply_count", 1),
            ("max_responses", 1),
            ("buckets", 1),
            ("keep_rejects", 0),
            ("min_characters", 0),
            ("max_characters", 1),
        ):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise InputError(f"--{_flag(name)}: expected {least} or more, found {getattr(self, name)}.")
        if self.buckets > MAX_BUCKETS:
            raise InputError(f"--buckets: expected {MAX_BUCKETS} or fewer, found {self.buckets}.")
        if not 0 <= self.min_language_score < 1:
            raise InputError(f"--min-language-score: expected 0 or more and below 1, found {self.min_language_score}.")
        if self.split_by not in SPLITS_BY:
            raise InputError(f"--split-by: expected one of {', '.join(SPLITS_BY)}, found {self.split_by!r}.")
        if self.responses_from not in RESPONSES_FROM:
            raise InputError(
                f"--responses-from: expected one of {', '.join(RESPONSES_FROM)}, found {self.responses_from!r}."
            )
        low, high = self.min_characters, self.max_characters
        if low is not None and high is not None and low > high:
            raise InputError(f"--min-characters {low}: is more than --max-characters, which is {high}; lower it.")

    def departures(self) -> dict[str, SettingValue]:
        """The values that differ from the profile's, as `as_dict` has them."""
        profile = PROFILES[self.profile].as_dict()
        return {name: value for name, value in self.as_dict().items() if value != profile[name]}

    def as_dict(self) -> dict[str, SettingValue]:
        """All values, for JSON."""
        return {**asdict(self), "english_months": ":".join(self.english_months or ()) or ALL_MONTHS}


PROFILES = MappingProxyType(
    {
        "paper": Settings(),
        "clean": Settings(profile="clean", drop_bots=True, clean=True, split_by="thread", responses_from="training"),
    }
)


def make_settings(profile: str, **changes: Any) -> Settings:
    """A profile with changes; those that are None are left out.

    Raises:
        InputError: no such profile, or a value out of range.

    >>> make_settings("paper", min_examples=10, buckets=None).departures()
    {'min_examples': 10}
    """
    if profile not in PROFILES:
        raise InputError(f"--profile {profile}: expected one of {', '.join(PROFILES)}.")
    return replace(PROFILES[profile], **{name: value for name, value in changes.items() if value is not None})


def read_months(text: str) -> tuple[str, str]:
    """`2018-01:2018-12`, or one month, as its first and last month.

    Raises:
        InputError: it is neither.
    """
    first, _, last = text.partition(":")
    last = last or first
    if not _MONTH.fullmatch(first) or not _MONTH.fullmatch(last) or first > last:
        raise InputError(f"--english-months {text}: expected YYYY-MM:YYYY-MM, first month first, or `all`.")
    return first, last


def _flag(name: str) -> str:
    return name.replace("_", "-")
