"""What `mrs staple effects` reads: scores of every prompt, and what the systems have in common."""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.staple.analysis.scored_systems import MEANS

# The features of the task's teams, Table 5. For Table 4, the paper does not say which team used which corpus. The cell
# of nagoudi and backtranslation cannot be read in our copy; section 4.3 counts three such teams, so it is ticked.
TEAMS = "staple-teams"
KEYS = ("system", "team")  # columns that name a system
NOT_SCORES = "expected a report.json of `mrs staple report`, or a CSV with system, track, prompt and scores"


class Score(NamedTuple):
    """The scores of a system's translations of a prompt, by the names of `MEANS`; a file may lack some."""

    system: str
    track: str
    prompt: str
    scores: dict[str, float]


@dataclass(frozen=True)
class FeatureTable:
    """The features of systems.

    Attributes:
        names: of the features, in the order of the file.
        values: (system, track) -> feature -> value; the track is "" in a table without tracks.
        teams: system -> its team; the system itself in a table without teams.
        by_track: whether the table has a row for each track.
    """

    names: Sequence[str]
    values: dict[tuple[str, str], dict[str, float]]
    teams: dict[str, str]
    by_track: bool

    def of(self, system: str, track: str) -> dict[str, float] | None:
        return self.values.get((system, track if self.by_track else ""))


def read_scores(paths: Sequence[Path]) -> list[Score]:
    """The scores in reports, in CSV files, and in what `mrs score --save-scores` writes.

    Raises:
        InputError: a file is missing or broken, or two of them give a prompt of a system different scores.
    """
    found: dict[tuple[str, str, str], tuple[Score, Path]] = {}
    for path in paths:
        for score in _scores_of(path):
            key = (score.system, score.track, score.prompt)
            other, where = found.setdefault(key, (score, path))
            if other.scores != score.scores:
                also = f"{where} has others" if where != path else "the file has others"
                raise InputError(f"{path}: scores of {score.system}, prompt {score.prompt:.60}, but {also}; keep one.")
    return [score for score, _ in found.values()]


def _scores_of(path: Path) -> Iterator[Score]:
    if path.suffix == ".csv":
        yield from _from_csv(path)
        return
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        found = list(_from_report(content) if isinstance(content["scores"], dict) else _from_saved(content))
    except OSError as error:
        raise InputError(f"{path}: cannot read the file ({error.strerror}); {NOT_SCORES}.") from None
    except json.JSONDecodeError:
        raise InputError(f"{path}: not JSON; {NOT_SCORES}.") from None
    except (KeyError, TypeError, ValueError, AttributeError):
        found = []
    if not found:
        raise InputError(f"{path}: has no scores of prompts; {NOT_SCORES}.")
    yield from found


def _from_report(content: dict[str, Any]) -> Iterator[Score]:
    scores = content["scores"]
    for system, columns in scores["systems"].items():
        rows = zip(*(columns[kind] for kind in MEANS), strict=True)
        for prompt, row in zip(scores["prompts"], rows, strict=True):
            yield Score(system, str(scores["track"]), str(prompt), dict(zip(MEANS, map(_finite, row), strict=True)))


def _from_saved(content: dict[str, Any]) -> Iterator[Score]:
    """Of `mrs score --metric weighted_f1 --save-scores`: prompts are known by their place, the track by their hash."""
    if content["metric"] != "weighted_f1":
        raise ValueError(content["metric"])
    system, track = Path(str(content["system"])).stem, str(content["examples"])[:12]
    for place, value in enumerate(content["scores"], 1):
        if value is not None:
            yield Score(system, track, f"{track}/{place}", {"weighted_f1": _finite(value)})


def _from_csv(path: Path) -> Iterator[Score]:
    rows = _csv_rows(path)
    header = next(rows)[1]
    kinds = [kind for kind in MEANS if kind in header]
    if not {"system", "prompt"} <= set(header) or not kinds:
        raise InputError(f"{path}: expected the columns system, track, prompt and one or more of {', '.join(MEANS)}.")
    number = 1
    for number, cells in rows:
        row = dict(zip(header, cells, strict=True))
        scores = {kind: _number(path, number, kind, row[kind]) for kind in kinds}
        if not row["system"] or not row["prompt"]:
            raise InputError(f"{path}, line {number}: has no system or no prompt.")
        yield Score(row["system"], row.get("track", ""), row["prompt"], scores)
    if number == 1:
        raise InputError(f"{path}: has no scores below its header.")


def read_features(source: str) -> FeatureTable:
    """A table of features: `system` or `team`, optionally `track`, then a number for each feature.

    Args:
        source: a CSV file, or `staple-teams` for Table 5 of the paper.

    Raises:
        InputError: the file is missing or broken, has no feature, or a system twice.
    """
    path = Path(source)
    if source == TEAMS and not path.exists():
        with resources.as_file(resources.files("mrs_suggest.staple.analysis").joinpath("staple_teams.csv")) as file:
            return _features(file, source)
    return _features(path, source)


def _features(path: Path, source: str) -> FeatureTable:
    rows = _csv_rows(path)
    header = next(rows)[1]
    key = next((name for name in KEYS if name in header), "")
    names = [name for name in header if name not in (*KEYS, "track")]
    if not key or not names:
        raise InputError(f"{source}: expected a column system or team, then one for each feature; found {header}.")
    values: dict[tuple[str, str], dict[str, float]] = {}
    teams: dict[str, str] = {}
    for number, cells in rows:
        row = dict(zip(header, cells, strict=True))
        place = (row[key], row.get("track", ""))
        if place in values:
            raise InputError(f"{source}, line {number}: {' '.join(place).strip()} has a row already.")
        values[place] = {name: _number(path, number, name, row[name]) for name in names}
        team = row.get("team") or row[key]
        if teams.setdefault(row[key], team) != team:
            raise InputError(f"{source}, line {number}: {row[key]} is of the team {teams[row[key]]} already.")
    if not values:
        raise InputError(f"{source}: has no system below its header.")
    return FeatureTable(names, values, teams, "track" in header)


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """(line, cells) of a CSV file, its header first; every row has the header's cells."""
    lines: Iterable[str] = (line for _, line in read_lines(path))
    header: list[str] = []
    for number, cells in enumerate(csv.reader(lines), 1):
        cells = [cell.strip() for cell in cells]
        if not header:
            header = cells
            if len(set(header)) < len(header) or not all(header):
                raise InputError(f"{path}, line 1: expected a header of different names, found {header}.")
        elif not any(cells):
            continue
        elif len(cells) != len(header):
            raise InputError(f"{path}, line {number}: has {len(cells)} cells, expected {len(header)} as in the header.")
        yield number, cells
    if not header:
        raise InputError(f"{path}: the file is empty; expected a CSV file with a header.")


def _number(path: Path, line: int, name: str, text: str) -> float:
    try:
        return _finite(text)
    except ValueError:
        raise InputError(f"{path}, line {line}: {name} is {text!r:.40}, expected a number.") from None


def _finite(value: Any) -> float:
    number = float(value)
    if not math.isfinite(number):
        raise ValueError(value)
    return number
