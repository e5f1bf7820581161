"""`mrs staple effects`: features of systems that go with better scores (Tables 4 and 6 of Mayhew et al. 2020).

A linear mixed model of each prompt's precision, weighted recall and weighted F1: fixed effects for the features, random
intercepts for prompt, track and team (section 4.1). p values are of Student's t: features are of teams, so that a
feature has as many degrees of freedom as there are teams beyond the features and the intercept (a feature that changes
between the tracks of a team: as there are pairs of team and track beyond teams, tracks and such features). The normal
distribution, as in statsmodels, takes eleven teams for infinitely many.
"""

import json
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import mrs_suggest.common
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder, atomic_write
from mrs_suggest.common.report.pages import Block, Grid, Heading, Paragraph, as_markdown
from mrs_suggest.common.text.text import finite_json
from mrs_suggest.staple.analysis.mixed_model import fit_mixed
from mrs_suggest.staple.analysis.scored_systems import MEANS

# The features of the task's teams, Table 5. Table 4 and section 4.1 do not give each team's corpora. The cell
# of nagoudi and backtranslation cannot be read in our copy; section 4.3 counts three such teams, so it is ticked.
TEAMS = "staple-teams"
MARKER = "effects.json"
INTERCEPT = "(Intercept)"
MARKS = ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, "."))  # as in Tables 4 and 6
NAMES = {"precision": "Precision", "weighted_recall": "W. Recall", "weighted_f1": "W. F1"}
FACTORS = ("prompt", "track", "team")
KEY = ["system", "track", "prompt"]  # of a score
NOT_SCORES = "expected a report.json of `mrs staple report`, or a CSV with system, track, prompt and scores"


class Term(NamedTuple):
    """A fixed effect; `mark` is `***` below p = .001, `**` below .01, `*` below .05, `.` below .1."""

    estimate: float
    standard_error: float
    p: float
    mark: str
    interval: list[float]  # 95 %
    degrees_of_freedom: int


class Model(NamedTuple):
    """The model of one kind of score.

    Attributes:
        fixed: name -> fixed effect, the intercept first.
        random: factor -> standard deviation of its random intercepts.
        residual: standard deviation of the residuals.
    """

    fixed: dict[str, Term]
    random: dict[str, float]
    residual: float


class Effects(NamedTuple):
    """Models by kind of score; counts of scores, systems, teams, tracks and prompts; notes for the reader."""

    models: dict[str, Model]
    counts: dict[str, int]
    notes: Sequence[str]


def read_scores(paths: Sequence[Path]) -> pd.DataFrame:
    """The scores in reports, in CSV files, and in what `mrs score --save-scores` writes.

    Returns:
        The columns of `KEY` and of `MEANS`, a row for each system and prompt; NaN where a file lacks a kind of score.

    Raises:
        InputError: a file is missing or broken, or a prompt of a system has two different scores.
    """
    found = pd.concat([_scores_of(path) for path in paths], ignore_index=True).drop_duplicates()
    for system, track, prompt in found.loc[found.duplicated(KEY), KEY].itertuples(index=False):
        where = " ".join(filter(None, (system, track)))
        raise InputError(f"scores: prompt {prompt:.60} of {where} has two different scores; keep one file of them.")
    return found


def _scores_of(path: Path) -> pd.DataFrame:
    if path.suffix == ".csv":
        table = _csv(path)
        kinds = [kind for kind in MEANS if kind in table]
        if not {"system", "prompt"} <= set(table) or not kinds:
            expected = f"system, track, prompt and one or more of {', '.join(MEANS)}"
            raise InputError(f"{path}: expected the columns {expected}.")
        if (table[["system", "prompt"]] == "").any(axis=None):
            raise InputError(f"{path}: a row has no system or no prompt.")
        return _numbers(table.assign(track=table.get("track", "")), kinds, path)[[*KEY, *kinds]]
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        table = _from_report(content) if isinstance(content["scores"], dict) else _from_saved(content)
        if np.isfinite(table[table.columns.intersection(MEANS)].to_numpy(float)).all() and len(table):
            return table
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}); {NOT_SCORES}.") from None
    except json.JSONDecodeError:
        raise InputError(f"{path}: not JSON; {NOT_SCORES}.") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        pass
    raise InputError(f"{path}: has no scores of prompts; {NOT_SCORES}.")


def _from_report(content: dict[str, Any]) -> pd.DataFrame:
    scores = content["scores"]
    same = {"track": str(scores["track"]), "prompt": [str(prompt) for prompt in scores["prompts"]]}
    tables = [
        pd.DataFrame({"system": system, **same, **{kind: columns[kind] for kind in MEANS}})
        for system, columns in scores["systems"].items()
    ]
    return pd.concat(tables, ignore_index=True)


