"""The pretrained baselines by name (`baselines.yaml`), and the folder of a model that is given by name."""

import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.packaged import read_packaged

LIST = "baselines.yaml"
SHIPPED = "everyday-retriever"  # the name of the model in the package
ENDPOINT = "openai:"  # begins the name of a model behind a server (`mrs_suggest.suggest.language_model`)
ORGANISATION = "MRS_ORGANISATION"
FAMILIES = ("retrieval", "generation")


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
        return Path(str(resources.files("mrs_suggest.suggest").joinpath("embedded", self.name)))


def read_baselines() -> dict[str, Baseline]:
    """The list, with the organisation that the environment names."""
    content = read_packaged("mrs_suggest.common.hub", LIST)
    organisation = os.environ.get(ORGANISATION, content["organisation"])
    return {
        name: Baseline(name, f"{organisation}/{name}", **{**entry, "languages": tuple(entry["languages"])})
        for name, entry in content["baselines"].items()
    }


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
    if hub.is_repo_id(name) and not Path(name).parent.is_dir():  # a mistyped folder is no hub id
        return hub.download(name, revision, force=force, verify=verify)
    raise InputError(f"{given}: no such folder, and no baseline of that name; `mrs models list` shows the baselines.")


def starting_point(name: str) -> str:
    """The folder or repository of a baseline, from which a run starts; for any other name, the name itself."""
    baseline = None if Path(name).is_dir() else read_baselines().get(name)
    if baseline is None:
        return name
    return str(baseline.folder) if baseline.embedded else baseline.repo_id


def require_no_revision(name: str, revision: str | None, what: str) -> None:
    """Refuse, by an InputError, a revision for a model or data set that is not on the hub."""
    if revision is not None:
        raise InputError(f"{name}: {what}, and only hub repositories have revisions ({revision}); leave it out.")
