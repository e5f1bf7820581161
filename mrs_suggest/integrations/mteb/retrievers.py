"""Trained retrievers, and any sentence-transformers model in a folder, as models of MTEB."""

from collections.abc import MutableMapping
from functools import partial
from pathlib import Path
from typing import Any

from mrs_suggest.common.errors import InputError, extra_needed
from mrs_suggest.common.hub.baselines import resolve_model
from mrs_suggest.common.io.files import content_hash
from mrs_suggest.models.retrieval.dual_encoder import load_dual_encoder

with extra_needed("mteb", "mteb", "a model of MTEB"):
    from mteb.models.model_meta import ModelMeta
    from mteb.models.sentence_transformer_wrapper import SentenceTransformerEncoderWrapper

_LOCAL = "local"  # MTEB names a model ORGANISATION/NAME


def load_retriever(name: str) -> SentenceTransformerEncoderWrapper:
    """A retriever for `mteb.evaluate`: messages by its message encoder, replies by its reply encoder, with its prompts.

    Args:
        name: the folder of a run or of a sentence-transformers model, a baseline such as `everyday-retriever`, or a hub
            id.

    Raises:
        InputError: no such model, or it encodes no texts: MTEB's tasks rank by vectors, so a generator has no figures
            there.
    """
    folder = _folder(name)
    model = _wrapped(folder)
    model.mteb_model_meta = _meta(name, folder)
    return model


def register_retriever(name: str, registry: MutableMapping[str, ModelMeta]) -> None:
    """Put a retriever into MTEB's registry of models, under the name that was passed; arguments as `load_retriever`."""
    registry[name] = _meta(name, _folder(name))


def _folder(name: str) -> Path:
    folder = resolve_model(name)
    if not (folder / "modules.json").is_file():
        raise InputError(
            f"{name}: no sentence-transformers model (no modules.json); MTEB ranks by vectors, so pass a retriever's "
            "folder."
        )
    return folder


def _wrapped(folder: Path, *_: object, device: str | None = None, **__: object) -> SentenceTransformerEncoderWrapper:
    model = load_dual_encoder(folder)
    return SentenceTransformerEncoderWrapper(model.to(device) if device else model)


def _meta(name: str, folder: Path) -> ModelMeta:
    """The model's metadata for MTEB; its revision depends on the weights, so old results are not reused."""
    about: dict[str, Any] = {
        "loader": partial(_wrapped, folder),
        "name": f"{_LOCAL}/{Path(name).name}" if Path(name).is_dir() or "/" not in name else name,
        "revision": content_hash([folder / "modules.json", *folder.rglob("*.safetensors")]),
        "framework": ["Sentence Transformers", "PyTorch"],
        "open_weights": True,
    }
    return ModelMeta.create_empty(overwrites=about)
