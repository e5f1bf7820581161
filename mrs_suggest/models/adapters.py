"""Low-rank adapters (LoRA, Hu et al. 2022) for the dual encoder, a sequence-to-sequence or a multiple-choice model, one
for understanding tasks, and an encoder with a language-model head.

`get_peft_model` puts the adapters into the encoders in place, and its wrapper is dropped: the model keeps its class,
its `generate` and its parameters' names. A model with adapters must not be saved by `save_pretrained`: what that writes
loads without an error and without the adapted layers. Checkpoints hold `write_lora_state`; a finished model is merged
by `merge_lora` and then saves like any other, or only its adapters are kept by `save_adapter`.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from mrs_suggest.common.errors import InputError, MissingExtraError, first_line
from mrs_suggest.common.hub.baselines import FAMILIES
from mrs_suggest.common.io.files import atomic_folder, atomic_write
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.fingerprints import fingerprint
from mrs_suggest.models.starting_points import ADAPTER_RECORD, MULTIPLE_CHOICE, UNDERSTANDING

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedModel

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"  # peft's names
STATE = "adapter_state.safetensors"  # of all encoders, in a checkpoint
PEFT_NAME = "default"  # peft's name for the only one
RETRIEVAL, GENERATION = FAMILIES
MASKED_LM = "masked_lm"  # an encoder with a language-model head
VERSION = 2  # of `adapter.json`: peft's layout, and a fingerprint of all weights of the base
# The keys, and what their values must be.
FIELDS: dict[str, tuple[type, ...]] = {
    "family": (str,),
    "base": (str,),
    "revision": (str, type(None)),
    "fingerprint": (str,),
}
RETRIEVAL_FIELDS: dict[str, tuple[type, ...]] = {
    "pooling": (str, type(None)),
    "message_tokens": (int,),
    "reply_tokens": (int,),
    "encoders": (str,),
}
CHOICE_FIELDS: dict[str, tuple[type, ...]] = {"head": (str,), "pooling": (str,), "input": (str,), "max_tokens": (int,)}
UNDERSTANDING_FIELDS: dict[str, tuple[type, ...]] = {"heads": (dict,), "shared": (bool,), "max_tokens": (int,)}
TASK_TYPES = {  # peft's names; it has none for the last
    RETRIEVAL: "FEATURE_EXTRACTION", GENERATION: "SEQ_2_SEQ_LM", MULTIPLE_CHOICE: "FEATURE_EXTRACTION",
    UNDERSTANDING: "FEATURE_EXTRACTION", MASKED_LM: None,
}  # fmt: skip
# Keys that older records lack, what their values must be, and what those models were built with.
LATER_FIELDS: dict[str, tuple[tuple[type, ...], Any]] = {
    "query_prompt": ((str,), ""),
    "reply_prompt": ((str,), ""),
    "normalize": ((bool, type(None)), None),
    "layers": ((int, type(None)), None),
}


@dataclass(frozen=True)
class Lora:
    """How adapters are made.

    Attributes:
        rank: of the update of a weight matrix.
        alpha: the update is scaled by alpha / rank.
        dropout: on the adapters' input, while training.
        targets: names, or ends of names, of the linear layers; None: peft's choice for the architecture (BERT's query
            and value), else all linear layers of attention.

    Raises:
        InputError: a value is out of its range.

    Example:
        >>> Lora(rank=8).alpha
        32
    """

    rank: int = 16
    alpha: float = 32
    dropout: float = 0.05
    targets: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.rank < 1:
            raise InputError(f"--lora_rank: expected 1 or more, found {self.rank}.")
        if not self.alpha > 0:
            raise InputError(f"--lora_alpha: expected more than 0, found {self.alpha}.")
        if not 0 <= self.dropout < 1:
            raise InputError(f"--lora_dropout: expected 0 or more and less than 1, found {self.dropout}.")
        if self.targets is not None and not self.targets:
            raise InputError("--peft lora: targets names no layer; name some, or leave it out.")


def add_lora(model: nn.Module, settings: Lora, seed: int = 0) -> int:
    """Put fresh adapters into every encoder, in place; outputs stay what they were until training.

    A model whose attribute `trained_in_full` names modules, such as a fresh head, trains these too; they are kept with
    the adapters.

    Args:
        model: a dual encoder, or a transformers model.
        seed: of the adapters' first weights.

    Returns:
        How many parameters train: the adapters', and those of the modules that are trained in full.

    Raises:
        InputError: peft is not installed, the encoders are static, or no layers have the given names.
    """
    parts = _parts(model)
    if has_lora(model):
        raise ValueError("The model has adapters already; merge them before adding others.")
    peft = _peft()
    configs = {
        name: peft.LoraConfig(
            r=settings.rank,
            lora_alpha=settings.alpha,
            lora_dropout=settings.dropout,
            target_modules=_targets(part, settings),
        )
        for name, part in parts.items()
    }
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name, part in parts.items():
            _inject(part, configs[name])
    model.requires_grad_(False)
    for parameter in _lora_parameters(model).values():
        parameter.requires_grad_(True)
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def has_lora(model: nn.Module) -> bool:
    """Whether the model has adapters that are not merged."""
    return any(_is_lora(name) for name, _ in model.named_parameters())


def merge_lora(model: nn.Module) -> None:
    """Add the adapters to the weights they adapt and remove them, in place; outputs stay the same.

    Afterwards the model saves and loads like any other. Its weights stay frozen.
    """
    if not has_lora(model):
        return
    from peft.tuners.tuners_utils import BaseTunerLayer

    for part in _parts(model).values():
        layers = [(name, layer) for name, layer in part.named_modules() if isinstance(layer, BaseTunerLayer)]
        for name, layer in layers:
            layer.merge()
            parent, _, child = name.rpartition(".")
            setattr(part.get_submodule(parent), child, layer.get_base_layer())
        if hasattr(part, "peft_config"):
            del part.peft_config


def lora_state(model: nn.Module) -> dict[str, Tensor]:
    """Copies of the adapters' weights on the CPU, by encoder and name."""
    return {name: value.detach().cpu().clone().contiguous() for name, value in _lora_parameters(model).items()}


