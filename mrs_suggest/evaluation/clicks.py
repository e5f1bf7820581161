"""How often people choose suggestions, from a file of `mrs serve --feedback`: by model and language, and compared.

The unit is the session: its answers are drawn together. An answer without a session is its own unit, and an answer
without feedback counts as one whose suggestions were not chosen.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.corpus import Corpus, jackknife_interval
from mrs_metrics.interval import Interval
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
        covered, first, accepted: 1 if suggestions were shown, if the first of them was chosen, if any was; else 0.
        saved: characters of the chosen reply, less those typed if it was edited (0 if their number is unknown).
        by_tag: the same of each tag among the suggestions shown, where only replies with the tag count.
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
    by_tag: Mapping[str, Click] = field(default_factory=dict)


def clicks_of(rows: Iterable[tuple[Any, ...]]) -> list[Click]:
    """The answers of the rows of `mrs_suggest.serving.clicks.read_answers`."""
    return [_click(*row) for row in rows]


def _click(
    answer: str, session: str | None, model: str, version: str, language: str | None, used: float | None, lengths: str,
    chosen: int | None, edited: int | None, typed: int | None, _: object = None, shown: str | None = None,
    tags: str = "[]",
) -> Click:  # fmt: skip
    sizes, tagged = json.loads(lengths), json.loads(tags)
    places = list(range(1, len(sizes) + 1)) if shown is None else json.loads(shown)
    length = sizes[chosen - 1] if chosen else 0
    saved = length if not edited else length - min(length, length if typed is None else typed)
    first, accepted = int(chosen is not None and chosen in places[:1]), int(chosen is not None)
    found = Click(session or answer, model, version, language or "", used, int(bool(places)), first, accepted, saved)
    own = set(tagged[chosen - 1]) if chosen and tagged else set()
    seen = sorted({tag for place in places for tag in tagged[place - 1]}) if tagged else []
    none = replace(found, used=None, first=0, accepted=0, saved=0)
    return replace(found, by_tag={tag: replace(found, used=None) if tag in own else none for tag in seen})


def report(clicks: Iterable[Click]) -> list[dict[str, Any]]:
    """The figures of each model, over all languages (`all`), in each, and of each tag, with 95 % intervals by session.

    Those of a tag are of the answers that showed a reply with the tag: how often people chose such a reply.
    """
    groups: dict[tuple[str, str, str, str], list[Click]] = defaultdict(list)
    for click in clicks:
        for language in ("all", click.language):
            groups[click.model, click.version, language, ""].append(click)
        for tag, own in click.by_tag.items():
            groups[click.model, click.version, "all", tag].append(own)
    return [
        {"model": model, "version": version, "language": language, "tag": tag, **_figures(some)}
        for (model, version, language, tag), some in sorted(
            groups.items(), key=lambda one: (*one[0][:2], one[0][3], one[0][2] != "all", one[0][2])
        )
    ]


def _figures(clicks: Sequence[Click]) -> dict[str, Any]:
    units = [click.unit for click in clicks]
    found: dict[str, Any] = {"answers": len(clicks), "sessions": len(set(units))}
    for name in FIGURES:
        values = [getattr(click, name) for click in clicks]
        interval = bootstrap_interval(values, units=units, shares=name != "saved")
        found[name] = {"mean": float(np.mean(values)), "interval": interval.ends}
    known = [(click.used, click.accepted, click.unit) for click in clicks if click.used is not None]
    if not known:
        return {**found, "calibration_error": None}
    error, interval = calibration_error(*zip(*known, strict=True))
    return {**found, "calibration_error": {"mean": error, "interval": interval.ends}}


def calibration_error(
    probabilities: Sequence[float], outcomes: Sequence[int], units: Sequence[str] | None = None
) -> tuple[float, Interval]:
    """The mean distance of a probability from the share of its tenth of the scale (expected calibration error: Naeini,
    Cooper and Hauskrecht 2015, "Obtaining Well Calibrated Probabilities Using Bayesian Binning"), with its jackknife
    interval by unit. Chance adds to a distance, so the error of few answers is too high rather than too low.

    >>> round(calibration_error([0.95, 0.95, 0.15, 0.15], [1, 1, 0, 1])[0], 3)
    0.2
    """
    column = np.asarray(probabilities, np.float64)
    bins = np.minimum((column * BINS).astype(int), BINS - 1)

    def figure(rows: Sequence[tuple[int, float]]) -> Callable[[NDArray[np.float64]], float]:
        places, gaps = np.array(rows, np.float64).T
        return lambda counts: float(np.abs(np.bincount(places.astype(int), counts * gaps)).sum() / counts.sum())

    errors = Corpus(list(zip(bins.tolist(), (column - np.asarray(outcomes)).tolist(), strict=True)), figure)
    return errors.value, jackknife_interval(errors, units)


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
