"""The runs of a table: the command of each, and whether it is finished, interrupted or missing."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from mrs_suggest.common import __version__
from mrs_suggest.common.arguments import words_of
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.common.io.storage import read_object
from mrs_suggest.models.saved.record import RECORD, Record
from mrs_suggest.models.starting_points import TINY as UNTRAINED
from mrs_suggest.reproduce.table import DATA, EMBEDDED, FULL, TINY, CellSpec, Table, references, with_data
from mrs_suggest.training.record import LAST, whole_checkpoints

DONE, INTERRUPTED, FAILED, CHANGED, MISSING = "finished", "interrupted", "failed before", "changed", "missing"
STATE = "cell.json"
MEASURE = "mrs_suggest.reproduce.measure"


@dataclass(frozen=True)
class Setup:
    """How the cells of a table are run.

    Attributes:
        scale: one of the table's scales.
        model: a folder, or a hub id (`ORG/NAME` or `ORG/NAME@REVISION`), that stands for the table's base model.
        data: name -> a prepared folder, or where it will be; None where nothing was given.
    """

    table: Table
    output: Path
    configs: Path
    scale: str = FULL
    model: Path | None = None
    data: Mapping[str, Path | None] = field(default_factory=dict)
    checkpoints: tuple[Path, ...] = ()

    @property
    def tiny(self) -> bool:
        """Whether all models are tiny, and data may be generated."""
        return self.scale == TINY


@dataclass(frozen=True)
class Cell:
    """One run: a cell of the table with one seed."""

    id: str
    seed: int
    spec: CellSpec

    @property
    def name(self) -> str:
        """`coffee/42`"""
        return f"{self.id}/{self.seed}"

    def needs(self) -> list[str]:
        """Names of the cells that must be finished first."""
        return list(dict.fromkeys(self._named(reference) for _, reference in references(self.spec.options)))

    def _named(self, reference: str) -> str:
        return reference if "/" in reference else f"{reference}/{self.seed}"

    def options(self, setup: Setup) -> dict[str, Any]:
        """The options that stand on the command line, over those of the configuration."""
        changed = {**self._of_scale(setup), **self.spec.chosen(setup.scale)}
        options = {key: value for key, value in changed.items() if value is not None}
        chosen = {**self.config(setup), **self.spec.options, **options}
        for key, reference in references(self.spec.options):
            options[key] = str(run_of(self._named(reference), setup))
        base = setup.table.at(setup.scale).base_model or setup.table.base_model
        models = (base, *(setup.table.other_models if setup.tiny else ()))
        for key, value in chosen.items():
            if isinstance(value, str) and value in models and (setup.tiny or setup.model):
                options[key] = UNTRAINED if setup.tiny else str(setup.model)
        if self.spec.data != EMBEDDED:
            options["data"] = _folder(self.spec.data, setup)
        options = with_data(options, lambda name: _folder(name, setup))
        return {**options, "seed": self.seed, "output_dir": str(run_of(self.name, setup))}

    def config(self, setup: Setup) -> dict[str, Any]:
        """The options of the configuration; a scale may take some out that its models cannot have."""
        config = read_config(setup.configs / self.spec.config) if self.spec.config else {}
        changed = {**self._of_scale(setup), **self.spec.scales.get(setup.scale, {})}
        return {key: value for key, value in config.items() if changed.get(key, value) is not None}

    def _of_scale(self, setup: Setup) -> dict[str, Any]:
        return setup.table.at(setup.scale).options if self.spec.config else {}

    def config_path(self, setup: Setup) -> Path:
        """The configuration that the command names; that of another scale is written before it starts."""
        full = setup.scale == FULL
        return setup.configs / self.spec.config if full else place_of(self.name, setup) / f"{setup.scale}.yaml"

    def command(self, setup: Setup, resume: bool = False) -> list[str]:
        """The command line; it starts with `mrs`, or with `python` for a cell that trains nothing."""
        trainer = self.spec.trainer or setup.table.trainer
        if not self.spec.config:
            return ["python", "-m", MEASURE, trainer, *words_of(self.options(setup))]
        words = ["mrs", "train", trainer, "--config", str(self.config_path(setup)), *words_of(self.options(setup))]
        return [*words, "--overwrite", "true", *(["--resume_from_checkpoint", LAST[0]] if resume else [])]


def _folder(data: str, setup: Setup) -> str:
    return str(setup.data.get(data) or f"DATA:{data}")


def place_of(name: str, setup: Setup) -> Path:
    return setup.output / "cells" / name.replace("/", "-")


def run_of(name: str, setup: Setup) -> Path:
    return place_of(name, setup) / "run"


def all_cells(table: Table) -> dict[str, Cell]:
    """Every cell by name, those that others wait for first."""
    every = [Cell(id, seed, spec) for id, spec in table.cells.items() for seed in spec.seeds]
    found = {cell.name: cell for cell in every}
    ordered: dict[str, Cell] = {}

    def add(name: str, above: tuple[str, ...] = ()) -> None:
        if name in above:
            raise InputError(f"{table.name}: the cells {' and '.join((*above, name))} wait for each other.")
        for other in found[name].needs():
            add(other, (*above, name))
        ordered.setdefault(name, found[name])

    for name in found:
        add(name)
    return ordered


def chosen_cells(table: Table, patterns: list[str]) -> dict[str, Cell]:
    """The cells that patterns (`coffee/42`, `persona-*`) name, and their dependencies; InputError if one names none."""
    every = all_cells(table)
    wanted: set[str] = set() if patterns else set(every)
    for pattern in patterns:
        named = {name for name, cell in every.items() if fnmatchcase(name, pattern) or fnmatchcase(cell.id, pattern)}
        if not named:
            raise InputError(f"--only {pattern}: no such cell; the table has {', '.join(table.cells)}.")
        wanted |= named
    for name in reversed(every):
        if name in wanted:
            wanted.update(every[name].needs())
    return {name: cell for name, cell in every.items() if name in wanted}


def read_config(path: Path) -> dict[str, Any]:
    """The options of a trainer's configuration; InputError if there is no such file."""
    if not path.is_file():
        raise InputError(f"{path}: no such configuration; the table names it.")
    return dict(yaml.safe_load(path.read_text(encoding="utf-8")))