def load_lora_state(model: nn.Module, state: Mapping[str, Tensor]) -> None:
    """Set the adapters' weights to those of `lora_state`.

    Raises:
        InputError: the state belongs to adapters of other layers or another rank.
    """
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
    """The adapters' weights of a checkpoint folder.

    Raises:
        InputError: there are none, or the file is damaged.
    """
    return _tensors(folder / STATE, "pass a checkpoint of a run with adapters")


def save_adapter(model: nn.Module, folder: Path, base: str, base_revision: str | None, seed: int = 0) -> None:
    """Write only the adapters, as peft writes them, with what is needed to put them on their base again.

    peft's layout of several adapters: the first one (the only one, or that of messages) at the top, that of replies in
    `document/`; so `PeftModel.from_pretrained(base, folder)` reads the first, and `load_adapter(folder, "document",
    subfolder="document")` the second. And `adapter.json`. The folder appears whole; an older one with an `adapter.json`
    is replaced.

    Args:
        model: with adapters, not merged.
        base, base_revision: the name the base is loaded by, which is published.
        seed: that a dual encoder was built with: it draws the weights that the base lacks, often those of a pooler.

    Raises:
        InputError: the folder holds something else, or cannot be written.
    """
    if not has_lora(model):
        raise ValueError("The model has no adapters; save them before they are merged.")
    parts = _parts(model)
    record: dict[str, Any] = {"version": VERSION, "family": _family(model), "base": base, "revision": base_revision}
    record["fingerprint"] = fingerprint(_plain(model))
    if record["family"] == RETRIEVAL:
        from mrs_suggest.models.retrieval.routes import build_settings

        record |= build_settings(model) | {"seed": seed}  # type: ignore[arg-type]
    elif record["family"] == MULTIPLE_CHOICE:
        from mrs_suggest.models.understanding.choice_start import shape_of

        record |= shape_of(cast(Any, model).config) | {"seed": seed}
    elif record["family"] == UNDERSTANDING:
        from mrs_suggest.models.understanding.understanding_start import build_settings as understanding_settings

        record |= understanding_settings(cast(Any, model)) | {"seed": seed}
    with atomic_folder(folder, overwrite=True, marker=ADAPTER_RECORD) as partial:
        for name, part in parts.items():
            own = partial / _place(name, parts)
            own.mkdir(exist_ok=True)
            tensors = {_peft_name(key): value.detach().cpu().contiguous() for key, value in _own_lora(part).items()}
            save_file(tensors, own / WEIGHTS, metadata={"format": "pt"})
            config: Any = copy.copy(cast(Any, part).peft_config[PEFT_NAME])
            config.base_model_name_or_path, config.revision = base, base_revision  # else a local path
            config.inference_mode = True
            config.task_type = TASK_TYPES[record["family"]]
            config.modules_to_save = list(_in_full(part)) or None
            if not isinstance(config.target_modules, str):  # a set, in another order every time
                config.target_modules = sorted(config.target_modules)
            config.save_pretrained(str(own))
        atomic_write(partial / ADAPTER_RECORD, json.dumps(record, indent=2, ensure_ascii=False) + "\n")


