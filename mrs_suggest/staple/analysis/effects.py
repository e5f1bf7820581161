"""`mrs staple effects`: which features of systems go with better scores (Tables 4 and 6 of Mayhew et al. 2020).

A linear mixed model of each prompt's precision, weighted recall and weighted F1: fixed effects for the features, random
intercepts for prompt, track and team (section 4.1). p values are of Student's t: features are of teams, so that a
feature has as many degrees of freedom as there are teams beyond the features and the intercept (a feature that changes
between the tracks of a team: as there are pairs of team and track beyond teams, tracks and such features). The normal
distribution, as in statsmodels, takes eleven teams for infinitely many.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import mrs_suggest.common
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, atomic_write
from mrs_suggest.common.report.pages import Block, Grid, Heading, Paragraph, as_markdown
from mrs_suggest.common.text.text import finite_json
from mrs_suggest.staple.analysis.effects_input import FeatureTable, Score
from mrs_suggest.staple.analysis.mixed_model import Matrix, fit_mixed
from mrs_suggest.staple.analysis.scored_systems import MEANS

MARKER = "effects.json"
INTERCEPT = "(Intercept)"
MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))  # as in Tables 4 and 6
NAMES = {"precision": "Precision", "weighted_recall": "W. Recall", "weighted_f1": "W. F1"}
FACTORS = ("prompt", "track", "team")
SAME = 1e-9  # differences of features that are rounding


@dataclass(frozen=True)
class Term:
    """A fixed effect.

    Attributes:
        interval: 95 %.
        freedom: degrees of freedom of its t.
    """

    estimate: float
    error: float
    p: float
    interval: tuple[float, float]
    freedom: int

    @property
    def mark(self) -> str:
        """`***` below .001, `**` below .01, `*` below .05, `.` below .1."""
        return next((mark for limit, mark in MARKS if self.p < limit), "")


@dataclass(frozen=True)
class Model:
    """The model of one kind of score.

    Attributes:
        terms: name -> fixed effect, the intercept first.
        deviations: factor -> standard deviation of its random intercepts.
        residual: standard deviation of what is left.
    """

    terms: dict[str, Term]
    deviations: dict[str, float]
    residual: float


@dataclass(frozen=True)
class Effects:
    """Models of the scores, and what they were fitted to.

    Attributes:
        models: kind of score -> its model.
        counts: of scores, systems, teams, tracks and prompts.
        notes: for the reader.
    """

    models: dict[str, Model]
    counts: dict[str, int]
    notes: Sequence[str]


@dataclass(frozen=True)
class _Design:
    """What is the same for all kinds of scores."""

    kept: Sequence[Score]
    x: Matrix
    levels: dict[str, list[int]]
    freedom: dict[str, int]


def analyse_effects(scores: Sequence[Score], table: FeatureTable, names: Sequence[str] | None = None) -> Effects:
    """Fit the models.

    Args:
        names: of the features; None: all of the table.

    Raises:
        InputError: an unknown feature, a system without scores, or features that cannot be told apart.
    """
    chosen = list(table.names if names is None else names)
    unknown = [name for name in chosen if name not in table.names]
    if unknown:
        raise InputError(f"--use: the table has no feature {unknown[0]!r}; it has {', '.join(table.names)}.")
    if len(set(chosen)) < len(chosen):
        raise InputError("--use: a feature is named twice; name each once.")
    kept, notes = _with_features(scores, table)
    design = _design(kept, table, chosen, notes)
    kinds = [kind for kind in MEANS if all(kind in score.scores for score in kept)]
    if not kinds:
        raise InputError(f"scores: no kind of score is in all files; expected {', '.join(MEANS)}.")
    models = {kind: _model(design, chosen, kind) for kind in kinds}
    for kind, model in models.items():
        none = [factor for factor, deviation in model.deviations.items() if deviation == 0]
        if none:
            notes.append(
                f"{NAMES[kind]}: no variation between {', '.join(f'{factor}s' for factor in none)} was found beyond "
                "chance (a singular fit), so that standard errors may be too small."
            )
    counts = {"scores": len(kept), "systems": len({score.system for score in kept})}
    counts |= {f"{factor}s": len(set(design.levels[factor])) for factor in ("team", "track", "prompt")}
    return Effects(models, counts, notes)


def _with_features(scores: Sequence[Score], table: FeatureTable) -> tuple[list[Score], list[str]]:
    """The scores of systems that the table has, and a note about those that it has not."""
    kept = [score for score in scores if table.of(score.system, score.track) is not None]
    if not kept:
        there = ", ".join(sorted({score.system for score in scores}))[:200]
        raise InputError(f"--features: none of the scored systems is in the table; scored are {there}.")
    lacking = {system for system, _ in table.values} - {score.system for score in kept}
    if lacking:
        raise InputError(f"--features: there are no scores of {', '.join(sorted(lacking))}; add them, or drop its row.")
    left_out = sorted({score.system for score in scores} - {score.system for score in kept})
    return kept, [f"Left out, as the table of features has no row: {', '.join(left_out)}."] if left_out else []


def _design(kept: Sequence[Score], table: FeatureTable, chosen: Sequence[str], notes: list[str]) -> _Design:
    features = [table.of(score.system, score.track) or {} for score in kept]
    columns = np.array([[row[name] for name in chosen] for row in features])
    keys = {
        "prompt": [score.prompt for score in kept],
        "track": [score.track for score in kept],
        "team": [table.teams[score.system] for score in kept],
    }
    levels = {factor: _numbered(values) for factor, values in keys.items()}
    cells = sorted(set(zip(levels["team"], levels["track"], map(tuple, columns.tolist()), strict=True)))
    _require_identified(np.array([row for _, _, row in cells]), chosen)
    freedom = _freedom(cells, chosen)
    _require_teams(levels, chosen, freedom)
    if len(set(levels["track"])) == 1:
        notes.append("There is one track, so that the model has no effect of tracks.")
    return _Design(kept, np.column_stack([np.ones(len(kept)), columns]), levels, freedom)


def _numbered(values: Iterable[str]) -> list[int]:
    numbers: dict[str, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _require_identified(rows: Matrix, names: Sequence[str]) -> None:
    """Refuse features that the systems do not tell apart.

    Args:
        rows: (cells, features) of the pairs of team and track.
    """
    for place, name in enumerate(names):
        column = rows[:, place]
        if np.ptp(column) < SAME:
            have = "all systems have" if column[0] else "no system has"
            raise InputError(f"--features: {have} {name}, so its effect cannot be told; leave it out (--use).")
        for other, other_name in enumerate(names[:place]):
            if np.ptp(column - rows[:, other]) < SAME or np.ptp(column + rows[:, other]) < SAME:
                raise InputError(
                    f"--features: {name} and {other_name} tell the same systems apart, so their effects cannot be; "
                    "keep one (--use)."
                )
        before = np.column_stack([np.ones(len(rows)), rows[:, : place + 1]])
        if np.linalg.matrix_rank(before) < place + 2:
            raise InputError(
                f"--features: {name} follows from {', '.join(names[:place])}, so its effect cannot be told; leave one "
                "out (--use)."
            )


def _freedom(cells: Sequence[tuple[int, int, tuple[float, ...]]], names: Sequence[str]) -> dict[str, int]:
    """Degrees of freedom of each term."""
    teams = {team for team, _, _ in cells}
    tracks = {track for _, track, _ in cells}
    changing = {
        name
        for place, name in enumerate(names)
        if any(len({row[place] for own, _, row in cells if own == team}) > 1 for team in teams)
    }
    between = len(teams) - 1 - (len(names) - len(changing))
    within = len({(team, track) for team, track, _ in cells}) - len(teams) - len(tracks) + 1 - len(changing)
    return {INTERCEPT: between, **{name: within if name in changing else between for name in names}}


def _require_teams(levels: dict[str, list[int]], names: Sequence[str], freedom: dict[str, int]) -> None:
    teams = len(set(levels["team"]))
    short = next((name for name, free in freedom.items() if free < 1), None)
    if short is not None:
        raise InputError(
            f"--features: {teams} teams are too few for {len(names)} features; expected {len(names) + 2} or more, or "
            "fewer features (--use)."
        )
    if len(set(levels["prompt"])) == len(levels["prompt"]):
        raise InputError("scores: no prompt has scores of two systems, so what it adds cannot be told from the rest.")


def _model(design: _Design, names: Sequence[str], kind: str) -> Model:
    from scipy.stats import t

    y = np.array([score.scores[kind] for score in design.kept])
    if not np.ptp(y):
        raise InputError(f"scores: all have the same {kind}, so there is nothing to explain.")
    factors = {factor: design.levels[factor] for factor in FACTORS if len(set(design.levels[factor])) > 1}
    fit = fit_mixed(y, design.x, factors)
    terms = {}
    for name, estimate, error in zip([INTERCEPT, *names], fit.estimates, fit.errors, strict=True):
        free = design.freedom[name]
        reach = float(t.ppf(0.975, free)) * float(error)
        p = float(2 * t.sf(abs(estimate) / error, free)) if error else 0.0
        interval = (float(estimate) - reach, float(estimate) + reach)
        terms[name] = Term(float(estimate), float(error), p, interval, free)
    return Model(terms, {factor: fit.deviations[factor] for factor in factors}, fit.residual)


def effects_rows(effects: Effects) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table like Table 4: estimate, mark, standard error and p of each term."""
    header = ["", *(NAMES[kind] for kind in effects.models)]
    models = list(effects.models.values())
    rows = [
        [name, *(_term(model.terms[name], signed=name != INTERCEPT) for model in models)] for name in models[0].terms
    ]
    for factor in models[0].deviations:
        rows.append([f"{factor.capitalize()} ID (st. dev.)", *(f"±{one.deviations[factor]:.3f}" for one in models)])
    rows.append(["residual (st. dev.)", *(f"±{model.residual:.3f}" for model in models)])
    return header, rows


