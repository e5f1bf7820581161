"""Folders of transformers with pytorch_model.bin, such as Unicoder's encoder (XLM-R) and xProphetNet, converted."""

import json
import shutil
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import download, is_repo_id, split_revision
from mrs_suggest.models.checkpoint_loading import from_pretrained
from mrs_suggest.models.generation.architectures import xprophetnet
from mrs_suggest.models.generation.architectures.fairseq import conversion, read_pickle, require_tensors
from mrs_suggest.models.generation.architectures.prophetnet import most_tokens

WEIGHTS = "pytorch_model*.bin"  # one, or shards
KEPT = ("*.json", "*.txt", "*.model", "README.md")  # tokenizer, settings, card


def convert_transformers(name: str, out: Path, overwrite: bool = False) -> Path:
    """Write a checkpoint with safetensors, a type that transformers 5 has, and its tokenizer, and return the folder.
    No code in the files is run. Weights keep their precision; tied ones are written once.

    Args:
        name: a folder, or `ORG/NAME[@REVISION]` on the hub; an InputError refuses one without usable weights.
    """
    folder = Path(name)
    if not folder.is_dir():
        if not is_repo_id(name):
            raise InputError(f"{name}: no such folder; pass one, or ORG/NAME@REVISION.")
        folder = download(*split_revision(name), (WEIGHTS, xprophetnet.VOCABULARY_FILE, *KEPT))
    files = sorted(folder.glob(WEIGHTS))
    if not files:
        raise InputError(f"{name}: expected pytorch_model.bin there; a folder with safetensors needs no conversion.")
    config = _config(folder / "config.json")
    with conversion(out, overwrite, folder) as made:
        weights: dict[str, Tensor] = {}
        for file in files:
            content = read_pickle(file, "the dictionary of weights")
            weights.update(require_tensors(content, file, "expected a dictionary of weights"))
        save_file(_distinct(weights), made / "model.safetensors", metadata={"format": "pt"})
        for path in {path for pattern in KEPT for path in folder.glob(pattern)}:
            if not path.name.endswith(".bin.index.json"):
                shutil.copyfile(path, made / path.name)
        if config["model_type"] == xprophetnet.OLD_TYPE:
            config = xprophetnet.as_prophetnet(config)
            reads = most_tokens(from_pretrained("AutoConfig", folder))
            xprophetnet.make_tokenizer(folder / xprophetnet.VOCABULARY_FILE, reads).save_pretrained(made)
        (made / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
    return out


def _config(path: Path) -> dict[str, Any]:
    """The content of config.json, with the type of its architecture where it lacks one, as before transformers 2.6."""
    import transformers

    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        if not config.get("model_type"):
            kind = getattr(transformers, config["architectures"][0])
            config["model_type"] = kind.config_class.model_type
    except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: expected a JSON object with model_type, or the architectures of transformers "
            f"({type(error).__name__}); fetch the file again, or add model_type, such as xlm-roberta."
        ) from None
    return dict(config)


def _distinct(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights, without views; of tied ones only the table of words, which a model without a head needs, too."""
    order = sorted(weights, key=lambda key: ("embed" in key or "shared" in key, -len(key)))
    last = {(weights[key].data_ptr(), weights[key].shape): key for key in order}
    return {key: weights.pop(key).clone().contiguous() for key in last.values()}
