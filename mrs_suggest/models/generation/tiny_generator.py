"""A small version of Unicoder-xDAE, untrained, with a tokenizer trained on the training text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mrs_suggest.models.retrieval.tiny import VOCABULARY, train_tokenizer, write_checkpoint

if TYPE_CHECKING:
    from torch import nn
    from transformers import PreTrainedTokenizerFast

# Chosen on the validation split of the embedded sample for a run of minutes on two CPU cores.
WIDTH, LAYERS, HEADS = 128, 1, 4
DROPOUT = 0.0  # the paper's is .1 (official script)
POSITIONS = 128
SEPARATOR, END = "</s>", "[EOS]"  # as Unicoder-xDAE ends its texts


def build_tiny_generator(
    texts: Iterable[str],
    languages: Sequence[str],
    folder: Path,
    seed: int,
    vocabulary: int = VOCABULARY,
    layers: int = LAYERS,
) -> Path:
    """Write a transformers checkpoint (config, random weights, tokenizer) to `folder` and return it.

    Weights are initialized as in fairseq (Xavier, embeddings by the width): with transformers' own initialization, made
    for large models, a run of minutes learns replies but ignores the message.

    Args:
        texts: what the tokenizer is trained on; the training sources, nothing else.
        languages: each gets its tag.
        seed: of the random weights.
        vocabulary: its largest size, tags aside.
        layers: of the encoder, and as many of the decoder.

    Raises:
        InputError: there is no text.
    """
    import torch
    from transformers import BartForConditionalGeneration

    from mrs_suggest.models.generation.architectures.unicoder import unicoder_config

    tokenizer = tiny_tokenizer(texts, languages, vocabulary)
    config = unicoder_config(
        vocab_size=len(tokenizer),
        d_model=WIDTH,
        layers=layers,
        heads=HEADS,
        ffn=4 * WIDTH,
        positions=POSITIONS,
        dropout=DROPOUT,
    )
    config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
    config.bos_token_id = config.forced_eos_token_id = config.decoder_start_token_id = None
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = BartForConditionalGeneration(config)
        initialize(model, "model.shared")
    tied = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head.")
    return write_checkpoint(model, tokenizer, folder, tied)


def tiny_tokenizer(texts: Iterable[str], languages: Sequence[str], vocabulary: int) -> PreTrainedTokenizerFast:
    """A tokenizer trained on texts, with a tag for each language, a mask token and Unicoder's ends."""
    tokenizer = train_tokenizer(texts, vocabulary)
    tags = [f"[{code}]" for code in languages]
    tokenizer.add_special_tokens(
        {"sep_token": SEPARATOR, "eos_token": END, "mask_token": "[MASK]", "additional_special_tokens": tags}
    )
    return tokenizer


def initialize(model: nn.Module, embeddings: str) -> None:
    """Draw the weights as fairseq does, in place: Xavier, and by the width for what begins with `embeddings`."""
    from torch import nn

    for name, parameter in model.named_parameters():
        if name.startswith(embeddings):
            nn.init.normal_(parameter, std=WIDTH**-0.5)
        elif parameter.dim() == 2 and "embed" not in name:
            nn.init.xavier_uniform_(parameter)