def _from_saved(content: dict[str, Any]) -> pd.DataFrame:
    """Of `mrs score --metric weighted_f1 --save-scores`: prompts are known by their place, the track by their hash."""
    if content["metric"] != "weighted_f1":
        raise ValueError(content["metric"])
    track = str(content["examples"])[:12]
    rows = {f"{track}/{place}": value for place, value in enumerate(content["scores"], 1) if value is not None}
    system = Path(str(content["system"])).stem
    return pd.DataFrame({"system": system, "track": track, "prompt": list(rows), "weighted_f1": list(rows.values())})


def read_features(source: str) -> pd.DataFrame:
    """A table of features: the columns system and team, perhaps track, then a number for each feature.

    Args:
        source: a CSV file, whose systems or teams may be left out, or `staple-teams` for Table 5 of the paper.

    Raises:
        InputError: the file is missing or broken, has no feature, or a system twice.
    """
    path = Path(source)
    if source == TEAMS and not path.exists():
        with resources.as_file(resources.files("mrs_suggest.staple.analysis").joinpath("staple_teams.csv")) as file:
            return read_features(str(file))
    table = _csv(path)
    names = [name for name in table if name not in ("system", "team", "track")]
    key = next((name for name in ("system", "team") if name in table), "")
    if not key or not names:
        raise InputError(f"{source}: expected a column system or team, then one for each feature; found {[*table]}.")
    team = table["team"].where(table["team"] != "", table[key]) if "team" in table else table[key]
    table = _numbers(table.assign(system=table[key], team=team), names, path)
    places = [name for name in ("system", "track") if name in table]
    for row in table.index[table.duplicated(places)]:
        raise InputError(f"{source}, line {row + 2}: {' '.join(table.loc[row, places])} has a row already.")
    several = table.groupby("system")["team"].nunique()
    if (several > 1).any():
        raise InputError(f"{source}: {several.idxmax()} is of several teams; expected one.")
    return table[[*places, "team", *names]]


def _csv(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_csv(path, dtype=str, keep_default_na=False, encoding="utf-8-sig", index_col=False)
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}).") from None
    except ValueError as error:
        raise InputError(f"{path}: not a CSV file with a header ({str(error).strip()}).") from None
    if table.empty:
        raise InputError(f"{path}: has no rows below its header.")
    table.columns = table.columns.str.strip()
    return table.fillna("").apply(lambda column: column.str.strip())


def _numbers(table: pd.DataFrame, names: Sequence[str], path: Path) -> pd.DataFrame:
    """The table with these columns as numbers."""
    numbers = table[names].apply(pd.to_numeric, errors="coerce").astype(float)
    for row, column in np.argwhere(~np.isfinite(numbers.to_numpy())):
        name = names[column]
        raise InputError(f"{path}, line {row + 2}: {name} is {table[name][row]!r:.40}, expected a number.")
    return table.assign(**{name: numbers[name] for name in names})


def analyse_effects(scores: pd.DataFrame, table: pd.DataFrame, names: Sequence[str] | None = None) -> Effects:
    """Fit the models.

    Raises:
        InputError: an unknown feature, a system without scores, or features that cannot be distinguished.
    """
    known = [name for name in table if name not in (*KEY, "team")]
    chosen = list(dict.fromkeys(known if names is None else names))
    if unknown := [name for name in chosen if name not in known]:
        raise InputError(f"--use: the table has no feature {unknown[0]!r}; it has {', '.join(known)}.")
    kept = scores.merge(table, on=[name for name in ("system", "track") if name in table])
    left_out = ", ".join(sorted({*scores["system"]} - {*kept["system"]}))
    if not len(kept):
        raise InputError(f"--features: none of the scored systems is in the table; scored are {left_out[:200]}.")
    if lacking := sorted({*table["system"]} - {*kept["system"]}):
        raise InputError(f"--features: scores are missing for {', '.join(lacking)}; add them, or drop its row.")
    kinds = [kind for kind in MEANS if kind in kept and kept[kind].notna().all()]
    if not kinds:
        raise InputError(f"scores: no kind of score is in all files; expected {', '.join(MEANS)}.")
    notes = [f"Left out, as the table of features has no row: {left_out}."] if left_out else []
    freedom = _freedom(kept, chosen)
    if kept["track"].nunique() == 1:
        notes.append("There is one track, so that the model has no effect of tracks.")
    models = {kind: _model(kept, kind, freedom) for kind in kinds}
    for kind, model in models.items():
        if none := [f"{factor}s" for factor, deviation in model.random.items() if deviation == 0]:
            notes.append(
                f"{NAMES[kind]}: no variation between {', '.join(none)} was found beyond chance (a singular fit), so "
                "standard errors may be too small."
            )
    counts = {"scores": len(kept), **{f"{of}s": kept[of].nunique() for of in ("system", "team", "track", "prompt")}}
    return Effects(models, counts, notes)


