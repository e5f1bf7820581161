"""Checkpoints of fairseq and old transformers: their tensors, read without running code, and what must fit a model."""

import argparse
import re
import warnings
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder


@contextmanager
def conversion(out: Path, overwrite: bool, *given: Path) -> Iterator[Path]:
    """As `atomic_folder` for a model; an InputError if it would replace one of the inputs."""
    for path in given:
        if path.exists() and path.resolve().is_relative_to(out.resolve()):
            raise InputError(f"--out {out}: {path} is there and would be replaced with it; choose another folder.")
    with atomic_folder(out, overwrite, marker="config.json") as folder:
        yield folder


def read_pickle(path: Path, save: str, *allowed: type) -> Any:
    """The content of a file of `torch.save`: tensors, plain values and objects of the allowed types; nothing is run.

    A file of the current format is mapped, so that optimizer states cost no memory; one from before PyTorch 1.6 is read
    whole. An InputError refuses a damaged file, and one with other objects, with `save`, what to save alone instead.
    """
    with path.open("rb") as file:
        zipped = file.read(4) == b"PK\x03\x04"
    try:
        with torch.serialization.safe_globals(list(allowed)), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # deprecated storage classes of old files
            return torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except Exception as error:  # a damaged file fails in many ways inside the reader, and nothing else runs here
        if named := re.search(r"GLOBAL ([\w.]+)", str(error)):
            raise InputError(
                f"{path}: the file names the Python object {named[1]}, which could run code while it is loaded, so it "
                f"is not read; if you trust its source, save {save} alone with torch.save, and convert that file."
            ) from None
        raise InputError(
            f"{path}: not a PyTorch checkpoint, or cut short or damaged ({type(error).__name__}); fetch the file again."
        ) from None


def require_tensors(weights: object, path: Path, what: str) -> dict[str, Tensor]:
    """The weights of a file, if they are tensors by their names; an InputError that it is not `what` otherwise."""
    if not isinstance(weights, Mapping) or not weights:
        raise InputError(f"{path}: {what}.")
    for key, value in weights.items():
        if not isinstance(key, str) or not isinstance(value, Tensor):
            raise InputError(f"{path}: {what}, but {key!r} is not a tensor.")
    return dict(weights)


def read_fairseq(path: Path, model: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights of a fairseq checkpoint, and the arguments it was trained with, if it holds them; besides tensors and
    plain values, only `argparse.Namespace` is read. An InputError refuses other files, see `read_pickle`."""
    if not path.is_file():
        raise InputError(f"{path}: no such file; pass the checkpoint.pt of {model}.")
    content = read_pickle(path, "c['model'] and c['args']", argparse.Namespace)
    weights = content.get("model") if isinstance(content, dict) else None
    what = 'not a fairseq checkpoint: expected a dictionary with the weights under "model"'
    return require_tensors(weights, path, what), _arguments(content)


def _arguments(content: Mapping[str, Any]) -> dict[str, Any]:
    """`args` of fairseq up to 0.9, and task and model in the `cfg` of later ones."""
    config = content.get("cfg")
    later = [config.get("task"), config.get("model")] if isinstance(config, Mapping) else []
    found: dict[str, Any] = {}
    for part in (content.get("args"), *later):
        if isinstance(part, (argparse.Namespace, Mapping)):
            found.update(part if isinstance(part, Mapping) else vars(part))
    return found


def matrix(weights: Mapping[str, Tensor], key: str, name: str, model: str) -> tuple[int, int]:
    """The shape of a weight; InputError if it is missing or not a matrix."""
    if key not in weights:
        raise InputError(f"{name}: the weight {key} is missing; pass a checkpoint of {model}.")
    if weights[key].dim() != 2 or 0 in weights[key].shape:
        raise InputError(f"{name}: {key} has shape {tuple(weights[key].shape)}, expected a matrix.")
    return weights[key].size(0), weights[key].size(1)


def heads_of(arguments: Mapping[str, Any], side: str, width: int, usual: int, name: str) -> int:
    """The attention heads of the encoder or decoder; by default, one for `usual` of the width."""
    heads = arguments.get(f"{side}_attention_heads", width // usual if width % usual == 0 else None)
    if not isinstance(heads, int) or heads < 1 or width % heads:
        raise InputError(
            f"{name}: expected in its arguments encoder_attention_heads and decoder_attention_heads, divisors of "
            f"the width {width}, found {heads!r}."
        )
    return heads


def fitted(
    weights: Mapping[str, Tensor], shapes: Mapping[str, tuple[int, ...]], tied: Collection[str], table: str, name: str,
    model: str,
) -> dict[str, Tensor]:  # fmt: skip
    """The weights in float32, whatever their precision was: transformers would train a 16-bit checkpoint in 16 bits.

    An InputError refuses missing, unexpected and infinite ones, other `shapes`, and names in `tied` of another weight
    than `table`, which the result has once.
    """
    if missing := [key for key in shapes if key not in weights and key not in tied]:
        raise InputError(f"{name}: the weight {missing[0]} is missing; pass a checkpoint of {model}.")
    converted = {}
    for key, tensor in weights.items():
        shape = shapes[table] if key in tied else shapes.get(key)
        if shape is None:
            raise InputError(f"{name}: the weight {key} is not one of {model}'s; pass a checkpoint of that model.")
        if tuple(tensor.shape) != shape:
            raise InputError(f"{name}: {key} has shape {tuple(tensor.shape)}, the others require {shape}.")
        if not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{name}: {key} has values that are not finite; fetch the file again, or an earlier one.")
        if key in tied and not torch.equal(tensor.float(), weights[table].float()):
            raise InputError(f"{name}: {key} differs from {table}, which {model} shares; it is another model.")
        if key not in tied:
            converted[key] = tensor.detach().to(torch.float32).contiguous()
    return converted