def _term(term: Term, signed: bool) -> str:
    value = f"{term.estimate:+.3f}" if signed else f"{term.estimate:.3f}"
    return f"{value} {term.mark}".rstrip() + f" (se {term.error:.3f}, p {term.p:.3f})"


def effects_notes(effects: Effects) -> list[str]:
    """How the table is read."""
    counts = ", ".join(f"{count:,} {what if count > 1 else what[:-1]}" for what, count in effects.counts.items())
    free = sorted({term.freedom for model in effects.models.values() for term in model.terms.values()})
    return [
        f"Linear mixed model (REML) of {counts}; random intercepts for {', '.join(FACTORS)}.",
        f"Marks: *** p < .001, ** p < .01, * p < .05, . p < .1; p of t with {' and '.join(map(str, free))} degrees of "
        "freedom, which the number of teams limits.",
        *effects.notes,
    ]


def effects_json(effects: Effects, names: Sequence[str]) -> dict[str, Any]:
    """The models for programs."""
    return {
        "version": mrs_suggest.common.__version__,
        "counts": effects.counts,
        "features": list(names),
        "models": {
            kind: {
                "fixed": {
                    name: {
                        "estimate": term.estimate, "standard_error": term.error, "p": term.p, "mark": term.mark,
                        "interval": list(term.interval), "degrees_of_freedom": term.freedom,
                    }
                    for name, term in model.terms.items()
                },
                "random": model.deviations,
                "residual": model.residual,
            }
            for kind, model in effects.models.items()
        },
        "notes": list(effects.notes),
    }  # fmt: skip


def write_effects(effects: Effects, out: Path, overwrite: bool = False) -> None:
    """Write the folder; it appears whole or not at all.

    Raises:
        InputError: the folder exists or cannot be written.
    """
    names = [name for name in next(iter(effects.models.values())).terms if name != INTERCEPT]
    blocks: list[Block] = [Heading("Effects of features", 1), Grid(*effects_rows(effects))]
    blocks += [Paragraph(note) for note in effects_notes(effects)]
    with atomic_folder(out, overwrite, MARKER) as folder:
        atomic_write(folder / "effects.md", as_markdown(blocks))
        content = finite_json(effects_json(effects, names))
        atomic_write(folder / MARKER, json.dumps(content, ensure_ascii=False, indent=2, allow_nan=False) + "\n")
