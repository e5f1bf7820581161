"""The model families that can be trained here, and how to find the family of a run's folder."""

from __future__ import annotations

from pathlib import Path
from types import MappingProxyType

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import is_repo_id
from mrs_suggest.common.hub.publication import Publication
from mrs_suggest.models.adapters import base_of
from mrs_suggest.suggest.language_detector import DETECTOR
from mrs_suggest.training.choice.families import MULTIPLE_CHOICE
from mrs_suggest.training.export.allowlist import (
    ADAPTER_FILES,
    ADAPTER_FOLDER,
    CARD,
    CURVES,
    GUARD,
    INDEXES,
    RECORD,
    STAYS,
)
from mrs_suggest.training.export.card import Record
from mrs_suggest.training.export.family import Family, with_weights
from mrs_suggest.training.pretraining.families import PRETRAINING
from mrs_suggest.training.record import as_json, of_adapter, read_record
from mrs_suggest.training.reply.families import FAMILIES as REPLY_FAMILIES
from mrs_suggest.training.staple.families import STAPLE_GENERATION
from mrs_suggest.training.text_generation.families import TASK_GENERATION
from mrs_suggest.training.understanding.families import UNDERSTANDING

OTHERS = (TASK_GENERATION, STAPLE_GENERATION, MULTIPLE_CHOICE, PRETRAINING, UNDERSTANDING)
FAMILIES = MappingProxyType({family.name: family for family in (*REPLY_FAMILIES, *OTHERS)})


def family_of(record: Record, where: Path | str = RECORD) -> Family:
    """The family that a record names.

    Raises:
        InputError: the family is unknown.
    """
    name = str(record.get("trainer"))
    if name not in FAMILIES:
        raise InputError(
            f"{where}: expected the trainer to be one of {', '.join(FAMILIES)}, found {name!r}; train the model again."
        )
    return FAMILIES[name]


def model_card(record: Record, repo_id: str | None = None, adapter: bool = False) -> str:
    """README.md of a trained model, from its record and nothing else.

    Args:
        repo_id: where the model will be found; None before it is published.
        adapter: whether it is the card of the run's adapters only.
    """
    return family_of(record).render(record, repo_id, adapter)


def publication(folder: Path, record: Record, repo_id: str, card: str) -> Publication:
    """What is published of a run, by the family that its record names.

    Raises:
        InputError: the record's family is unknown, or the folder has no weights.
    """
    return family_of(record, folder / RECORD).publication(folder, repo_id, card)


def adapter_publication(folder: Path, repo_id: str, card: str) -> Publication:
    """What is published of a run's adapters: their files, the response indexes or generator settings, the language
    detector, and the card.

    Raises:
        InputError: the run trained no adapters, or their base is not on the hub, where others could find it.
    """
    own = folder / ADAPTER_FOLDER
    base, _ = base_of(own)
    if Path(base).exists() or not is_repo_id(base):
        raise InputError(f"{own}: the base {base} is a local folder; publish it, and train with its hub id.")
    others = Publication("model", repo_id, folder, (*INDEXES, *GUARD, DETECTOR, CURVES)).files()
    record = as_json(of_adapter(read_record(folder), list(others))).encode()
    instead = {**others, RECORD: record, CARD: card.encode()}
    return with_weights(Publication("model", repo_id, own, ADAPTER_FILES, STAYS, instead=instead))
