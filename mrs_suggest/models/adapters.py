"""Low-rank adapters (LoRA, Hu et al. 2022) for all families of models, made by peft.

peft puts the adapters into the encoders in place; its wrapper is dropped, so that the model keeps its class, its
`generate` and its parameters' names. A model with adapters must not be saved by `save_pretrained`: the result loads
without an error and without the adapted layers. Checkpoints hold `write_lora_state`; a finished model is merged by
`merge_lora` and saves like any other, or `save_adapter` keeps only its adapters.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mrs_suggest.common.errors import InputError, extra_needed, first_line
from mrs_suggest.common.io.files import atomic_folder, atomic_write
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.checkpoint_loading import drawn, from_pretrained
from mrs_suggest.models.starting_points import ADAPTER_RECORD, GENERATION, MULTIPLE_CHOICE, RETRIEVAL, UNDERSTANDING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # peft's names
STATE = "adapter_state.safetensors"  # of all encoders, in a checkpoint
MASKED_LM, CAUSAL_LM = "masked_lm", "causal_lm"  # an encoder with a language-model head; a language model
VERSION = 2  # of `adapter.json`
# The keys of the record, and the types of their values.
TYPES: dict[str, Any] = {
    "family": str, "base": str, "revision": str | None, "fingerprint": str, "seed": int,
    "pooling": str | None, "message_tokens": int, "reply_tokens": int, "encoders": str, "query_prompt": str,
    "reply_prompt": str, "normalize": bool | None, "layers": int | None,
    "head": str, "input": str, "max_tokens": int, "heads": dict, "shared": bool,
}  # fmt: skip


class _Family(NamedTuple):
    """How the base of a family is recorded and built again.

    Attributes:
        task: peft's name; None for a masked language model, which peft does not name.
        made_by: a class of transformers; or the module below `mrs_suggest.models` whose `shape_of(model)` gives the
            record's `keys`, and whose `built_as(record, name)` makes the model.
    """

    task: str | None
    made_by: str
    keys: tuple[str, ...] = ()


FAMILIES = {
    RETRIEVAL: _Family(
        "FEATURE_EXTRACTION",
        "retrieval.dual_encoder",
        (
            "pooling", "message_tokens", "reply_tokens", "encoders", "query_prompt", "reply_prompt", "normalize",
            "layers", "seed",
        ),
    ),
    GENERATION: _Family("SEQ_2_SEQ_LM", "AutoModelForSeq2SeqLM"),
    CAUSAL_LM: _Family("CAUSAL_LM", "AutoModelForCausalLM"),
    MULTIPLE_CHOICE: _Family(
        "FEATURE_EXTRACTION", "understanding.choice_start", ("head", "pooling", "input", "max_tokens", "seed")
    ),
    UNDERSTANDING: _Family(
        "FEATURE_EXTRACTION", "understanding.understanding_start", ("heads", "shared", "max_tokens", "seed")
    ),
    MASKED_LM: _Family(None, "AutoModelForMaskedLM"),
}  # fmt: skip


def add_lora(model: nn.Module, rank: int = 16, alpha: float = 32.0, dropout: float = 0.05, *, seed: int = 0) -> None:
    """Put fresh adapters into every encoder, in place; outputs do not change until training.

    They adapt the layers that peft chooses for the architecture (BERT's query and value), else all linear layers of
    attention.

    A model whose attribute `trained_in_full` names modules, such as a fresh head, trains these too; they are kept with
    the adapters.

    Args:
        rank: of the update of a weight matrix.
        alpha: the update is scaled by alpha / rank.
        dropout: on the adapters' input, while training.

    Raises:
        InputError: the encoders are static, or peft cannot adapt them.
        MissingExtraError: peft is not installed.
    """
    parts = _parts(model)
    if has_lora(model):
        raise ValueError("The model has adapters already; merge them before adding others.")
    peft = _peft()
    with drawn(seed):
        for part in parts.values():
            config = peft.LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=dropout, target_modules=_targets(part))
            _inject(part, config)
    model.requires_grad_(False)
    for parameter in _lora_parameters(model).values():
        parameter.requires_grad_(True)


def has_lora(model: nn.Module) -> bool:
    """Whether the model has adapters that are not merged."""
    return any(".lora_" in name for name, _ in model.named_parameters())


def merge_lora(model: nn.Module) -> None:
    """Add the adapters to the weights they adapt and remove them, in place; outputs do not change.

    Afterwards the model saves and loads like any other. Its weights stay frozen.
    """
    if not has_lora(model):
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    for part in _parts(model).values():
        for name, layer in [(name, layer) for name, layer in part.named_modules() if isinstance(layer, BaseTunerLayer)]:
            layer.merge()
            parent, _, child = name.rpartition(".")
            setattr(part.get_submodule(parent), child, layer.get_base_layer())
        if hasattr(part, "peft_config"):
            del part.peft_config


def lora_state(model: nn.Module) -> dict[str, Tensor]:
    """Copies of the adapters' weights on the CPU, by encoder and name."""
    return {name: value.detach().cpu().clone().contiguous() for name, value in _lora_parameters(model).items()}


def load_lora_state(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Set the adapters' weights to those of `lora_state`; InputError if it is of other layers or another rank."""
    mine = _lora_parameters(model)
    shapes = {name: tuple(value.shape) for name, value in mine.items()}
    theirs = {name: tuple(value.shape) for name, value in state.items()}
    if shapes != theirs:
        name = min(name for name in shapes.keys() | theirs.keys() if shapes.get(name) != theirs.get(name))
        raise InputError(
            f"adapters: expected {name} to be {shapes.get(name, 'absent')}, found {theirs.get(name, 'none')}; "
            "pass the LoRA options that they were trained with."
        )
    with torch.no_grad():
        for name, parameter in mine.items():
            parameter.copy_(state[name])


def write_lora_state(model: nn.Module, folder: Path) -> None:
    """Write the adapters' weights into a checkpoint folder, for `read_lora_state`."""
    save_file(lora_state(model), folder / STATE, metadata={"format": "pt"})


def read_lora_state(folder: Path) -> dict[str, Tensor]:
    return _tensors(folder / STATE, "pass a checkpoint of a run with adapters")


def save_adapter(model: nn.Module, folder: Path, base: str, base_revision: str | None, seed: int = 0) -> None:
    """Write only the adapters, as peft does, and `adapter.json`, which says how to build their base.

    The first adapter (the only one, or that of messages) is in the folder itself, that of replies in `document/`; so
    `PeftModel.from_pretrained(base, folder)` reads the first, and `load_adapter(folder, "document",
    subfolder="document")` the second. The folder appears whole; an older one with an `adapter.json` is replaced.

    Args:
        base, base_revision: the name the base is loaded by, which is published.
        seed: that the model was built with: it draws the weights that the base lacks, often those of a pooler.
    """
    if not has_lora(model):
        raise ValueError("The model has no adapters; save them before they are merged.")
    parts, family = _parts(model), _family(model)
    record: dict[str, Any] = {"version": VERSION, "family": family, "base": base, "revision": base_revision}
    record["fingerprint"] = fingerprint(_plain(model))
    if FAMILIES[family].keys:
        record |= _module(family).shape_of(model) | {"seed": seed}
    with atomic_folder(folder, overwrite=True, marker=ADAPTER_RECORD) as partial:
        for name, part in parts.items():
            own = partial / _place(name, parts)
            own.mkdir(exist_ok=True)
            tensors = {_peft_name(key): value.detach().cpu().contiguous() for key, value in _own_lora(part).items()}
            save_file(tensors, own / WEIGHTS, metadata={"format": "pt"})
            adapted: Any = part
            config = copy.copy(adapted.peft_config["default"])
            config.base_model_name_or_path, config.revision = base, base_revision  # else a local path
            config.inference_mode, config.task_type = True, FAMILIES[family].task
            config.modules_to_save = list(_in_full(part)) or None
            config.target_modules = sorted(config.target_modules)  # a set, in another order every time
            config.save_pretrained(str(own))
        atomic_write(partial / ADAPTER_RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def has_adapter(folder: str | Path) -> bool:
    """Whether `save_adapter` wrote the folder."""
    return (Path(folder) / ADAPTER_RECORD).is_file()


def base_of(folder: str | Path) -> tuple[str, str | None]:
    """The base model of an adapter and its revision."""
    record = _read_record(Path(folder))
    return record["base"], record["revision"]


def load_adapter(folder: str | Path) -> SentenceTransformer | PreTrainedModel:
    """Load the base, and merge the adapters of `save_adapter` into it.

    Raises:
        InputError: not an adapter, a damaged one, or the base is missing or has other weights than the one trained on.
    """
    folder = Path(folder)
    record = _read_record(folder)
    try:
        model = _built(record)
    except InputError as error:
        raise InputError(f"{folder / ADAPTER_RECORD}: its base {record['base']} cannot be loaded: {error}") from None
    if fingerprint(_plain(model)) != record["fingerprint"]:
        raise InputError(
            f"{folder / ADAPTER_RECORD}: {record['base']} has other weights than the base that the adapters were "
            "trained on; pass that one."
        )
    state: dict[str, Tensor] = {}
    parts = _parts(model)
    for name, part in parts.items():
        place = folder / _place(name, parts)
        _inject(part, _read_config(place))
        own = {_peft_name(key): key for key in _own_lora(part)}
        state |= {
            f"{name}.{own.get(key, key)}": value for key, value in _tensors(place / WEIGHTS, again(folder)).items()
        }
    try:
        load_lora_state(model, state)
    except InputError as error:
        raise InputError(f"{folder}: damaged ({error})") from None
    merge_lora(model)
    return model.eval()


def _family(model: nn.Module) -> str:
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        return RETRIEVAL
    if hasattr(model.config, "understanding"):
        return UNDERSTANDING
    if _in_full(model):
        return MULTIPLE_CHOICE
    if model.config.is_encoder_decoder:
        return GENERATION
    return CAUSAL_LM if model.can_generate() else MASKED_LM


def _module(family: str) -> Any:
    return import_module(f"mrs_suggest.models.{FAMILIES[family].made_by}")


def _built(record: dict[str, Any]) -> Any:
    family = FAMILIES[record["family"]]
    if family.keys:
        settings = {key: record[key] for key in (*family.keys, "revision")}
        return _module(record["family"]).built_as(settings, record["base"])
    return from_pretrained(family.made_by, record["base"], record["revision"])


def _read_record(folder: Path) -> dict[str, Any]:
    path = folder / ADAPTER_RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InputError(
            f"{folder}: no {ADAPTER_RECORD}, so not an adapter; pass the folder that a run with --peft wrote."
        ) from None
    except ValueError:
        record = None
    if not isinstance(record, dict):
        raise InputError(f"{path}: damaged, expected a JSON object; {again(path)}.")
    family = FAMILIES.get(str(record.get("family")))
    for key in ("family", "base", "revision", "fingerprint", *(family.keys if family else ())):
        if not isinstance(record.get(key, ...), TYPES[key]):
            expected = getattr(TYPES[key], "__name__", str(TYPES[key]).replace("| None", "or null"))
            found = json.dumps(record.get(key, "nothing"))
            raise InputError(f"{path}: expected {key} to be {expected}, found {found}; {again(path)}.")
    if type(record.get("version")) is not int or record["version"] != VERSION:
        raise InputError(
            f"{path}: expected version to be {VERSION}, found {json.dumps(record.get('version', 'nothing'))}; another "
            "version of this package wrote it: train the adapters again, or install that version."
        )
    if family is None:
        raise InputError(
            f"{path}: expected family to be one of {', '.join(FAMILIES)}, found {record['family']!r}; "
            "a newer version of this package may know it."
        )
    return record


def _parts(model: nn.Module) -> dict[str, nn.Module]:
    """The transformers models that take adapters, by the name of their folder."""
    from transformers import PreTrainedModel

    if isinstance(model, PreTrainedModel):
        return {"seq2seq": model}
    from mrs_suggest.models.retrieval.routes import ROUTES, encoders

    found = encoders(model)  # type: ignore[arg-type]
    if not all(isinstance(encoder, PreTrainedModel) for encoder in found):
        raise InputError("--peft lora: static encoders have no layers to adapt; pass --encoders two or one.")
    return dict(zip(("shared",) if len(found) == 1 else ROUTES, found, strict=True))


def _place(name: str, parts: Mapping[str, nn.Module]) -> str:
    """The folder of an encoder's adapter below that of all, where peft looks for it."""
    return "." if name == next(iter(parts)) else name


def _read_config(folder: Path) -> Any:
    if not (folder / CONFIG).is_file():  # peft would look for it on the hub
        raise InputError(f"{folder}: no {CONFIG}; {again(folder)}.")
    peft = _peft()
    try:
        config = peft.LoraConfig.from_pretrained(str(folder))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{folder / CONFIG}: damaged ({first_line(error)}); {again(folder)}.") from None
    if not isinstance(config, peft.LoraConfig):
        raise InputError(f"{folder / CONFIG}: expected LoRA, found {config.peft_type}; pass an adapter written here.")
    config.base_model_name_or_path = None  # it may name a folder of another machine
    config.task_type = None  # the wrapper that it stands for is dropped
    config.modules_to_save = None  # for which peft would wrap them
    return config


def _inject(part: nn.Module, config: Any) -> None:
    try:
        _peft().get_peft_model(part, config)
    except ValueError as error:
        raise InputError(
            f"--peft lora: {type(part).__name__} cannot take the adapters ({first_line(error)})."
        ) from None
    part.train(part.training)  # new adapters would apply dropout in a model that is not training


def _targets(part: nn.Module) -> list[str]:
    from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as KNOWN

    config: Any = part.config
    known = KNOWN.get(getattr(getattr(config, "encoder", config), "model_type", ""))
    linear = [name for name, module in part.named_modules() if isinstance(module, nn.Linear)]
    found = [name for name in linear if "attention" in name.lower() or "attn" in name.lower()]
    if not known and not found:
        raise InputError(f"--peft lora: {type(part).__name__} has no linear layers of attention to adapt.")
    return list(known or found)


def _in_full(part: nn.Module) -> tuple[str, ...]:
    """Names of the modules that are trained in full, in addition to the adapters."""
    return tuple(getattr(part, "trained_in_full", ()))


def _own_lora(part: nn.Module) -> dict[str, nn.Parameter]:
    full = tuple(f"{name}." for name in _in_full(part))
    return {name: value for name, value in part.named_parameters() if ".lora_" in name or name.startswith(full)}


def _lora_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    return {
        f"{part}.{name}": value for part, module in _parts(model).items() for name, value in _own_lora(module).items()
    }


def _peft_name(name: str) -> str:
    """The name of an adapter's tensor in peft's files: with the wrapper, without the adapter's own name.

    >>> _peft_name("layer.0.query.lora_A.default.weight")
    'base_model.model.layer.0.query.lora_A.weight'
    """
    return "base_model.model." + name.replace(".default.", ".")


def _plain(model: nn.Module) -> dict[str, Tensor]:
    """The base's weights by the names that they have without adapters."""
    full = tuple(f"{name}." for name in _in_full(model))
    weights = {name: value for name, value in sorted(model.state_dict().items()) if ".lora_" not in name}
    return {name.replace(".base_layer.", "."): value for name, value in weights.items() if not name.startswith(full)}


def fingerprint(weights: Mapping[str, Tensor]) -> str:
    """A hash of the names, types, shapes and all values of weights, in their order.

    Where one tensor has several names, its values are read once. BLAKE2b, 1.7 s of CPU time for
    the 579 MB of two small multilingual encoders.

    Example:
        >>> one, other = torch.zeros(1000), torch.zeros(1000)
        >>> other[501] = 1e-9
        >>> fingerprint({"weight": one}) == fingerprint({"weight": other})
        False
    """
    digest = hashlib.blake2b(digest_size=16)
    names: dict[tuple[int, torch.Size], str] = {}
    for name, value in weights.items():
        first = names.setdefault((value.data_ptr(), value.shape), name)
        digest.update(f"{name} {first} {value.dtype} {tuple(value.shape)}\n".encode())
        if first == name:
            digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    return digest.hexdigest()


def _tensors(path: Path, advice: str) -> dict[str, Tensor]:
    if not path.is_file():
        raise InputError(f"{path.parent}: no {path.name}; {advice}.")
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: damaged ({first_line(error)}); {advice}.") from None
    return tensors


def _peft() -> Any:
    with extra_needed("peft", "torch", "--peft lora"):
        import peft
    return peft
