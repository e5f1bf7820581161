"""Loading checkpoints: safetensors only, never their own code, and one sentence where a checkpoint cannot be used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError, MrsError, first_line

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerFast

OPTION = "--model_name_or_path"
PARTS = {
    "AutoConfig": "the configuration",
    "AutoTokenizer": "the tokenizer",
    "AutoModel": "the encoder",
    "AutoModelForSeq2SeqLM": "the seq2seq model",
    "AutoModelForCausalLM": "the language model",
    "AutoModelForMaskedLM": "an encoder with a language-model head",
}


def from_pretrained(
    kind: Any,
    name: str | Path,
    revision: str | None = None,
    *,
    option: str = OPTION,
    shown: str | None = None,
    advice: str = "",
    **given: Any,
) -> Any:
    """Load a configuration, tokenizer or model of transformers; models in float32 and from safetensors only.

    Args:
        kind: a class of transformers, or its name (`AutoTokenizer`), so that callers need not import it.
        option, shown: begin the sentence of an error; None: the name.
        advice: ends it; by default what weights must look like.

    Raises:
        InputError: the checkpoint is missing, damaged, of another kind, or has no safetensors.
    """
    import transformers

    part = PARTS.get(kind if isinstance(kind, str) else kind.__name__, "the model")
    if part not in ("the configuration", "the tokenizer"):
        import torch

        given = {"use_safetensors": True, "dtype": torch.float32, **given}
        advice = advice or "weights must be safetensors (see `mrs convert`), and code in a checkpoint is never run"
        transformers.utils.logging.disable_progress_bar()
    if revision:
        given["revision"] = revision
    with loading(part, shown or name, option, advice):
        found = getattr(transformers, kind) if isinstance(kind, str) else kind
        return found.from_pretrained(str(name), trust_remote_code=False, **given)


@contextmanager
def loading(part: str, name: str | Path, option: str = OPTION, advice: str = "") -> Iterator[None]:
    """Turn whatever the libraries raise in the block for a checkpoint into one sentence."""
    try:
        yield
    except MrsError:
        raise
    except Exception as error:  # a damaged file fails in many ways; the tokenizers library raises plain exceptions
        sentence = f"{option} {name}: cannot load {part} ({first_line(error)})".strip()
        raise InputError(f"{sentence}; {advice}." if advice else f"{sentence}.") from error


def load_fast_tokenizer(name: str, revision: str | None = None) -> PreTrainedTokenizerFast:
    from tokenizers import Tokenizer

    tokenizer: PreTrainedTokenizerFast = from_pretrained("AutoTokenizer", name, revision)
    if not isinstance(getattr(tokenizer, "backend_tokenizer", None), Tokenizer):
        raise InputError(f"{OPTION} {name}: has no fast tokenizer; choose another checkpoint.")
    return tokenizer


@contextmanager
def without_report() -> Iterator[None]:
    """Hide the library's report of fresh weights: the caller mentions them, or expects them."""
    from transformers.utils import logging

    before = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        yield
    finally:
        logging.set_verbosity(before)


@contextmanager
def drawn(seed: int) -> Iterator[None]:
    """Draw torch's random numbers from a seed in the block, and leave the generator as it was."""
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def input_positions(config: Any) -> int | None:
    """The longest input that a model's learned positions allow, in tokens; None without learned positions."""
    positions: int | None = getattr(config, "max_position_embeddings", None)
    if positions and ("roberta" in config.model_type or config.model_type == "camembert"):
        positions -= config.pad_token_id + 1  # they count positions from there
    return positions


def set_length(config: Any, encoder: Any, tokenizer: Any, max_tokens: int | None, least: int, usual: int) -> None:
    """Set `max_tokens` of a configuration, the most tokens of an input: as asked, as it was, or the usual number.

    Args:
        encoder: its part that describes the encoder.
    """
    most = int(tokenizer.model_max_length)
    most = min(most, input_positions(encoder) or most)
    if max_tokens is not None and not least <= max_tokens <= most:
        raise InputError(f"--max_tokens: expected {least} to {most}, which the encoder reads, found {max_tokens}.")
    config.max_tokens = max_tokens or min(getattr(config, "max_tokens", None) or usual, most)


def encoder_config(name: str, revision: str | None = None) -> Any:
    config = from_pretrained("AutoConfig", name, revision)
    if getattr(config, "is_encoder_decoder", False) or getattr(config, "is_decoder", False):
        raise InputError(f"{OPTION} {name}: is not an encoder ({config.model_type}); use BERT, XLM-R or such.")
    return config


def set_dropout(module: nn.Module, probability: float) -> None:
    """Give all dropout of a model one probability, in place; its configuration stays."""
    from torch import nn

    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = probability


def stated_license(card: Path) -> object:
    """The licence in the front matter of a card, unchanged; None if it is missing or unreadable."""
    import yaml
    from huggingface_hub import ModelCard

    try:
        text = card.read_text(encoding="utf-8")
        return ModelCard(text, ignore_metadata_errors=True).data.to_dict().get("license")
    except (OSError, ValueError, yaml.YAMLError):
        return None