def _freedom(kept: pd.DataFrame, names: Sequence[str]) -> dict[str, int]:
    """Degrees of freedom of each term; InputError if the effects of the features cannot be distinguished."""
    cells = kept[["team", "track", *names]].drop_duplicates()
    rows = cells[names].to_numpy(float)
    for place, name in enumerate(names):
        why = f"{name} follows from {', '.join(names[:place])}"
        if not np.ptp(rows[:, place]):
            why = f"{'all systems have' if rows[0, place] else 'no system has'} {name}"
        elif np.linalg.matrix_rank(np.column_stack([np.ones(len(rows)), rows[:, : place + 1]])) == place + 2:
            continue
        raise InputError(f"--features: {why}, so its effect cannot be estimated; leave one out (--use).")
    teams, changing = cells["team"].nunique(), cells.groupby("team")[names].nunique().gt(1).any()
    between = teams - 1 - (len(names) - int(changing.sum()))
    pairs = len(cells[["team", "track"]].drop_duplicates())
    within = pairs - teams - cells["track"].nunique() + 1 - int(changing.sum())
    freedom = {INTERCEPT: between, **{name: within if changing[name] else between for name in names}}
    if min(freedom.values()) < 1:
        raise InputError(
            f"--features: {teams} teams are too few for {len(names)} features; expected {len(names) + 2} or more, or "
            "fewer features (--use)."
        )
    if kept["prompt"].is_unique:
        raise InputError(
            "scores: no prompt has scores of two systems, so its effect cannot be separated from the residual."
        )
    return freedom


def _model(kept: pd.DataFrame, kind: str, freedom: dict[str, int]) -> Model:
    from scipy.stats import t

    y = kept[kind].to_numpy(float)
    if not np.ptp(y):
        raise InputError(f"scores: all have the same {kind}, so there is nothing to explain.")
    x = kept.assign(**{INTERCEPT: 1.0})[[*freedom]].to_numpy(float)
    factors = {factor: pd.factorize(kept[factor])[0] for factor in FACTORS if kept[factor].nunique() > 1}
    fit = fit_mixed(y, x, factors)
    fixed = {}
    for (name, free), estimate, error in zip(freedom.items(), fit.estimates.tolist(), fit.errors.tolist(), strict=True):
        reach = float(t.ppf(0.975, free)) * error
        p = float(2 * t.sf(abs(estimate) / error, free)) if error else 0.0
        mark = next((mark for limit, mark in MARKS if p < limit), "")
        fixed[name] = Term(estimate, error, p, mark, [estimate - reach, estimate + reach], free)
    return Model(fixed, {factor: fit.deviations[factor] for factor in factors}, fit.residual)


def effects_rows(effects: Effects) -> tuple[list[str], list[list[str]]]:
    """Header and rows of a table like Table 4: estimate, mark, standard error and p of each term."""
    models = list(effects.models.values())
    rows = [[name, *(_shown(name, model.fixed[name]) for model in models)] for name in models[0].fixed]
    for factor in models[0].random:
        rows.append([f"{factor.capitalize()} ID (st. dev.)", *(f"±{one.random[factor]:.3f}" for one in models)])
    rows.append(["residual (st. dev.)", *(f"±{model.residual:.3f}" for model in models)])
    return ["", *(NAMES[kind] for kind in effects.models)], rows


def _shown(name: str, term: Term) -> str:
    value = f"{term.estimate:.3f}" if name == INTERCEPT else f"{term.estimate:+.3f}"
    return f"{value} {term.mark}".rstrip() + f" (se {term.standard_error:.3f}, p {term.p:.3f})"


def effects_notes(effects: Effects) -> list[str]:
    counts = ", ".join(f"{count:,} {what if count > 1 else what[:-1]}" for what, count in effects.counts.items())
    free = sorted({term.degrees_of_freedom for model in effects.models.values() for term in model.fixed.values()})
    return [
        f"Linear mixed model (REML) of {counts}; random intercepts for {', '.join(FACTORS)}.",
        f"Marks: *** p < .001, ** p < .01, * p < .05, . p < .1; p of t with {' and '.join(map(str, free))} degrees of "
        "freedom, which the number of teams limits.",
        *effects.notes,
    ]


def write_effects(effects: Effects, out: Path, overwrite: bool = False) -> None:
    """Write `effects.md` and `effects.json` into a folder that appears whole; InputError if it is there already."""
    blocks: list[Block] = [Heading("Effects of features", 1), Grid(*effects_rows(effects))]
    blocks += [Paragraph(note) for note in effects_notes(effects)]
    models = {
        kind: {**model._asdict(), "fixed": {name: term._asdict() for name, term in model.fixed.items()}}
        for kind, model in effects.models.items()
    }
    content = {
        "version": mrs_suggest.common.__version__,
        "counts": effects.counts,
        "features": [name for name in next(iter(effects.models.values())).fixed if name != INTERCEPT],
        "models": models,
        "notes": list(effects.notes),
    }
    with atomic_folder(out, overwrite, MARKER) as folder:
        atomic_write(folder / "effects.md", as_markdown(blocks))
        text = json.dumps(finite_json(content), ensure_ascii=False, indent=2, allow_nan=False)
        atomic_write(folder / MARKER, text + "\n")
