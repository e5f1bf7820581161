"""The smallest encoders that are still real: BERT with three layers of 16, a tokenizer of a few hundred pieces."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

TEXTS = [
    "How are you?",
    "I am fine, thanks!",
    "明日は元気ですか？",
    "はい、元気です。",
    "Как дела?",
    "Спасибо, хорошо.",
]
LETTERS = list("abcdefghijklmnopqrstuvwxyz")


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    """On a busy machine, tiny models on two threads spend their time waiting for each other."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a transformers checkpoint whose tokenizer makes one piece of every single letter between spaces."""
    from transformers import BertConfig, BertModel

    from mrs_models.tiny import train_tokenizer

    folder = tmp_path_factory.mktemp("checkpoint")
    tokenizer = train_tokenizer([" ".join(LETTERS), *TEXTS] * 4, 300)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=128, pad_token_id=tokenizer.pad_token_id, initializer_range=0.3,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
