"""Tiny translation models: a Marian that learned a cipher word for word, and an untrained M2M100."""

import importlib
import json
import random
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

_ALL = "the a cat dog bird fish sees hears knows likes red blue old new day night here now thanks fine yes no well good"
WORDS = tuple(_ALL.split(" "))
LONGEST = 6  # words of a text in training; the model has places for a few more
PLACES = 24  # tokens that it reads or writes
STEPS = 300


def cipher(text: str) -> str:
    """What the model learned to say instead: each word backwards, between a vowel and a consonant of its own."""
    return " ".join(f"zu{word[::-1]}k" for word in text.split())


def sentence(draw: random.Random, longest: int = LONGEST) -> str:
    """A text of the words that the model knows."""
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, longest)))


def write_pieces(folder: Path, texts: Sequence[str]) -> Path:
    """A sentencepiece model whose pieces are the words of the texts."""
    import sentencepiece

    (folder / "texts.txt").write_text("\n".join(texts), encoding="utf-8")
    words = {word for text in texts for word in text.split()}
    sentencepiece.SentencePieceTrainer.train(
        input=str(folder / "texts.txt"), model_prefix=str(folder / "pieces"), model_type="word",
        vocab_size=len(words) + 3, minloglevel=2,
    )  # fmt: skip
    return folder / "pieces.model"


def write_marian(folder: Path, source: str = "en", target: str = "de", steps: int = STEPS, width: int = 96) -> Path:
    """A checkpoint of Marian in `folder`, as OPUS-MT's are; return it.

    Args:
        steps: of training; 0 leaves random weights.
    """
    import sentencepiece
    import torch
    from transformers import MarianConfig, MarianMTModel, MarianTokenizer

    parts = folder.with_name(f"{folder.name}-parts")
    parts.mkdir(parents=True)
    model_file = write_pieces(parts, [*WORDS, *map(cipher, WORDS)])
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
    names = [pieces.id_to_piece(number) for number in range(pieces.get_piece_size())]
    vocabulary = {"</s>": 0, "<unk>": 1}
    for name in [*(name for name in names if name not in ("<s>", "</s>", "<unk>")), "<pad>"]:
        vocabulary[name] = len(vocabulary)
    (parts / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tokenizer = MarianTokenizer(
            str(model_file), str(model_file), str(parts / "vocab.json"), source_lang=source, target_lang=target,
            model_max_length=PLACES,
        )  # fmt: skip
    pad = vocabulary["<pad>"]
    torch.manual_seed(0)
    model = MarianMTModel(
        MarianConfig(
            vocab_size=len(vocabulary), d_model=width, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=2 * width,
            decoder_ffn_dim=2 * width, encoder_attention_heads=4, decoder_attention_heads=4, dropout=0.0,
            max_position_embeddings=PLACES, pad_token_id=pad, eos_token_id=0, decoder_start_token_id=pad,
            forced_eos_token_id=None, scale_embedding=True, activation_function="swish",
        )
    )  # fmt: skip
    _train(model, tokenizer, pad, steps)
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


def _train(model: Any, tokenizer: Any, pad: int, steps: int) -> None:
    import torch

    draw = random.Random(0)
    optimiser = torch.optim.Adam(model.parameters(), lr=2e-3)
    model.train()
    for step in range(steps):
        for group in optimiser.param_groups:
            group["lr"] = 2e-3 * min(1.0, (step + 1) / 20) * (1 - step / steps)
        batch = [sentence(draw) for _ in range(64)]
        given = tokenizer(batch, padding=True, return_tensors="pt")
        labels = tokenizer([cipher(text) for text in batch], padding=True, return_tensors="pt").input_ids
        loss = model(**given, labels=labels.masked_fill(labels == pad, -100)).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        with torch.no_grad():  # as in Marian, whose decoder starts from zeros; CTranslate2 relies on it
            model.model.shared.weight[pad] = 0.0
    model.eval()


def write_m2m100(folder: Path) -> Path:
    """An untrained checkpoint of M2M100 in `folder`; return it."""
    import torch
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    parts = folder.with_name(f"{folder.name}-parts")
    parts.mkdir(parents=True)
    model_file = write_pieces(parts, [*WORDS, *map(cipher, WORDS)])
    module = importlib.import_module("transformers.models.m2m_100.tokenization_m2m_100")
    import sentencepiece

    pieces = sentencepiece.SentencePieceProcessor(model_file=str(model_file))
    names = ["<s>", "<pad>", "</s>", "<unk>"]
    names += [name for number in range(pieces.get_piece_size()) if (name := pieces.id_to_piece(number)) not in names]
    (parts / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    codes = [
        f"__{code}__" for code in module.FAIRSEQ_LANGUAGE_CODES["m2m100"]
    ]  # as the published checkpoints have them
    tokenizer = module.M2M100Tokenizer(str(parts / "vocab.json"), str(model_file), additional_special_tokens=codes)
    torch.manual_seed(0)
    model = M2M100ForConditionalGeneration(
        M2M100Config(
            vocab_size=len(names) + 108, d_model=16, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=32,
            decoder_ffn_dim=32, encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=32,
            init_std=0.5,
        )
    )  # fmt: skip
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder


@pytest.fixture(scope="session")
def marian(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian that learned `cipher`, which it calls German; several test files share it."""
    pytest.importorskip("sentencepiece")
    return write_marian(tmp_path_factory.mktemp("translation") / "opus-tiny-en-de")
