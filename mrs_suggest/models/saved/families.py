"""The model families that can be trained here: the files that their models consist of, and their cards.

A family registers itself in the `__init__.py` of its folder below `mrs_suggest/training/`; nothing else lists it.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from pkgutil import iter_modules
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import is_repo_id
from mrs_suggest.common.hub.publication import Publication
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.manifest import KEY as FILES
from mrs_suggest.common.io.manifest import list_files
from mrs_suggest.models.saved.record import (
    ADAPTER_FILES,
    ADAPTER_FOLDER,
    CARD,
    CURVES,
    EVERY_RUN,
    GUARD,
    INDEXES,
    RECORD,
    STAYS,
    TRANSFORMERS,
    Record,
    as_json,
    of_adapter,
    read_record,
)
from mrs_suggest.models.starting_points import DETECTOR

REGISTERING = "mrs_suggest.training"  # the package whose folders register themselves when they are imported
_REGISTERED: dict[str, Family] = {}


@dataclass(frozen=True)
class Family:
    """The models of one trainer.

    Attributes:
        files: patterns of the files that make up the model; see `mrs_suggest.models.saved.record`.
        card: MODULE:FUNCTION, which renders the card of a model, or of a run's adapters only, from `run.json` alone.
    """

    name: str
    files: tuple[str, ...] = TRANSFORMERS
    card: str = "mrs_suggest.models.saved.card:model_card"

    def render(self, record: dict[str, Any], repo_id: str | None = None, adapter: bool = False) -> str:
        """The card of a run: the family's, or without the test's figures (`--skip_test`) the one of any task."""
        tested = not record["arguments"].get("skip_test")
        module, _, function = (self.card if tested else Family.card).partition(":")
        return getattr(importlib.import_module(module), function)(record, repo_id, adapter)

    def model_files(self, folder: Path) -> list[Path]:
        """The existing files of a run's model, sorted."""
        return sorted({path for pattern in self.files for path in folder.glob(pattern) if path.is_file()})

    def publication(self, folder: Path, repo_id: str, card: str) -> Publication:
        """The publication of a run: model, record, curves, and the card for that repository.

        Checkpoints are left out, and so are predictions, which hold the test split's texts.

        Raises:
            InputError: the folder has no weights.
        """
        allowed = (*EVERY_RUN, *self.files)
        return with_weights(Publication("model", repo_id, folder, allowed, STAYS, instead={CARD: card.encode()}))


def with_weights(what: Publication) -> Publication:
    """Refuse, by an InputError, to publish a folder without weights."""
    if not any(PurePath(name).match("*model*.safetensors") for name in what.files()):
        raise InputError(f"{what.folder}: has no weights (*.safetensors); train the model again.")
    return what


def register(family: Family) -> Family:
    _REGISTERED[family.name] = family
    return family


@cache
def families() -> Mapping[str, Family]:
    """All families by name: those of the folders below `mrs_suggest/training/`."""
    for module in iter_modules(importlib.import_module(REGISTERING).__path__):
        if module.ispkg:
            importlib.import_module(f"{REGISTERING}.{module.name}")
    return dict(sorted(_REGISTERED.items()))


def family_of(record: Record, where: Path | str = RECORD) -> Family:
    """The family that a record names; InputError if it is unknown."""
    name, known = str(record.get("trainer")), families()
    if name not in known:
        raise InputError(
            f"{where}: expected the trainer to be one of {', '.join(known)}, found {name!r}; train the model again."
        )
    return known[name]


def write_record(folder: Path, record: Record, family: Family) -> None:
    """Write the card, and last `run.json` with the hashes of the model's files, which are there already."""
    record = {**record, FILES: list_files(folder, family.model_files(folder))}
    atomic_write(folder / CARD, family.render(record))
    atomic_write(folder / RECORD, as_json(record))


def model_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    """README.md of a trained model, from its record and nothing else.

    Args:
        repo_id: where the model will be found; None before it is published.
        adapter: whether it is the card of the run's adapters only.
    """
    return family_of(record).render(record, repo_id, adapter)


def publication(folder: Path, record: Record, repo_id: str, card: str) -> Publication:
    """The publication of a run, by the family that its record names.

    Raises:
        InputError: the record's family is unknown, or the folder has no weights.
    """
    return family_of(record, folder / RECORD).publication(folder, repo_id, card)


def adapter_publication(folder: Path, repo_id: str, card: str) -> Publication:
    """The publication of a run's adapters: their files, the response indexes or generator settings, the language
    detector, and the card.

    Raises:
        InputError: the run trained no adapters, or their base is not on the hub, where others could find it.
    """
    from mrs_suggest.models.adapters import base_of  # imports torch, which a base installation lacks

    own = folder / ADAPTER_FOLDER
    base, _ = base_of(own)
    if Path(base).exists() or not is_repo_id(base):
        raise InputError(f"{own}: the base {base} is a local folder; publish it, and train with its hub id.")
    others = Publication("model", repo_id, folder, (*INDEXES, *GUARD, DETECTOR, CURVES)).files()
    record = as_json(of_adapter(read_record(folder), list(others))).encode()
    instead = {**others, RECORD: record, CARD: card.encode()}
    return with_weights(Publication("model", repo_id, own, ADAPTER_FILES, STAYS, instead=instead))
