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
Cell = tuple[int, int, tuple[float, ...]]  # team, track, features


@dataclass(frozen=True)
class Term:
    """A fixed effect with its 95 % interval and the degrees of freedom of its t."""

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
        residual: standard deviation of the residuals.
    """

    terms: dict[str, Term]
    deviations: dict[str, float]
    residual: float


@dataclass(frozen=True)
class Effects:
    """Models by kind of score; counts of scores, systems, teams, tracks and prompts; notes for the reader."""

    models: dict[str, Model]
    counts: dict[str, int]
    notes: Sequence[str]


def analyse_effects(scores: Sequence[Score], table: FeatureTable, names: Sequence[str] | None = None) -> Effects:
    """Fit the models.

    Args:
        names: of the features; None: all of the table.

    Raises:
        InputError: an unknown feature, a system without scores, or features that cannot be distinguished.
    """
    chosen = list(dict.fromkeys(table.names if names is None else names))
    if unknown := [name for name in chosen if name not in table.names]:
        raise InputError(f"--use: the table has no feature {unknown[0]!r}; it has {', '.join(table.names)}.")
    kept = [score for score in scores if table.of(score.system, score.track) is not None]
    left_out = sorted({score.system for score in scores} - {score.system for score in kept})
    if not kept:
        raise InputError(
            f"--features: none of the scored systems is in the table; scored are {', '.join(left_out)[:200]}."
        )
    if lacking := {system for system, _ in table.values} - {score.system for score in kept}:
        raise InputError(f"--features: scores are missing of {', '.join(sorted(lacking))}; add them, or drop its row.")
    notes = [f"Left out, as the table of features has no row: {', '.join(left_out)}."] if left_out else []
    kinds = [kind for kind in MEANS if all(kind in score.scores for score in kept)]
    if not kinds:
        raise InputError(f"scores: no kind of score is in all files; expected {', '.join(MEANS)}.")
    features = [table.of(score.system, score.track) or {} for score in kept]
    columns = np.array([[row[name] for name in chosen] for row in features])
    levels = {
        "prompt": _numbered(score.prompt for score in kept),
        "track": _numbered(score.track for score in kept),
        "team": _numbered(table.teams[score.system] for score in kept),
    }
    cells = sorted(set(zip(levels["team"], levels["track"], map(tuple, columns.tolist()), strict=True)))
    freedom = _freedom(cells, chosen)
    for problem in _problems(cells, chosen, freedom, levels["prompt"]):
        raise InputError(problem)
    if len(set(levels["track"])) == 1:
        notes.append("There is one track, so that the model has no effect of tracks.")
    x = np.column_stack([np.ones(len(kept)), columns])
    models = {kind: _model(x, kept, levels, freedom, kind) for kind in kinds}
    for kind, model in models.items():
        if none := [f"{factor}s" for factor, deviation in model.deviations.items() if deviation == 0]:
            notes.append(
                f"{NAMES[kind]}: no variation between {', '.join(none)} was found beyond chance (a singular fit), so "
                "that standard errors may be too small."
            )
    counts = {"scores": len(kept), "systems": len({score.system for score in kept})}
    counts |= {f"{factor}s": len(set(levels[factor])) for factor in ("team", "track", "prompt")}
    return Effects(models, counts, notes)


def _numbered(values: Iterable[str]) -> list[int]:
    numbers: dict[str, int] = {}
    return [numbers.setdefault(value, len(numbers)) for value in values]


def _freedom(cells: Sequence[Cell], names: Sequence[str]) -> dict[str, int]:
    """Degrees of freedom of each term."""
    teams, tracks = {team for team, _, _ in cells}, {track for _, track, _ in cells}
    changing = {
        name
        for place, name in enumerate(names)
        if any(len({row[place] for own, _, row in cells if own == team}) > 1 for team in teams)
    }
    between = len(teams) - 1 - (len(names) - len(changing))
    within = len({(team, track) for team, track, _ in cells}) - len(teams) - len(tracks) + 1 - len(changing)
    return {INTERCEPT: between, **{name: within if name in changing else between for name in names}}


def _problems(
    cells: Sequence[Cell], names: Sequence[str], freedom: dict[str, int], prompts: Sequence[int]
) -> Iterable[str]:
    """Why the effects of the features cannot be distinguished, or the model cannot be fitted."""
    rows = np.array([row for _, _, row in cells])
    for place, name in enumerate(names):
        column = rows[:, place]
        if np.ptp(column) < SAME:
            have = "all systems have" if column[0] else "no system has"
            yield f"--features: {have} {name}, so its effect cannot be estimated; leave it out (--use)."
        for other, other_name in enumerate(names[:place]):
            if np.ptp(column - rows[:, other]) < SAME or np.ptp(column + rows[:, other]) < SAME:
                yield (
                    f"--features: {name} and {other_name} distinguish the same systems, so their effects cannot be "
                    "separated; keep one (--use)."
                )
        before = np.column_stack([np.ones(len(rows)), rows[:, : place + 1]])
        if np.linalg.matrix_rank(before) < place + 2:
            yield (
                f"--features: {name} follows from {', '.join(names[:place])}, so its effect cannot be estimated; leave "
                "one out (--use)."
            )
    if min(freedom.values()) < 1:
        teams = len({team for team, _, _ in cells})
        yield (
            f"--features: {teams} teams are too few for {len(names)} features; expected {len(names) + 2} or more, or "
            "fewer features (--use)."
        )
    if len(set(prompts)) == len(prompts):
        yield "scores: no prompt has scores of two systems, so its effect cannot be separated from the residual."


def _model(x: Matrix, kept: Sequence[Score], levels: dict[str, list[int]], freedom: dict[str, int], kind: str) -> Model:
    from scipy.stats import t

    y = np.array([score.scores[kind] for score in kept])
    if not np.ptp(y):
        raise InputError(f"scores: all have the same {kind}, so there is nothing to explain.")
    factors = {factor: levels[factor] for factor in FACTORS if len(set(levels[factor])) > 1}
    fit = fit_mixed(y, x, factors)
    terms = {}
    for (name, free), estimate, error in zip(freedom.items(), fit.estimates.tolist(), fit.errors.tolist(), strict=True):
        reach = float(t.ppf(0.975, free)) * error
        p = float(2 * t.sf(abs(estimate) / error, free)) if error else 0.0
        terms[name] = Term(estimate, error, p, (estimate - reach, estimate + reach), free)
    return Model(terms, {factor: fit.deviations[factor] for factor in factors}, fit.residual)


def effects_rows(effects: Effects) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table like Table 4: estimate, mark, standard error and p of each term."""
    models = list(effects.models.values())
    rows = [[name, *(_shown(name, model.terms[name]) for model in models)] for name in models[0].terms]
    for factor in models[0].deviations:
        rows.append([f"{factor.capitalize()} ID (st. dev.)", *(f"±{one.deviations[factor]:.3f}" for one in models)])
    rows.append(["residual (st. dev.)", *(f"±{model.residual:.3f}" for model in models)])
    return ["", *(NAMES[kind] for kind in effects.models)], rows


