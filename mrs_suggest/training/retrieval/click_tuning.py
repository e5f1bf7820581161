"""Weights of a ranker fitted on clicks (`mrs feedback tune`).

A person who chooses one of the shown suggestions chooses suggestion i with a probability proportional to
`exp(theta . parts[i] + b[position of i])`: a conditional logit (McFadden 1974, "Conditional Logit Analysis of
Qualitative Choice Behavior"). Its terms `b` account for what people click because of its position. The parts are those
of the scores by which the suggestions were shown, times their weights; the new weights are the old ones times `theta`.
Whether they are better is measured on sessions that they were not fitted on.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mrs_metrics.interval import Interval
from mrs_metrics.significance import bootstrap_interval
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.models.saved.families import family_of, write_record
from mrs_suggest.models.starting_points import RANKER_FOLDER
from mrs_suggest.suggest.own_replies.sets import ResponseSets, copied
from mrs_suggest.suggest.ranking.own_ranker import OwnRankers
from mrs_suggest.suggest.ranking.rankers import SETTINGS

LEAST_CLICKS = 200  # ours: on fewer simulated clicks, most fits were refused
FOLDS = 5  # of sessions; ours
_STRENGTH = 1.0  # of the pull of each part's theta towards their mean, in squared units of it; ours
Array = NDArray[np.float64]


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

    def some(self, rows: NDArray[np.bool_]) -> Choices:
        """The answers that are True in `rows` (n,)."""
        return Choices(
            self.parts[rows], self.chosen[rows], [one for one, kept in zip(self.sessions, rows, strict=True) if kept]
        )


def choices_of(rows: Iterable[tuple[Any, ...]], version: str, languages: Iterable[str], names: list[str]) -> Choices:
    """The choices among several suggestions in the rows of `mrs_suggest.serving.clicks.read_answers`.

    Args:
        version: of the model whose answers count.
        languages: that count.
        names: p parts.
    """
    found, known = list[tuple[list[dict[str, float]], int, str]](), set(languages)
    for answer, session, _, own, language, *_, chosen, _, _, parts in rows:
        scored = json.loads(parts)
        if own == version and language in known and chosen and len(scored) > 1 and all(scored):
            found.append((scored, chosen - 1, session or answer))
    width = max((len(scored) for scored, *_ in found), default=0)
    table = np.full((len(found), width, len(names)), np.nan)
    for number, (scored, *_) in enumerate(found):
        table[number, : len(scored)] = [[one.get(name, 0.0) for name in names] for one in scored]
    return Choices(table, np.array([chosen for _, chosen, _ in found], np.int64), [one for *_, one in found])


def log_likelihood(choices: Choices, theta: Array, places: Array) -> Array:
    """(n,) natural log-probabilities of the chosen suggestions; theta (p,) at least 0, places (k,) of any size."""
    return _value_and_slopes(choices, theta, places)[0]


def fit(choices: Choices, scale_only: bool = False) -> tuple[Array, Array]:
    """Fit theta (p,) and the terms of the places (k,), the first of which is 0.

    Args:
        scale_only: one theta for all parts, as if the old weights were right.
    """
    from scipy.optimize import minimize

    parts, width = choices.parts.shape[2], choices.parts.shape[1]

    def loss(values: Array) -> tuple[float, Array]:
        theta, places = values[:parts], np.append(0.0, values[parts:])
        told, by_theta, by_place = _value_and_slopes(choices, theta, places)
        off = theta - theta.mean()
        slopes = -by_theta + 2 * _STRENGTH * off
        if scale_only:
            slopes = np.full(parts, slopes.mean())
        return float(-told.sum() + _STRENGTH * (off**2).sum()), np.concatenate([slopes, -by_place[1:]])

    start = np.concatenate([np.ones(parts), np.zeros(width - 1)])
    bounds = [(0.0, None)] * parts + [(None, None)] * (width - 1)
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds).x
    return found[:parts], np.append(0.0, found[parts:])


def _value_and_slopes(choices: Choices, theta: Array, places: Array) -> tuple[Array, Array, Array]:
    """(n,) log-probabilities of the chosen, and the slopes of their sum by theta (p,) and places (k,)."""
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


def gain(choices: Choices) -> tuple[float, Interval]:
    """By how much the new weights raise the log-probability of a choice of a session that they were not fitted on: the
    mean per choice, with a 95 % interval by session. The old weights get a scale and terms of places, too."""
    folds = np.array([zlib.crc32(session.encode()) % FOLDS for session in choices.sessions])
    better = np.zeros(len(folds))
    for fold in range(FOLDS):
        rest, held = choices.some(folds != fold), choices.some(folds == fold)
        if len(held.chosen) and len(rest.chosen):
            new, old = (log_likelihood(held, *fit(rest, scale_only)) for scale_only in (False, True))
            better[folds == fold] = new - old
    return float(better.mean()), bootstrap_interval(better, units=choices.sessions, shares=False)


def tuned_weights(weights: Mapping[str, float], theta: Mapping[str, float]) -> dict[str, float]:
    """The weights of a language times theta, with the sum that they had; unchanged if all would be 0."""
    found = {name: weight * theta.get(name, 1.0) for name, weight in weights.items()}
    total = sum(found.values())
    return {name: one * sum(weights.values()) / total for name, one in found.items()} if total else dict(weights)


def tune(model: Path, version: str, rows: Iterable[tuple[Any, ...]], out: Path, overwrite: bool) -> dict[str, Any]:
    """Write a copy of a retriever with weights that fit the clicks on its answers.

    Args:
        version: of the model, in the answers.
        rows: of `mrs_suggest.serving.clicks.read_answers`.

    Returns:
        What the copy's record says of it: `clicks`, `sessions`, `theta`, `places`, `gain`, `interval`.

    Raises:
        InputError: the model has no ranker, there are too few clicks, or the weights are not better.
    """
    sets = ResponseSets(model)
    path = model / RANKER_FOLDER / SETTINGS
    if not path.is_file():
        raise InputError(f"{model}: it has no ranker, so there are no weights to tune; train it with --ranker true.")
    settings = json.loads(path.read_text(encoding="utf-8"))
    languages = settings["weights"].keys() - set(OwnRankers(model, sets.indexes))
    names = [name for name in settings["names"] if any(settings["weights"][one].get(name) for one in languages)]
    choices = choices_of(rows, version, languages, names)
    if len(choices.chosen) < LEAST_CLICKS:
        raise InputError(
            f"{model}: {len(choices.chosen)} clicks on its answers (version {version}), expected {LEAST_CLICKS} or "
            "more; collect more, or name the model that gave the answers."
        )
    mean, interval = gain(choices)
    if interval.ends is None or interval.ends[0] <= 0:
        told = "no interval" if interval.ends is None else "[{:+.4f}, {:+.4f}]".format(*interval.ends)
        raise InputError(
            f"{model}: the clicks show no better weights: held-out choices become more probable by {mean:+.4f} {told} "
            "in natural logarithms; nothing was written."
        )
    theta, places = fit(choices)
    by_name = dict(zip(names, theta.tolist(), strict=True))
    found = {
        "clicks": len(choices.chosen), "sessions": len(set(choices.sessions)), "version": version, "theta": by_name,
        "places": places.tolist(), "gain": mean, "interval": interval.ends,
    }  # fmt: skip
    weights = {
        code: tuned_weights(row, by_name) if code in languages else row for code, row in settings["weights"].items()
    }
    with copied(model, (), out, overwrite) as partial:
        text = json.dumps({**settings, "weights": weights}, indent=2, sort_keys=True)
        atomic_write(partial / RANKER_FOLDER / SETTINGS, text + "\n")
        write_record(partial, {**sets.record, "clicks": found}, family_of(sets.record))
    return found