def has_adapter(folder: str | Path) -> bool:
    """Whether `save_adapter` wrote the folder."""
    return (Path(folder) / ADAPTER_RECORD).is_file()


def base_of(folder: str | Path) -> tuple[str, str | None]:
    """The base model of an adapter and its revision.

    Raises:
        InputError: the folder is not an adapter, or a damaged one.
    """
    record = _read_record(Path(folder))
    return record["base"], record["revision"]


def as_named(base: str, revision: str | None) -> str:
    """The base by its own name: a folder or a hub id."""
    return base


def load_adapter(
    folder: str | Path, resolve: Callable[[str, str | None], str] = as_named
) -> SentenceTransformer | PreTrainedModel:
    """Load the base, and merge the adapters of `save_adapter` into it.

    Args:
        folder: what `save_adapter` wrote.
        resolve: (base, revision) -> the name or folder to load the base from.

    Raises:
        InputError: not an adapter, a damaged one, or the base is missing or has other weights than the one trained on.
    """
    folder = Path(folder)
    record = _read_record(folder)
    try:
        model = _load_base(record, resolve(record["base"], record["revision"]))
    except InputError as error:
        raise InputError(f"{folder / ADAPTER_RECORD}: its base {record['base']} cannot be loaded: {error}") from None
    parts = _parts(model)
    if fingerprint(_plain(model)) != record["fingerprint"]:
        raise InputError(
            f"{folder / ADAPTER_RECORD}: {record['base']} has other weights than the base that the adapters were "
            "trained on; pass that one."
        )
    state: dict[str, Tensor] = {}
    for name, part in parts.items():
        place = folder / _place(name, parts)
        _inject(part, _read_config(place))
        tensors = _tensors(place / WEIGHTS, again(folder))
        own = {_peft_name(key): key for key in _own_lora(part)}
        state |= {f"{name}.{own.get(key, key)}": value for key, value in tensors.items()}
    try:
        load_lora_state(model, state)
    except InputError as error:
        raise InputError(f"{folder}: damaged ({error})") from None
    merge_lora(model)
    return model.eval()


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


def _family(model: nn.Module) -> str:
    from transformers import PreTrainedModel

    if not isinstance(model, PreTrainedModel):
        return RETRIEVAL
    if hasattr(model.config, "understanding"):
        return UNDERSTANDING
    if _in_full(model):
        return MULTIPLE_CHOICE
    return GENERATION if model.config.is_encoder_decoder else MASKED_LM


def _load_base(record: Mapping[str, Any], name: str) -> SentenceTransformer | PreTrainedModel:
    if record["family"] == RETRIEVAL:
        from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder

        shape = {key: record[key] for key in (*RETRIEVAL_FIELDS, *LATER_FIELDS)}
        return build_dual_encoder(name, revision=record["revision"], seed=record.get("seed", 0), **shape)
    if record["family"] == MULTIPLE_CHOICE:
        from mrs_suggest.models.understanding.choice_start import build_choice_model

        own = {key: record[key] for key in CHOICE_FIELDS}
        return build_choice_model(name, record["revision"], seed=record.get("seed", 0), **own).model
    if record["family"] == UNDERSTANDING:
        from mrs_suggest.models.understanding.understanding_start import built_as

        return built_as(record, name).model
    from transformers import AutoModelForMaskedLM, AutoModelForSeq2SeqLM

    masked = record["family"] == MASKED_LM
    kind = AutoModelForMaskedLM if masked else AutoModelForSeq2SeqLM
    try:
        loaded: PreTrainedModel = kind.from_pretrained(
            name,
            revision=record["revision"] or "main",
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,  # as the trainer loads it
        )
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        what = "an encoder with a language-model head" if masked else "a sequence-to-sequence model"
        raise InputError(f"not {what} ({first_line(error)}).") from None
    return loaded


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
    fields = dict(FIELDS)
    if record.get("family") == RETRIEVAL:
        record = {key: default for key, (_, default) in LATER_FIELDS.items()} | record
        fields |= RETRIEVAL_FIELDS | {key: types for key, (types, _) in LATER_FIELDS.items()}
    if record.get("family") == MULTIPLE_CHOICE:
        fields |= CHOICE_FIELDS
    if record.get("family") == UNDERSTANDING:
        fields |= UNDERSTANDING_FIELDS
    for key, types in fields.items():
        if key not in record or not isinstance(record[key], types):
            expected = " or ".join("null" if kind is type(None) else kind.__name__ for kind in types)
            found = json.dumps(record.get(key, "nothing"))
            raise InputError(f"{path}: expected {key} to be {expected}, found {found}; {again(path)}.")
    if type(record.get("version")) is not int or record["version"] != VERSION:
        raise InputError(
            f"{path}: expected version to be {VERSION}, found {json.dumps(record.get('version', 'nothing'))}; another "
            "version of this package wrote it: train the adapters again, or install that version."
        )
    if type(record.get("seed", 0)) is not int:
        raise InputError(f"{path}: expected seed to be int, found {json.dumps(record['seed'])}; {again(path)}.")
    if record["family"] not in TASK_TYPES:
        raise InputError(
            f"{path}: expected family to be one of {', '.join(TASK_TYPES)}, found {record['family']!r}; "
            "a newer version of this package may know it."
        )
    return record