def _shown(name: str, term: Term) -> str:
    value = f"{term.estimate:.3f}" if name == INTERCEPT else f"{term.estimate:+.3f}"
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


def write_effects(effects: Effects, out: Path, overwrite: bool = False) -> None:
    """Write `effects.md` and `effects.json`; the folder appears whole or not at all.

    Raises:
        InputError: the folder exists or cannot be written.
    """
    blocks: list[Block] = [Heading("Effects of features", 1), Grid(*effects_rows(effects))]
    blocks += [Paragraph(note) for note in effects_notes(effects)]
    models = {
        kind: {
            "fixed": {name: _as_json(term) for name, term in model.terms.items()},
            "random": model.deviations,
            "residual": model.residual,
        }
        for kind, model in effects.models.items()
    }
    content = {
        "version": mrs_suggest.common.__version__,
        "counts": effects.counts,
        "features": [name for name in next(iter(effects.models.values())).terms if name != INTERCEPT],
        "models": models,
        "notes": list(effects.notes),
    }
    with atomic_folder(out, overwrite, MARKER) as folder:
        atomic_write(folder / "effects.md", as_markdown(blocks))
        text = json.dumps(finite_json(content), ensure_ascii=False, indent=2, allow_nan=False)
        atomic_write(folder / MARKER, text + "\n")


def _as_json(term: Term) -> dict[str, Any]:
    return {
        "estimate": term.estimate, "standard_error": term.error, "p": term.p, "mark": term.mark,
        "interval": list(term.interval), "degrees_of_freedom": term.freedom,
    }  # fmt: skip
