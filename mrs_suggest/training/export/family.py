"""A family of trained models: the files that they consist of, and their card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, Protocol

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.publication import Publication
from mrs_suggest.training.export.allowlist import CARD, EVERY_RUN, STAYS, TRANSFORMERS
from mrs_suggest.training.export.card import model_card


class RenderCard(Protocol):
    """Renders README.md from `run.json` and nothing else."""

    def __call__(self, record: dict[str, Any], repo_id: str | None = None, adapter: bool = False) -> str: ...


@dataclass(frozen=True)
class Family:
    """The models of one trainer.

    Attributes:
        name: `trainer` in `run.json`.
        files: patterns of the files that make up the model; see `mrs_suggest.training.export.allowlist`.
        card: renders the card of a model, or of a run's adapters only.
    """

    name: str
    files: tuple[str, ...] = TRANSFORMERS
    card: RenderCard = model_card

    def render(self, record: dict[str, Any], repo_id: str | None = None, adapter: bool = False) -> str:
        """The card of a run: the family's, or without the test's figures (`--skip_test`) the one of any task."""
        tested = not record["arguments"].get("skip_test")
        return (self.card if tested else model_card)(record, repo_id, adapter)

    def model_files(self, folder: Path) -> list[Path]:
        """The existing files of a run's model, sorted."""
        return sorted({path for pattern in self.files for path in folder.glob(pattern) if path.is_file()})

    def publication(self, folder: Path, repo_id: str, card: str) -> Publication:
        """What is published of a run: model, record, curves, and the card for that repository.

        Checkpoints are left out, and so are predictions, which hold the test split's texts.

        Raises:
            InputError: the folder has no weights.
        """
        allowed = (*EVERY_RUN, *self.files)
        return with_weights(Publication("model", repo_id, folder, allowed, STAYS, instead={CARD: card.encode()}))


def with_weights(what: Publication) -> Publication:
    """Refuse to publish a folder without a model.

    Raises:
        InputError: it has no weights.
    """
    if not any(PurePath(name).match("*model*.safetensors") for name in what.files()):
        raise InputError(f"{what.folder}: has no weights (*.safetensors); train the model again.")
    return what