class States:
    """Which cells are finished, by the identity of each: options, data, models and version."""

    def __init__(self, setup: Setup, cells: Mapping[str, Cell]) -> None:
        self._setup, self._cells = setup, cells
        models = [*([setup.model] if setup.model else []), *setup.checkpoints]
        self._models = {str(folder): _fingerprint_of_model(folder) for folder in models}
        self._fingerprint = cache(lambda name: data_fingerprint(setup.data[name]) if name in setup.data else None)
        self._identities: dict[str, Record] = {}

    def identity(self, name: str) -> Record:
        """Everything that must be equal for a finished run to be kept; stored next to the run."""
        if name not in self._identities:
            cell = self._cells[name]
            own, *others = cell.spec.data_names(self._setup.scale)
            held = {
                "data": self._fingerprint(own) if own in self._setup.data else own,
                **({"other data": {other: self._fingerprint(other) for other in others}} if others else {}),
                "needs": {other: self.identity(other) for other in cell.needs()},
                "version": __version__,
            }
            self._identities[name] = json.loads(json.dumps({**self.work(name), **held}))
        return self._identities[name]

    def work(self, name: str) -> Record:
        """The part of an identity on which times depend: trainer and options. Its data are not read."""
        cell, setup = self._cells[name], self._setup
        options = {**cell.config(setup), **cell.options(setup)}
        options = {key: value for key, value in options.items() if key not in ("output_dir", "overwrite", "data")}
        options |= {key: f"@{reference}" for key, reference in references(cell.spec.options)}
        chosen = cell.spec.chosen(setup.scale).items()
        options |= {key: value for key, value in chosen if DATA.search(str(value))}
        options = {
            key: self._models.get(value, value) if isinstance(value, str) else value for key, value in options.items()
        }
        return {"trainer": cell.spec.trainer or setup.table.trainer, "options": options}

    def without_command(self, name: str) -> str:
        """Why no command runs the cell at this scale, whatever the data; empty if one does."""
        spec, setup = self._cells[name].spec, self._setup
        if spec.config and not (setup.configs / spec.config).is_file():
            return f"the configuration {spec.config} does not exist yet"
        trainers = setup.table.at(setup.scale).trainers
        if trainers and (spec.trainer or setup.table.trainer) not in trainers:
            return f"the scale {setup.scale} has only cells of {' and '.join(trainers)}"
        return ""

    def unavailable(self, name: str) -> str:
        """Why the cell cannot be run; empty if it can."""
        if reason := self.without_command(name):
            return reason
        cell = self._cells[name]
        for what, about in self._lacks(name).items():
            return f"no {'data' if what in self._setup.table.data else what}: {about}"
        data = cell.spec.data
        folder = self._setup.data.get(data)
        needed = cell.spec.needs_configs if folder and folder.is_dir() else []  # else it is still to be prepared
        lacking = [config for config in needed if not (folder / "data" / config).is_dir()] if folder else []
        if lacking:
            files = self._setup.table.data[data].files
            more = f" (put {lacking[0]}.tsv next to the source's other files)" if files else ""
            return f"the data {data} have no {' '.join(lacking)}{more}"
        return next((f"needs {one}: {why}" for one in cell.needs() if (why := self.unavailable(one))), "")

    def lacking(self, name: str) -> dict[str, str]:
        """The data sets and checkpoints that a cell, or one that it needs, lacks; each with where it comes from."""
        found = self._lacks(name)
        for other in self._cells[name].needs():
            found |= self.lacking(other)
        return found

    def awaited(self, name: str) -> list[str]:
        """The cells that must be finished first and are not."""
        return [one for one in self._cells[name].needs() if self.state(one) != DONE]

    def _lacks(self, name: str) -> dict[str, str]:
        cell, setup, found = self._cells[name], self._setup, {}
        for data in self._lacking_data(name):
            source = setup.table.data[data]
            held = f", with {' '.join(source.files)}" if source.files else ""
            found[data] = f"pass --data {data}=FOLDER{held} ({source.about})"
        model = str({**cell.config(setup), **cell.options(setup)}.get("model_name_or_path"))
        about = setup.table.checkpoints.get(model)
        return {**found, model: about} if about and not Path(model).is_dir() else found

    def commit(self, name: str) -> str:
        """The commit of a run; `unknown` where it was made outside a checkout."""
        record: Record = json.loads((run_of(name, self._setup) / RECORD).read_text(encoding="utf-8"))
        return str(record.get("commit") or "unknown")

    def finished(self, name: str) -> bool:
        """Whether the cell's run is kept; without its data, a run is accepted as it is."""
        if self._lacking_data(name):
            return (run_of(name, self._setup) / RECORD).is_file()
        return self.state(name) == DONE

    def _lacking_data(self, name: str) -> list[str]:
        names = self._cells[name].spec.data_names(self._setup.scale)
        return [data for data in names if data != EMBEDDED and self._setup.data.get(data) is None]

    def state(self, name: str) -> str:
        """One of `DONE`, `INTERRUPTED`, `FAILED`, `CHANGED` (with what differs) and `MISSING`."""
        place, run = place_of(name, self._setup), run_of(name, self._setup)
        written = read_object(place / STATE)
        if written is None:
            return MISSING
        differing = list(_differing(written.get("identity", {}), self.identity(name)))
        if differing:
            return f"{CHANGED}: {', '.join(differing)}"
        if (run / RECORD).is_file():
            return DONE
        if whole_checkpoints(run):
            return INTERRUPTED
        return FAILED if written.get("code") else MISSING


