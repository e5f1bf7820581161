"""The pretrained baselines by name (`baselines.yaml`, validated), and the folder that a model name stands for."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from typing import Any

import yaml

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import require_language

LIST = "baselines.yaml"
ORGANISATION = "MRS_ORGANISATION"
FAMILIES = ("retrieval", "generation")
TRAINING_SETTINGS = ("monolingual", "zero_shot", "mt", "multilingual")  # Zhang et al. 2021, section 3.2
EMBEDDED = "mrs_suggest.suggest", "embedded"  # package and folder of the baselines that ship with it


@dataclass(frozen=True)
class Baseline:
    """One pretrained model. `metrics` are pooled figures on the test split of `data`."""

    name: str
    repo_id: str
    revision: str
    family: str
    setting: str
    languages: tuple[str, ...]
    data: str
    metrics: dict[str, float]
    embedded: bool = False

    @property
    def folder(self) -> Path:
        """The folder of an embedded baseline."""
        return Path(str(resources.files(EMBEDDED[0]).joinpath(EMBEDDED[1]).joinpath(self.name)))


def read_baselines(text: str | None = None, where: str = LIST) -> dict[str, Baseline]:
    """Read and check the list.

    Raises:
        InputError: an unknown or missing field, or a value that is not allowed; the sentence names it.
    """
    if text is None:
        text = resources.files(__package__ or "mrs_suggest.common.hub").joinpath(LIST).read_text(encoding="utf-8")
    try:
        content = yaml.safe_load(text)
        organisation, entries = content["organisation"], dict(content["baselines"])
    except (yaml.YAMLError, KeyError, TypeError, ValueError):
        raise InputError(f"{where}: expected YAML with `organisation` and `baselines`.") from None
    organisation = os.environ.get(ORGANISATION, organisation)
    return {name: _baseline(name, organisation, entry, f"{where}, {name}") for name, entry in entries.items()}


def resolve_model(name: str, revision: str | None = None, *, force: bool = False, verify: bool = False) -> Path:
    """The folder of a model: a local one, a baseline (embedded, or downloaded), or a hub id, also `ORG/NAME@REVISION`.

    Args:
        revision: of the hub repository; default: the baseline's own, or main.
        force: download again, even if the files are cached.
        verify: compare cached files with the hashes that the hub gives.

    Raises:
        InputError: the name is none of these, or a revision was given for something that is not a hub repository.
    """
    if Path(name).is_dir():
        require_no_revision(name, revision, "is a folder")
        return Path(name)
    from mrs_suggest.common.hub import hub

    given = name
    name, revision = hub.split_revision(name, revision)
    baselines = read_baselines()
    if name in baselines:
        baseline = baselines[name]
        if baseline.embedded:
            require_no_revision(name, revision, "is in the package")
            return baseline.folder
        return hub.download(baseline.repo_id, revision or baseline.revision, force=force, verify=verify)
    if hub.is_repo_id(name):
        return hub.download(name, revision, force=force, verify=verify)
    raise InputError(f"{given}: no such folder, and no baseline of that name; `mrs models list` shows the baselines.")


def starting_point(name: str) -> str:
    """What a run starts from under a name: the folder or the repository of a baseline, else the name itself."""
    baseline = None if Path(name).is_dir() else read_baselines().get(name)
    if baseline is None:
        return name
    return str(baseline.folder) if baseline.embedded else baseline.repo_id


def require_no_revision(name: str, revision: str | None, what: str) -> None:
    """Refuse a revision for a model or data set that is not on the hub.

    Raises:
        InputError: one was given.
    """
    if revision is not None:
        raise InputError(f"{name}: {what}, and only hub repositories have revisions ({revision}); leave it out.")


def _baseline(name: str, organisation: str, entry: Any, where: str) -> Baseline:
    if not isinstance(entry, dict):
        raise InputError(f"{where}: expected a mapping of fields.")
    known = {field.name for field in fields(Baseline)} - {"name", "repo_id"}
    unknown, missing = set(entry) - known, known - {"embedded"} - set(entry)
    if unknown or missing:
        problem = f"unknown field {min(unknown)!r}" if unknown else f"field {min(missing)!r} is missing"
        raise InputError(f"{where}: {problem}; the fields are {', '.join(sorted(known))}.")
    for field, allowed in (("family", FAMILIES), ("setting", TRAINING_SETTINGS)):
        if entry[field] not in allowed:
            raise InputError(f"{where}: {field} must be one of {', '.join(allowed)}, found {entry[field]!r}.")
    metrics = entry["metrics"]
    if not isinstance(metrics, dict) or not all(isinstance(value, float) for value in metrics.values()):
        raise InputError(f"{where}: metrics must map names to figures, found {metrics!r}.")
    for field, kind in (("revision", str), ("data", str), ("embedded", bool)):
        if field in entry and not isinstance(entry[field], kind):
            raise InputError(f"{where}: {field} must be a {kind.__name__}, found {entry[field]!r}.")
    if not isinstance(entry["languages"], list) or not entry["languages"]:
        raise InputError(f"{where}: languages must be a list of codes, found {entry['languages']!r}.")
    for code in entry["languages"]:
        require_language(code, where)
    return Baseline(**{**entry, "name": name, "repo_id": f"{organisation}/{name}", "languages": (*entry["languages"],)})
