"""Weights of a ranker fitted on clicks (`mrs feedback tune`).

A person who chooses one of the shown suggestions chooses suggestion i with a probability proportional to
`exp(theta . parts[i] + b[position of i])`: a conditional logit (McFadden 1974, "Conditional Logit Analysis of
Qualitative Choice Behavior"). Its terms `b` account for what people click because of its position. The parts are those
of the scores by which the suggestions were shown, times their weights; the new weights are the old ones times `theta`.

Weighting each click by the inverse propensity of its position (Joachims, Swaminathan and Schnabel 2017, "Unbiased
Learning-to-Rank with Biased Feedback") is better where propensities are known, from shuffled suggestions. They are not
known here; estimated from the same clicks, they are the terms `b`, and on the simulated clicks of the tests the weights
recover people's rule no better than the terms alone. So there are only the terms.

The probability that a suggestion is used is refitted from the same answers: its log-odds times a slope plus an offset
(Platt 1999, "Probabilistic Outputs for Support Vector Machines"). Both changes are made only if they are better on
sessions that they were not fitted on.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from mrs_metrics.interval import Interval
from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.models.saved.families import family_of, write_record
from mrs_suggest.models.starting_points import RANKER_FOLDER
from mrs_suggest.suggest.own_replies.sets import ResponseSets, copied
from mrs_suggest.suggest.ranking.own_ranker import OwnRankers
from mrs_suggest.suggest.ranking.rankers import SETTINGS
from mrs_suggest.suggest.ranking.trigger import Trigger

LEAST_CLICKS = 200  # ours: on fewer simulated clicks, most fits were refused
FOLDS = 5  # of sessions; ours
_STRENGTH = 1.0  # of the pull of each part's theta towards their mean, in squared units of it; ours
_SURE = 1e-3  # least distance of a probability from 0 and 1 whose log-odds are used; ours
Array = NDArray[np.float64]
Places = NDArray[np.bool_]


@dataclass(frozen=True)
class Choices:
    """n answers of which a suggestion was chosen.

    Attributes:
        parts: (n, k, p) weighted parts of up to k suggestions each, NaN where there are fewer.
        chosen: (n,) place of the chosen one, from 0.
        sessions: (n,) of each answer.
    """

    parts: Array
    chosen: NDArray[np.int64]
    sessions: list[str]

    def some(self, rows: Places) -> Choices:
        """The answers that are True in `rows` (n,)."""
        return Choices(
            self.parts[rows], self.chosen[rows], [one for one, kept in zip(self.sessions, rows, strict=True) if kept]
        )


def choices_of(rows: Iterable[tuple[Any, ...]], version: str, languages: Iterable[str], names: list[str]) -> Choices:
    """The choices among several suggestions that were shown, in the rows of `mrs_suggest.serving.clicks.read_answers`.

    Args:
        version: of the model whose answers count.
        languages: that count.
        names: p parts.
    """
    found, known = list[tuple[list[dict[str, float]], int, str]](), set(languages)
    for answer, session, _, own, language, _, _, chosen, _, _, parts, shown, *_ in rows:
        if own == version and language in known and chosen:
            scored = json.loads(parts)
            places = json.loads(shown or "[]") or range(1, len(scored) + 1)
            if len(places) > 1 and all(scored):
                found.append(([scored[place - 1] for place in places], places.index(chosen), session or answer))
    width = max((len(scored) for scored, *_ in found), default=0)
    table = np.full((len(found), width, len(names)), np.nan)
    for number, (scored, *_) in enumerate(found):
        table[number, : len(scored)] = [[one.get(name, 0.0) for name in names] for one in scored]
    return Choices(table, np.array([chosen for _, chosen, _ in found], np.int64), [one for *_, one in found])


def log_likelihood(choices: Choices, theta: Array, places: Array) -> tuple[Array, Array, Array]:
    """(n,) natural log-probabilities of the chosen suggestions, and the slopes of their sum by theta (p,), which is at
    least 0, and by places (k,), of any size."""
    shown = ~np.isnan(choices.parts[..., 0])
    parts = np.where(shown[..., None], choices.parts, 0.0)
    scores = np.where(shown, parts @ theta + places, -np.inf)
    scores -= scores.max(1, keepdims=True)
    likely = np.exp(scores)
    total = likely.sum(1, keepdims=True)
    rows = np.arange(len(parts))
    off = -likely / total
    told = scores[rows, choices.chosen] - np.log(total[:, 0])
    off[rows, choices.chosen] += 1
    return told, np.einsum("nk,nkp->p", off, parts), off.sum(0)


def fit(choices: Choices, scale_only: bool = False) -> tuple[Array, Array]:
    """Fit theta (p,) and the terms of the places (k,), the first of which is 0.

    Args:
        scale_only: one theta for all parts, as if the old weights were right.
    """
    parts, width = choices.parts.shape[2], choices.parts.shape[1]

    def loss(values: Array) -> tuple[float, Array]:
        theta, places = values[:parts], np.append(0.0, values[parts:])
        told, by_theta, by_place = log_likelihood(choices, theta, places)
        off = theta - theta.mean()
        slopes = -by_theta + 2 * _STRENGTH * off
        if scale_only:
            slopes = np.full(parts, slopes.mean())
        return float(-told.sum() + _STRENGTH * (off**2).sum()), np.concatenate([slopes, -by_place[1:]])

    start = np.concatenate([np.ones(parts), np.zeros(width - 1)])
    bounds = [(0.0, None)] * parts + [(None, None)] * (width - 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found[:parts], np.append(0.0, found[parts:])


def gain(choices: Choices) -> tuple[float, Interval]:
    """By how much the new weights raise the log-probability of a choice of a session that they were not fitted on: the
    mean per choice, with a 95 % interval by session. The old weights get a scale and terms of places, too."""

    def better(rest: Places, held: Places) -> Array:
        fits = (fit(choices.some(rest), scale_only) for scale_only in (False, True))
        new, old = (log_likelihood(choices.some(held), *fitted)[0] for fitted in fits)
        return new - old

    return _held_out(choices.sessions, better)


def _held_out(sessions: Sequence[str], better: Callable[[Places, Places], Array]) -> tuple[float, Interval]:
    """The mean of `better(fitted, tested)` over the tested rows, by folds of sessions, and its 95 % interval."""
    folds = np.array([zlib.crc32(session.encode()) % FOLDS for session in sessions])
    gains = np.zeros(len(folds))
    for fold in range(FOLDS):
        rest, held = folds != fold, folds == fold
        if rest.any() and held.any():
            gains[held] = better(rest, held)
    return float(gains.mean()), bootstrap_interval(gains, units=sessions, shares=False)


def outcomes_of(
    rows: Iterable[tuple[Any, ...]], version: str, languages: Iterable[str]
) -> tuple[Array, Array, list[str]]:
    """The answers whose suggestions were shown with a probability of being used: (n,) that probability, (n,) whether
    one was chosen, and n sessions. Arguments as for `choices_of`."""
    found, known = [], set(languages)
    for answer, session, _, own, language, used, lengths, chosen, _, _, _, shown, *_ in rows:
        if own == version and language in known and used is not None and lengths != "[]" and shown != "[]":
            found.append((used, chosen is not None, session or answer))
    return np.array([one[0] for one in found]), np.array([float(one[1]) for one in found]), [one[2] for one in found]


def calibrate(used: Array, chosen: Array) -> tuple[float, float]:
    """Fit the offset and the slope, at least 0, of the log-odds of `used` (n,), so that they predict `chosen` (n,)."""
    odds = _log_odds(used)

    def loss(values: Array) -> tuple[float, Array]:
        off, pull = expit(values[0] + values[1] * odds) - chosen, values - (0.0, 1.0)
        likely = _likelihood(used, chosen, *values).sum()
        return float(_STRENGTH * (pull**2).sum() - likely), np.array([off.sum(), off @ odds]) + 2 * _STRENGTH * pull

    offset, slope = minimize(loss, [0.0, 1.0], jac=True, method="L-BFGS-B", bounds=[(None, None), (0, None)]).x
    return float(offset), float(slope)


def _log_odds(probabilities: Array) -> Array:
    clipped = np.clip(probabilities, _SURE, 1 - _SURE)
    return np.asarray(np.log(clipped / (1 - clipped)))


def _likelihood(used: Array, chosen: Array, offset: float, slope: float) -> Array:
    """(n,) natural log-probabilities of what happened."""
    odds = offset + slope * _log_odds(used)
    return np.asarray(chosen * odds - np.logaddexp(0, odds))


def calibration_gain(used: Array, chosen: Array, sessions: Sequence[str]) -> tuple[float, Interval]:
    """By how much `calibrate` lowers the log-loss of answers of sessions that it was not fitted on, as `gain`."""

    def better(rest: Places, held: Places) -> Array:
        before = _likelihood(used[held], chosen[held], 0.0, 1.0)
        return _likelihood(used[held], chosen[held], *calibrate(used[rest], chosen[rest])) - before

    return _held_out(sessions, better)


def _better_calibration(used: Array, chosen: Array, sessions: Sequence[str]) -> dict[str, Any]:
    """What the record says of a calibration that is better; empty without one."""
    if len(used) < LEAST_CLICKS:
        return {}
    mean, interval = calibration_gain(used, chosen, sessions)
    if interval.ends is None or interval.ends[0] <= 0:
        return {}
    offset, slope = calibrate(used, chosen)
    return {"answers": len(used), "offset": offset, "slope": slope, "gain": mean, "interval": interval.ends}


def calibrated(trigger: Trigger, offset: float, slope: float) -> Trigger:
    """The trigger with calibrated probabilities; in its curve, those between two thresholds are calibrated, too."""

    def new(probabilities: Iterable[float]) -> Array:
        return np.asarray(expit(offset + slope * _log_odds(np.fromiter(probabilities, np.float64))))

    thresholds, shares, reached = np.array(trigger.curve).reshape(-1, 3).T
    parts = np.diff(shares, prepend=0)
    hits = np.cumsum(parts * new(np.diff(shares * reached, prepend=0) / np.maximum(parts, 1e-9)))
    curve = tuple(zip(new(thresholds).tolist(), shares.tolist(), (hits / shares).tolist(), strict=True))
    return replace(trigger, probabilities=tuple(new(trigger.probabilities).tolist()), curve=curve)


def tuned_weights(weights: Mapping[str, float], theta: Mapping[str, float]) -> dict[str, float]:
    """The weights of a language times theta, with the sum that they had; unchanged if all would be 0."""
    found = {name: weight * theta.get(name, 1.0) for name, weight in weights.items()}
    total = sum(found.values())
    return {name: one * sum(weights.values()) / total for name, one in found.items()} if total else dict(weights)


def tune(model: Path, version: str, rows: Iterable[tuple[Any, ...]], out: Path, overwrite: bool) -> dict[str, Any]:
    """Write a copy of a retriever with weights, and probabilities of being used, that fit the clicks on its answers.

    Args:
        version: of the model, in the answers.
        rows: of `mrs_suggest.serving.clicks.read_answers`.

    Returns:
        What the copy's record says of it: `clicks`, `sessions`, `version`; `theta`, `places`, `gain` and `interval` if
        the weights are new; `trigger` with `answers`, `offset`, `slope`, `gain` and `interval` if the probabilities
        are.

    Raises:
        InputError: the model has no ranker, there are too few clicks, or neither is better.
    """
    sets, rows = ResponseSets(model), list(rows)
    path = model / RANKER_FOLDER / SETTINGS
    if not path.is_file():
        own = "own replies replaced it; pass a model without them"
        advice = own if OwnRankers(model, sets.indexes) else "train it with --ranker true"
        raise InputError(f"{model}: it has no ranker, so there are no weights to tune; {advice}.")
    settings = json.loads(path.read_text(encoding="utf-8"))
    languages = settings["weights"].keys() - set(OwnRankers(model, sets.indexes))
    names = [name for name in settings["names"] if any(settings["weights"][one].get(name) for one in languages)]
    choices = choices_of(rows, version, languages, names)
    if len(choices.chosen) < LEAST_CLICKS:
        raise InputError(
            f"{model}: {len(choices.chosen)} clicks on its answers (version {version}), expected {LEAST_CLICKS} or "
            "more; collect more, or name the model that gave the answers."
        )
    found = {"clicks": len(choices.chosen), "sessions": len(set(choices.sessions)), "version": version}
    mean, interval = gain(choices)
    if interval.ends is not None and interval.ends[0] > 0:
        theta, places = fit(choices)
        by_name = dict(zip(names, theta.tolist(), strict=True))
        found |= {"theta": by_name, "places": places.tolist(), "gain": mean, "interval": interval.ends}
        settings["weights"] |= {code: tuned_weights(settings["weights"][code], by_name) for code in languages}
    outcomes = outcomes_of(rows, version, languages)
    if "trigger" in settings and (fitted := _better_calibration(*outcomes)):
        found["trigger"] = fitted
        old = Trigger.from_json(settings["trigger"])
        settings["trigger"] = calibrated(old, fitted["offset"], fitted["slope"]).as_json()
    if not found.keys() & {"theta", "trigger"}:
        told = "no interval" if interval.ends is None else "[{:+.4f}, {:+.4f}]".format(*interval.ends)
        raise InputError(
            f"{model}: the clicks show no better weights: held-out choices become more probable by {mean:+.4f} {told} "
            "in natural logarithms; nothing was written."
        )
    with copied(model, (), out, overwrite) as partial:
        atomic_write(partial / RANKER_FOLDER / SETTINGS, json.dumps(settings, indent=2, sort_keys=True) + "\n")
        write_record(partial, {**sets.record, "clicks": found}, family_of(sets.record))
    return found
