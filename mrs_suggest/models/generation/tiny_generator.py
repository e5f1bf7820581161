"""Small untrained generators with a tokenizer trained on the training text: Unicoder-xDAE, a convolutional model and a
language model.

All builders write a transformers checkpoint (config, random weights, tokenizer) to `folder` and return it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from mrs_suggest.models.retrieval.tiny import VOCABULARY, train_tokenizer, write_untrained

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerFast

    Model = TypeVar("Model", bound=nn.Module)

# Chosen on the validation split of the embedded sample for a run of minutes on two CPU cores.
WIDTH, LAYERS, HEADS = 128, 1, 4
DROPOUT = 0.0  # the paper's is .1 (official script)
POSITIONS = 128
SEPARATOR, END = "</s>", "[EOS]"  # as Unicoder-xDAE ends its texts
TIED = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head.")


def build_tiny_generator(
    texts: Iterable[str], languages: Sequence[str], folder: Path, seed: int, vocabulary: int = VOCABULARY,
    layers: int = LAYERS,
) -> Path:  # fmt: skip
    """A small Unicoder-xDAE.

    Weights are initialized as in fairseq (Xavier, embeddings by the width): with transformers' own initialization, made
    for large models, a run of minutes learns replies but ignores the message.

    Args:
        languages: each gets its tag.
        vocabulary: its largest size, tags aside.
        layers: of the encoder, and as many of the decoder.
    """
    from transformers import BartForConditionalGeneration

    from mrs_suggest.models.generation.architectures.unicoder import unicoder_config

    tokenizer = tiny_tokenizer(texts, languages, vocabulary)
    config = unicoder_config(len(tokenizer), WIDTH, layers, HEADS, 4 * WIDTH, POSITIONS, DROPOUT)
    config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    config.bos_token_id = config.forced_eos_token_id = config.decoder_start_token_id = None
    return write_untrained(
        lambda: initialize(BartForConditionalGeneration(config), "model.shared"), tokenizer, folder, seed, TIED
    )


def build_convolutional(
    texts: Iterable[str], languages: Sequence[str], folder: Path, seed: int, vocabulary: int = VOCABULARY
) -> Path:
    """A small convolutional model; arguments and errors as for `build_tiny_generator`."""
    from mrs_suggest.models.generation.architectures.convolutional import (
        ConvolutionalConfig,
        ConvolutionalForConditionalGeneration,
    )

    tokenizer = tiny_tokenizer(texts, languages, vocabulary)
    # Ours, for minutes on two CPU cores: half the width of the authors' smallest configuration, and its blocks.
    config = ConvolutionalConfig(
        vocab_size=len(tokenizer), d_model=WIDTH, dropout=0.1, max_position_embeddings=POSITIONS,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return write_untrained(lambda: ConvolutionalForConditionalGeneration(config), tokenizer, folder, seed)


def build_tiny_causal(
    texts: Iterable[str], languages: Sequence[str], folder: Path, seed: int, vocabulary: int = VOCABULARY
) -> Path:
    """A small Llama with a few million parameters; arguments and errors as for `build_tiny_generator`."""
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer = tiny_tokenizer(texts, languages, vocabulary)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=2 * WIDTH, intermediate_size=6 * WIDTH, num_hidden_layers=2 * LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=4 * POSITIONS, tie_word_embeddings=True, bos_token_id=None,
        pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
    )  # fmt: skip
    return write_untrained(
        lambda: initialize(LlamaForCausalLM(config), "model.embed_tokens"), tokenizer, folder, seed, ("lm_head.",)
    )


def tiny_tokenizer(texts: Iterable[str], languages: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A tokenizer trained on texts, with a tag for each language, a mask token and Unicoder's ends."""
    tokenizer = train_tokenizer(texts, vocabulary)
    tags = [f"[{code}]" for code in languages]
    tokenizer.add_special_tokens(
        {"sep_token": SEPARATOR, "eos_token": END, "mask_token": "[MASK]", "additional_special_tokens": tags}
    )
    return tokenizer


def initialize(model: Model, embeddings: str) -> Model:
    """The model with weights drawn as by fairseq: Xavier, and by the width for those whose name begins `embeddings`."""
    from torch import nn

    for name, parameter in model.named_parameters():
        if name.startswith(embeddings):
            nn.init.normal_(parameter, std=WIDTH**-0.5)
        elif parameter.dim() == 2 and "embed" not in name:
            nn.init.xavier_uniform_(parameter)
    return model
