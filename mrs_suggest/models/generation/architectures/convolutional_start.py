"""A small convolutional model, untrained, with a tokenizer trained on the training text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mrs_suggest.models.generation.tiny_generator import tiny_tokenizer
from mrs_suggest.models.retrieval.tiny import VOCABULARY, write_checkpoint

# Ours, for minutes on two CPU cores: half the width of the authors' smallest configuration, and its blocks.
WIDTH, ENCODER_LAYERS, DECODER_LAYERS, KERNEL = 128, 4, 3, 3
DROPOUT = 0.1
POSITIONS = 128


def build_convolutional(
    texts: Iterable[str], languages: Sequence[str], folder: Path, seed: int, vocabulary: int = VOCABULARY
) -> Path:
    """Write a transformers checkpoint (config, random weights, tokenizer) to `folder` and return it.

    Args:
        texts: what the tokenizer is trained on; the training text, nothing else.
        languages: each gets its tag.
        seed: of the random weights.
        vocabulary: its largest size, tags aside.

    Raises:
        InputError: there is no text.
    """
    import torch

    from mrs_suggest.models.generation.architectures.convolutional import (
        ConvolutionalConfig,
        ConvolutionalForConditionalGeneration,
    )

    tokenizer = tiny_tokenizer(texts, languages, vocabulary)
    config = ConvolutionalConfig(
        vocab_size=len(tokenizer),
        d_model=WIDTH,
        encoder_layers=ENCODER_LAYERS,
        decoder_layers=DECODER_LAYERS,
        kernel_size=KERNEL,
        dropout=DROPOUT,
        max_position_embeddings=POSITIONS,
        pad_token_id=tokenizer.pad_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = ConvolutionalForConditionalGeneration(config)
    return write_checkpoint(model, tokenizer, folder)