def _differing(before: Record, now: Record, above: str = "") -> Iterator[str]:
    for key in {**before, **now}:
        one, other = before.get(key), now.get(key)
        if isinstance(one, dict) and isinstance(other, dict):
            yield from _differing(one, other, f"{above}{key} " if key not in ("options", "needs") else above)
        elif one != other:
            yield f"{above}{key} {one} before, {other} now"


def is_prepared(folder: Path) -> bool:
    """Whether a folder holds a prepared data set; a folder `data` is not enough, since XCOPA's sources have one."""
    return (folder / "report.json").is_file() or any((folder / "data").glob("*/*.parquet"))


def data_fingerprint(folder: Path | None) -> str | None:
    """Hash of the contents of a prepared folder, or of the files of another one."""
    if folder is None:
        return None
    prepared = not folder.exists() or is_prepared(folder)
    found = (folder / "data").rglob("*.parquet") if prepared else folder.rglob("*")
    return content_hash(one for one in found if one.is_file())


def _fingerprint_of_model(folder: Path) -> str:
    """Hash of a model's weights, configuration and tokenizer; a hub id is its own."""
    if not folder.is_dir():
        return str(folder)
    found = (one for one in folder.rglob("*") if one.is_file())
    files = [one for one in found if one.suffix in (".safetensors", ".json", ".model")]
    if not files:
        raise InputError(f"{folder}: expected a model folder with config.json and safetensors.")
    return content_hash(files)