def _read_config(folder: Path) -> Any:
    """The LoraConfig of one encoder. Only a file: peft would look for a missing one on the hub."""
    if not (folder / CONFIG).is_file():
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
            f"--peft lora: {type(part).__name__} cannot take the adapters ({first_line(error)}); name linear layers "
            "that it has."
        ) from None
    part.train(part.training)  # new adapters would apply dropout in a model that is not training


def _targets(part: nn.Module, settings: Lora) -> list[str]:
    """The layers to adapt, by name."""
    from peft.utils import TRANSFORMERS_MODELS_TO_LORA_TARGET_MODULES_MAPPING as KNOWN

    if settings.targets is not None:
        return list(settings.targets)
    config: Any = part.config
    known = KNOWN.get(getattr(getattr(config, "encoder", config), "model_type", ""))
    found = [name for name, module in part.named_modules() if isinstance(module, nn.Linear) and _in_attention(name)]
    if not known and not found:
        raise InputError(f"--peft lora: {type(part).__name__} has no linear layers of attention to adapt.")
    return list(known or found)


def _in_attention(name: str) -> bool:
    return "attention" in name.lower() or "attn" in name.lower()


def _is_lora(name: str) -> bool:
    return ".lora_" in name


def _in_full(part: nn.Module) -> tuple[str, ...]:
    """Names of the modules that are trained in full beside the adapters."""
    return tuple(getattr(part, "trained_in_full", ()))


def _own_lora(part: nn.Module) -> dict[str, nn.Parameter]:
    full = tuple(f"{name}." for name in _in_full(part))
    return {name: value for name, value in part.named_parameters() if _is_lora(name) or name.startswith(full)}


def _lora_parameters(model: nn.Module) -> dict[str, nn.Parameter]:
    return {
        f"{part}.{name}": value for part, module in _parts(model).items() for name, value in _own_lora(module).items()
    }


def _peft_name(name: str) -> str:
    """The name of an adapter's tensor in peft's files, which know the wrapper and not the adapter's name.

    >>> _peft_name("layer.0.query.lora_A.default.weight")
    'base_model.model.layer.0.query.lora_A.weight'
    """
    return "base_model.model." + name.replace(f".{PEFT_NAME}.", ".")


def _plain(model: nn.Module) -> dict[str, Tensor]:
    """The base's weights by the names that they have without adapters."""
    full = tuple(f"{name}." for name in _in_full(model))
    return {
        name.replace(".base_layer.", "."): value
        for name, value in sorted(model.state_dict().items(), key=itemgetter(0))
        if not _is_lora(name) and not name.startswith(full)
    }


def _tensors(path: Path, advice: str) -> dict[str, Tensor]:
    if not path.is_file():
        raise InputError(f"{path.parent}: no {path.name}; {advice}.")
    try:
        tensors: dict[str, Tensor] = load_file(path)
    except (SafetensorError, OSError, ValueError) as error:
        raise InputError(f"{path}: damaged ({first_line(error)}); {advice}.") from None
    return tensors


def _peft() -> Any:
    try:
        import peft
    except ImportError:
        raise MissingExtraError("peft", "torch", "--peft lora") from None
    return peft
