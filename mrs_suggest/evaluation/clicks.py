"""How often people choose suggestions, from a file of `mrs serve --feedback`: by model and language, and compared.

The unit is the session: its answers are drawn together. An answer without a session is its own unit, and an answer
without feedback counts as one whose suggestions were not chosen.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from mrs_metrics.power import ratio_error
from mrs_metrics.significance import bootstrap_interval, unit_sums
from mrs_suggest.common.errors import InputError

LEAST_SESSIONS = 30  # of each model that is compared; ours: with fewer, a normal interval of a share is too narrow
ALPHA = 0.05  # of intervals and tests
MIXED = 0.05  # a difference between two shares that an experiment should find soon; ours
BINS = 10  # of the calibration error
FIGURES = {
    "covered": "answers with suggestions",
    "first": "first chosen",
    "accepted": "one chosen",
    "saved": "characters saved",
}


@dataclass(frozen=True)
class Click:
    """An answer and what a person did with it.

    Attributes:
        unit: its session, or its own id.
        used: the probability that one of its suggestions is chosen, if the model knew it.
        covered, first, accepted: 1 if it had suggestions, if the first was chosen, if any was; else 0.
        saved: characters of the chosen reply, less those typed if it was edited (0 if their number is unknown).
    """

    unit: str
    model: str
    version: str
    language: str
    used: float | None
    covered: int
    first: int
    accepted: int
    saved: int


def clicks_of(rows: Iterable[tuple[Any, ...]]) -> list[Click]:
    """The answers of the rows of `mrs_suggest.serving.clicks.read_answers`."""
    return [_click(*row) for row in rows]


def _click(
    answer: str, session: str | None, model: str, version: str, language: str | None, used: float | None, lengths: str,
    chosen: int | None, edited: int | None, typed: int | None, _: object = None,
) -> Click:  # fmt: skip
    sizes = json.loads(lengths)
    length = sizes[chosen - 1] if chosen else 0
    saved = length if not edited else length - min(length, length if typed is None else typed)
    return Click(
        session or answer, model, version, language or "", used,
        int(bool(sizes)), int(chosen == 1), int(chosen is not None), saved,
    )  # fmt: skip


def report(clicks: Iterable[Click]) -> list[dict[str, Any]]:
    """The figures of each model, over all languages (`all`) and in each, with 95 % intervals by session."""
    groups: dict[tuple[str, str, str], list[Click]] = defaultdict(list)
    for click in clicks:
        for language in ("all", click.language):
            groups[click.model, click.version, language].append(click)
    return [
        {"model": model, "version": version, "language": language, **_figures(some)}
        for (model, version, language), some in sorted(
            groups.items(), key=lambda one: (*one[0][:2], one[0][2] != "all")
        )
    ]


def _figures(clicks: Sequence[Click]) -> dict[str, Any]:
    units = [click.unit for click in clicks]
    found: dict[str, Any] = {"answers": len(clicks), "sessions": len(set(units))}
    for name in FIGURES:
        values = [getattr(click, name) for click in clicks]
        interval = bootstrap_interval(values, units=units, shares=name != "saved")
        found[name] = {"mean": float(np.mean(values)), "interval": interval.ends}
    known = [(click.used, click.accepted) for click in clicks if click.used is not None]
    return {**found, "calibration_error": calibration_error(*zip(*known, strict=True)) if known else None}


def calibration_error(probabilities: Sequence[float], outcomes: Sequence[int]) -> float:
    """The mean distance of a probability from the share of its tenth of the scale (expected calibration error: Naeini,
    Cooper and Hauskrecht 2015, "Obtaining Well Calibrated Probabilities Using Bayesian Binning").

    >>> round(calibration_error([0.95, 0.95, 0.15, 0.15], [1, 1, 0, 1]), 3)
    0.2
    """
    column, reached = np.asarray(probabilities), np.asarray(outcomes)
    bins = np.minimum((column * BINS).astype(int), BINS - 1)
    parts = [bins == number for number in range(BINS)]
    return float(sum(abs(column[part].sum() - reached[part].sum()) for part in parts) / len(column))


def compare(clicks: Sequence[Click], a: str, b: str, sequential: bool = False) -> dict[str, Any]:
    """How much more often a suggestion of `a` is chosen than one of `b`, with a 95 % interval and p by session.

    Shares of sessions are approximately normal (ratio estimator: Cochran 1977, "Sampling Techniques", section 2.11).

    Args:
        sequential: interval and p hold at every look, so that an experiment may end as soon as p is small (mixture
            sequential probability ratio test: Johari, Pekelis and Walsh 2015, "Always Valid Inference", with a normal
            mixture of standard deviation `MIXED`). Without it, they hold for a number of sessions decided before.

    Raises:
        InputError: a model has too few sessions, or all answers are alike.
    """
    shares, errors = [], []
    for name in (a, b):
        own = [click for click in clicks if click.model == name]
        if (sessions := len({click.unit for click in own})) < LEAST_SESSIONS:
            known = " ".join(sorted({click.model for click in clicks}))
            raise InputError(
                f"{name}: {sessions} sessions, expected {LEAST_SESSIONS} or more; the file has answers of {known}."
            )
        sizes, sums = unit_sums([click.accepted for click in own], [click.unit for click in own])
        share, error = ratio_error(sums, sizes)
        shares.append(share)
        errors.append(error)
    difference, error = shares[0] - shares[1], math.hypot(*errors)
    if not error:  # and the interval would have no width
        raise InputError(f"{a}, {b}: all answers of each are alike, so the difference cannot be tested yet.")
    if sequential:
        whole = error**2 + MIXED**2
        reach = error * math.sqrt(whole * math.log(whole / (error * ALPHA) ** 2)) / MIXED
        p = min(1.0, math.sqrt(whole) / error * math.exp(-((difference * MIXED / error) ** 2) / (2 * whole)))
    else:
        normal = NormalDist()
        reach = normal.inv_cdf(1 - ALPHA / 2) * error
        p = 2 * (1 - normal.cdf(abs(difference) / error))
    return {
        "a": a, "b": b, "accepted": shares, "difference": difference,
        "interval": [difference - reach, difference + reach], "p": p, "sequential": sequential,
    }  # fmt: skip
