"""The generator of a ranker in a run: its source, its copy in the run's folder, and a cache of its replies."""

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.adapters import fingerprint, has_adapter
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.model_folder import open_model_folder
from mrs_suggest.models.saved.record import GENERATOR_FILES
from mrs_suggest.models.starting_points import GENERATOR, GENERATOR_FOLDER
from mrs_suggest.suggest.ranking.second_stage import write_replies
from mrs_suggest.training.record import base_license


def generator_folder(name: str) -> Path:
    """The folder of the generator that `--generator` names.

    Raises:
        InputError: it does not exist, is another model or adapters, or its files are damaged.
    """
    try:
        path = resolve_model(name)
        if has_adapter(path):
            raise InputError(
                f"{name}: holds adapters; pass the folder of their run, where they are merged into their base."
            )
        if not (path / GENERATOR).is_file():
            raise InputError(
                f"{name}: no trained generator; pass what `mrs train generation` or `mrs train causal` wrote."
            )
        open_model_folder(path)
    except InputError as error:
        raise InputError(f"--generator {error}") from None
    return path


def require_language_of(name: str, languages: Sequence[str]) -> None:
    """Refuse a generator that lacks all of the languages.

    Raises:
        InputError: it lacks all of them, or does not name them.
    """
    path = generator_folder(name) / GENERATOR
    try:
        known = [str(code) for code in json.loads(path.read_text(encoding="utf-8"))["languages"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"--generator {name}: no usable {GENERATOR} ({error}); {again(path.parent)}.") from None
    if not set(known) & set(languages):
        raise InputError(f"--generator {name}: writes {' '.join(known)}, and the run has {' '.join(languages)}.")


def require_outside(name: str, run: Path) -> None:
    """Refuse, by an InputError, a generator within the folder of the run, which replaces what is there."""
    path = Path(name)
    if path.is_dir() and path.resolve().is_relative_to(run.resolve()):
        raise InputError(f"--generator {name}: lies in --output_dir, which the run replaces; copy it elsewhere first.")


@dataclass
class RankerGenerator:
    """A generator on a run's device, as `mrs_suggest.suggest.ranking.second_stage.ReplyGenerator`.

    Its replies are cached: the systems of a comparison, and the stages of tuning, ask for the same.

    Attributes:
        facts: for the record: `id`, `revision` if it comes from the hub, `fingerprint` of its weights and, if its card
            states it, `license`.
    """

    path: Path
    generator: Generator
    facts: dict[str, Any]

    def __post_init__(self) -> None:
        self._written: dict[tuple[str, int, str], list[str]] = {}
        self._scored: dict[tuple[str, str, tuple[str, ...]], NDArray[np.float32]] = {}

    @classmethod
    def open(cls, name: str, device: torch.device) -> Self:
        """Load the generator that `--generator` names."""
        path = generator_folder(name)
        generator = Generator.load(path)
        facts = {"id": name, "fingerprint": fingerprint(generator.model.state_dict())}
        if Path(name).is_absolute():  # the record is published, and the folders above name people or machines
            facts["id"] = f".../{Path(name).name}"
        if path.parent.name == "snapshots":  # of the hub's cache, by commit
            facts["revision"] = path.name
        if license_name := base_license(str(path)):
            facts["license"] = license_name
        generator.model.to(device)  # type: ignore[arg-type]
        return cls(path, generator, facts)

    @property
    def languages(self) -> list[str]:
        return self.generator.languages

    def copy_to(self, run: Path) -> None:
        """Copy the model into the folder of a run, without its card, record and predictions."""
        target = run / GENERATOR_FOLDER
        shutil.rmtree(target, ignore_errors=True)
        target.mkdir(parents=True)
        for path in sorted({path for pattern in GENERATOR_FILES for path in self.path.glob(pattern)}):
            shutil.copyfile(path, target / path.name)

    def load(self) -> None:
        """It is loaded."""

    def write(self, messages: Sequence[str], language: str, count: int) -> list[list[str]]:
        new = [message for message in dict.fromkeys(messages) if (language, count, message) not in self._written]
        for message, replies in zip(new, write_replies(self.generator, new, language, count), strict=True):
            self._written[language, count, message] = replies
        return [self._written[language, count, message] for message in messages]

    def log_probs(self, message: str, replies: Sequence[str], language: str) -> NDArray[np.float32]:
        asked = language, message, tuple(replies)
        if asked not in self._scored:
            self._scored[asked] = self.generator.log_probs(message, replies, language)
        return self._scored[asked]
