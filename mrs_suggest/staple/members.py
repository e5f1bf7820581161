"""The runs that translate: their names, folders and facts."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.common.hub.hub import split_revision
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.common.io.manifest import RECORD
from mrs_suggest.models.adapters import base_of, has_adapter
from mrs_suggest.models.checkpoint_loading import from_pretrained
from mrs_suggest.models.generation.reply_writer import GeneratorSettings, read_generator_settings
from mrs_suggest.models.model_folder import open_model_folder
from mrs_suggest.models.starting_points import GENERATOR

NAME = re.compile(r"[\w.+-]+")
# What a run's translations depend on; of adapters, the record names the base model and its revision.
DECIDING = ("*.safetensors", GENERATOR, "tokenizer.json", "adapter.json", "spiece.model", "sentencepiece.bpe.model")


@dataclass(frozen=True)
class Run:
    """The folder of a generator.

    Attributes:
        name: of its member, and of what is computed with it.
        given: how the user named it: a folder or a hub id.
    """

    name: str
    given: str
    folder: Path

    @cached_property
    def settings(self) -> GeneratorSettings:
        return read_generator_settings(self.folder)

    @cached_property
    def config(self) -> Any:
        """The configuration of the model, or of the one that an adapter changes."""
        base, revision = base_of(self.folder) if has_adapter(self.folder) else (str(self.folder), None)
        return from_pretrained("AutoConfig", base, revision)

    @property
    def target(self) -> str | None:
        """The language that the run writes, whatever the text's is, as a model to English; None if it is asked for."""
        target: str | None = getattr(getattr(self.settings, "direction", None), "target", None)
        return target

    @cached_property
    def facts(self) -> dict[str, Any]:
        """Name, hash of weights and settings, revision on the hub, and training seed of the run."""
        files = [path for pattern in DECIDING for path in self.folder.glob(pattern)]
        facts: dict[str, Any] = {"run": self.given, "content_hash": content_hash(files)}
        if self.folder.parent.name == "snapshots":  # the hub's cache names them by the commit
            facts["revision"] = self.folder.name
        record = self.folder / RECORD
        if record.is_file():
            facts["training_seed"] = json.loads(record.read_text(encoding="utf-8")).get("seed")
        return facts


def open_runs(given: Sequence[str]) -> list[Run]:
    """The runs as the command line names them: RUN, or NAME=RUN; no two may have the same name."""
    runs = [open_run(text) for text in given]
    names = [run.name for run in runs]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{name}: two members have this name; give them different names, as in one=RUN other=RUN.")
    return runs


def written_language(runs: Sequence[Run], language: str) -> str:
    """The language that all runs write for texts in, or to, a language; InputError if they write several."""
    found = {run.target or language: run for run in runs}
    if len(found) > 1:
        each = ", ".join(f"{run.given} writes {code}" for code, run in found.items())
        raise InputError(f"RUN: all must write one language; {each}.")
    return next(iter(found))


def open_run(text: str) -> Run:
    """One run, by default named by its folder, without its weights; InputError if it is no generator, or damaged."""
    name, sign, rest = text.partition("=")
    if not sign or Path(text).exists():
        name, rest = "", text
    folder = resolve_model(rest)
    if not (folder / GENERATOR).is_file():
        raise InputError(
            f"{rest}: is not the folder of a generator (no {GENERATOR}); pass a run of `mrs train generation`."
        )
    open_model_folder(folder)
    if not name:
        name = Path(rest).resolve().name if Path(rest).is_dir() else split_revision(rest)[0].rpartition("/")[2]
    if not NAME.fullmatch(name):
        raise InputError(f"{text}: {name!r} is not a member name (letters, digits and . _ + -); pass NAME={rest}.")
    return Run(name, rest, folder)
