"""Loading checkpoints of transformers: safetensors alone, never their own code, and a sentence where it fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import SafetensorError

from mrs_suggest.common.errors import InputError, first_line

if TYPE_CHECKING:
    from transformers import PreTrainedConfig, PreTrainedModel

OPTION = "--model_name_or_path"  # begins the sentences, where the caller names no other
# What the libraries raise for a checkpoint that is damaged, or is none.
DAMAGE = (OSError, ValueError, TypeError, KeyError, RuntimeError, ImportError, AttributeError, SafetensorError)


def at(revision: str | None) -> dict[str, str]:
    """The argument of `from_pretrained` for a revision; None leaves it to the library."""
    return {"revision": revision} if revision else {}


def load_config(name: str, revision: str | None, option: str = OPTION) -> PreTrainedConfig:
    """The configuration of a checkpoint; `option` begins the error's sentence.

    Raises:
        InputError: it cannot be loaded.
    """
    from transformers import AutoConfig

    try:
        config: PreTrainedConfig = AutoConfig.from_pretrained(name, trust_remote_code=False, **at(revision))
    except DAMAGE as error:
        raise InputError(f"{option} {name}: cannot be loaded ({first_line(error)}).") from None
    return config


def load_tokenizer(name: str, revision: str | None, option: str = OPTION) -> Any:
    """The tokenizer of a checkpoint; `option` begins the error's sentence.

    Raises:
        InputError: it cannot be loaded.
    """
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(name, trust_remote_code=False, **at(revision))
    except DAMAGE as error:
        raise InputError(f"{option} {name}: its tokenizer cannot be loaded ({first_line(error)}).") from None


def load_model(kind: Any, name: str, revision: str | None, *, option: str = OPTION, **given: Any) -> PreTrainedModel:
    """The model of a checkpoint, in float32.

    Args:
        kind: a class of transformers with `from_pretrained`.
        option: begins the error's sentence.
        given: its further arguments.

    Raises:
        InputError: it cannot be loaded.
    """
    import torch

    try:
        model: PreTrainedModel = kind.from_pretrained(
            name, use_safetensors=True, trust_remote_code=False, dtype=torch.float32, **given, **at(revision)
        )
    except DAMAGE as error:
        raise InputError(f"{option} {name}: cannot be loaded ({first_line(error)}).") from None
    return model


@contextmanager
def without_report() -> Iterator[None]:
    """Without the library's report of fresh weights: the caller says it in a sentence."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


def input_positions(config: Any) -> int | None:
    """The longest input that a model's learned positions allow, in tokens; None where it has none."""
    positions: int | None = getattr(config, "max_position_embeddings", None)
    if positions and ("roberta" in config.model_type or config.model_type == "camembert"):
        positions -= config.pad_token_id + 1  # they count positions from there
    return positions


def stated_license(card: Path) -> object:
    """What the front matter of a card says of the licence, as it stands there; None where it says nothing readable."""
    import yaml
    from huggingface_hub import ModelCard

    try:
        text = card.read_text(encoding="utf-8")
        return ModelCard(text, ignore_metadata_errors=True).data.to_dict().get("license")
    except (OSError, ValueError, yaml.YAMLError):
        return None
