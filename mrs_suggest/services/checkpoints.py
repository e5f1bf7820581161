"""Checkpoints that scorers and translators load: their files, their version and their licence."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import download, is_repo_id, split_revision
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.models.checkpoint_loading import stated_license

OPTION = "--translator"
CTRANSLATE2_MODEL = "model.bin"  # of a folder that `ct2-transformers-converter` wrote
SETTINGS = ("config.json", "generator.json", "generation_config.json")
TOKENIZER = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.json", "target_vocab.json",
    "source.spm", "target.spm", "sentencepiece.bpe.model", "sentencepiece.model", "spiece.model", "merges.txt",
)  # fmt: skip
CTRANSLATE2_FILES = (
    CTRANSLATE2_MODEL, "shared_vocabulary.json", "shared_vocabulary.txt", "source_vocabulary.json",
    "target_vocabulary.json", "source_vocabulary.txt", "target_vocabulary.txt",
)  # fmt: skip
WEIGHTS = ("*.safetensors", "*.safetensors.index.json")
README = "README.md"


@dataclass(frozen=True)
class Checkpoint:
    """The files of a scorer or a translator.

    Attributes:
        version: the commit of a repository, or a hash of the files.
        licence: from the front matter of its README; empty if it is not stated.
    """

    folder: Path
    name: str
    version: str
    licence: str

    @property
    def is_converted(self) -> bool:
        """Whether it is converted for CTranslate2."""
        return (self.folder / CTRANSLATE2_MODEL).is_file() and not any(self.folder.glob(WEIGHTS[0]))


def located(name: str, patterns: Iterable[str], *more: str) -> Checkpoint:
    """The checkpoint in a folder or downloaded from the hub; InputError without weights in safetensors."""
    folder = Path(name)
    if folder.is_dir():
        files = {file for pattern in patterns for file in folder.glob(pattern) if file.is_file()}
        return Checkpoint(folder, folder.resolve().name, content_hash(files), _licence(folder))
    repo_id, revision = split_revision(name)
    place = download(repo_id, revision, (*patterns, *more, README))
    return Checkpoint(place, repo_id, place.name, _licence(place))  # in the cache, the folder is named by the commit


def find_translator(name: str) -> Checkpoint:
    """The checkpoint in a folder or downloaded from the hub; InputError if its weights are missing or not
    safetensors."""
    if not Path(name).is_dir() and (Path(name).exists() or not is_repo_id(name)):
        raise InputError(
            f"{OPTION} {name}: no such folder; pass the folder of a translation model, a hub id such as "
            "Helsinki-NLP/opus-mt-en-de, or dictionary:FILE."
        )
    found = located(name, (*SETTINGS, *TOKENIZER, *CTRANSLATE2_FILES, *WEIGHTS))
    if not (found.folder / "config.json").is_file():
        raise InputError(f"{OPTION} {name}: has no config.json; pass a checkpoint of transformers or CTranslate2.")
    if not found.is_converted and not any(found.folder.glob(WEIGHTS[0])):
        raise InputError(
            f"{OPTION} {name}: its weights are not safetensors; convert them with `save_pretrained` of "
            "transformers, or pass a revision that has them."
        )
    return found


def _licence(folder: Path) -> str:
    licence = stated_license(folder / README) or ""
    return licence if isinstance(licence, str) else ", ".join(map(str, cast("list[object]", licence)))
