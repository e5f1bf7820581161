"""The convolutional model: against a reference in numpy, causal, blind to padding, equal with and without cache."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor
from transformers import DynamicCache, EncoderDecoderCache

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.adapters import add_lora
from mrs_suggest.models.generation.architectures.convolutional import (
    ConvolutionalConfig,
    ConvolutionalForConditionalGeneration,
)
from mrs_suggest.models.generation.ctranslate2_writer import write_ctranslate2
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.padding import seq2seq_batch
from mrs_suggest.models.generation.tiny_generator import build_convolutional
from mrs_suggest.training.generation.options import GenerationArguments
from mrs_suggest.training.options import LoraArguments, with_model_revision

TOKENS, LENGTH, PAD = 30, 7, 0
Array = NDArray[np.float64]


def small(**changes: Any) -> ConvolutionalForConditionalGeneration:
    """A model in float64 with random weights; lengths and biases are not those of the start, which are special."""
    sizes: dict[str, Any] = {"vocab_size": TOKENS, "d_model": 6, "encoder_layers": 2, "decoder_layers": 2}
    config = ConvolutionalConfig(**sizes, max_position_embeddings=12, **changes)
    torch.manual_seed(3)
    model = ConvolutionalForConditionalGeneration(config).double().eval()
    for name, parameter in model.named_parameters():
        if name.endswith(("length", "bias")):
            parameter.data = torch.rand_like(parameter) + 0.5
    return model


MODEL = small(dropout=0.0)
ids = st.lists(st.integers(1, TOKENS - 1), min_size=1, max_size=LENGTH)


def logits(model: Any, source: list[int], target: list[int]) -> Tensor:
    with torch.no_grad():
        found: Tensor = model(input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([target])).logits[0]
    return found


# The reference: the paper's equations, position by position, from the checkpoint's weights.


def weight(state: dict[str, Array], name: str) -> Array:
    direction, length = state[f"{name}.direction"], state[f"{name}.length"]
    norms = np.sqrt((direction**2).reshape(len(direction), -1).sum(1)).reshape(length.shape)
    return np.asarray(direction / norms * length)


def gated(state: dict[str, Array], name: str, window: list[Array]) -> Array:
    """One output of a convolution with its gate: W [x_1 ... x_k] + b = [A B]; A * sigmoid(B) (section 3.2)."""
    kernel = weight(state, name)
    both = sum(kernel[:, :, place] @ state_ for place, state_ in enumerate(window)) + state[f"{name}.bias"]
    half = len(both) // 2
    return np.asarray(both[:half] / (1 + np.exp(-both[half:])))


def linear(state: dict[str, Array], name: str, vector: Array) -> Array:
    return np.asarray(weight(state, name) @ vector + state[f"{name}.bias"])


def embedded(state: dict[str, Array], side: str, tokens: list[int]) -> list[Array]:
    words, places = state[f"{side}.embedding.tokens.weight"], state[f"{side}.embedding.positions.weight"]
    return [words[token] + places[place] for place, token in enumerate(tokens)]


def reference(model: ConvolutionalForConditionalGeneration, source: list[int], target: list[int]) -> Array:
    """(target, vocabulary) logits."""
    state = {name: value.numpy() for name, value in model.state_dict().items()}
    half, zero = 0.5**0.5, np.zeros(model.config.d_model)
    inputs = embedded(state, "encoder", source)
    hidden = [linear(state, "encoder.first", vector) for vector in inputs]
    for number in range(model.config.encoder_layers):
        name, around = f"encoder.blocks.{number}", [zero, *hidden, zero]
        hidden = [(gated(state, name, around[i : i + 3]) + own) * half for i, own in enumerate(hidden)]
    keys = [linear(state, "encoder.last", vector) for vector in hidden]
    values = [(key + vector) * half for key, vector in zip(keys, inputs, strict=True)]
    words = embedded(state, "decoder", target)
    hidden = [linear(state, "decoder.first", vector) for vector in words]
    for number in range(model.config.decoder_layers):
        name, before = f"decoder.blocks.{number}", [zero, zero, *hidden]
        after = []
        for i, own in enumerate(hidden):
            found = gated(state, f"{name}.convolution", before[i : i + 3])
            query = (linear(state, f"{name}.query", found) + words[i]) * half
            scores = np.exp([query @ key for key in keys])
            read = sum(share * value for share, value in zip(scores / scores.sum(), values, strict=True))
            context = linear(state, f"{name}.context", read * len(source) ** 0.5)
            after.append(((found + context) * half + own) * half)
        hidden = after
    return np.stack([linear(state, "lm_head", linear(state, "decoder.last", vector)) for vector in hidden])


def test_the_logits_are_those_of_the_paper_s_equations() -> None:
    for source, target in (([3, 4, 5, 6, 7], [1, 9, 8, 2]), ([5], [4, 4, 4, 4, 4, 4])):
        np.testing.assert_allclose(logits(MODEL, source, target).numpy(), reference(MODEL, source, target), rtol=1e-10)


@settings(max_examples=25, deadline=None)
@given(st.lists(ids, min_size=2, max_size=4), st.booleans())
def test_padding_changes_nothing(sources: list[list[int]], left: bool) -> None:
    target = [1, 5, 9]
    longest = max(map(len, sources))
    fill = [[PAD] * (longest - len(source)) for source in sources]
    rows = [(f + s if left else s + f) for s, f in zip(sources, fill, strict=True)]
    mask = [[int(bool(token)) for token in row] for row in rows]
    with torch.no_grad():
        found = MODEL(
            input_ids=torch.tensor(rows),
            attention_mask=torch.tensor(mask),
            decoder_input_ids=torch.tensor([[*target, PAD, PAD]] * len(rows)),
        ).logits
    for row, source in zip(found, sources, strict=True):
        torch.testing.assert_close(row[:3], logits(MODEL, source, target), rtol=1e-12, atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(ids, st.lists(st.integers(1, 3), min_size=1, max_size=4), st.sampled_from([1, 3, 5]), st.booleans())
def test_a_cache_gives_the_same_logits(source: list[int], steps: list[int], kernel: int, nested: bool) -> None:
    model = small(dropout=0.0, kernel_size=kernel)
    target = torch.arange(1, sum(steps) + 1)[None]
    cache: Any = EncoderDecoderCache(DynamicCache(), DynamicCache()) if nested else DynamicCache()
    states, parts, begin = model.encoder(torch.tensor([source])), [], 0
    for step in steps:
        given = {"decoder_input_ids": target[:, begin : begin + step], "past_key_values": cache, "use_cache": True}
        parts.append(model(encoder_outputs=states, **given).logits[0])
        begin += step
    whole = logits(model, source, target[0].tolist())
    torch.testing.assert_close(torch.cat(parts), whole, rtol=1e-12, atol=1e-12)


# Through the generator.

TEXTS = ["one two three", "four five six", "uno dos tres", "cuatro cinco seis", "two five", "dos cinco"]
PAIRS = [("one two", "uno dos"), ("three four five", "tres cuatro cinco"), ("six", "seis"), ("two five", "dos cinco")]
SEARCH = Decoding(beams=4, max_tokens=12, length_penalty=0.0)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Generator, Path, list[float]]:
    """A generator that has learned `PAIRS`, where it is saved, and its losses."""
    folder = tmp_path_factory.mktemp("convolutional")
    build_convolutional(TEXTS * 3, ["en", "es"], folder / "start", 1, 120)
    generator = Generator.build(str(folder / "start"), ["es"], 20, 20, SEARCH)
    model, coder = generator.model, generator.coder
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    batch = seq2seq_batch(
        coder.messages([left for left, _ in PAIRS], "es"),
        [coder.prompt("es")] * len(PAIRS),
        coder.replies([right for _, right in PAIRS]),
        generator.pad,
    )
    losses = []
    model.train()
    torch.manual_seed(0)
    for _ in range(60):
        loss = model(**batch).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    model.eval()
    generator.save(folder / "run")
    return generator, folder / "run", losses


def test_what_does_not_work_with_it_is_said_in_one_sentence(trained: tuple[Generator, Path, list[float]]) -> None:
    generator, folder, _ = trained
    with pytest.raises(InputError, match="type 'mrs_convolutional_seq2seq', and CTranslate2 converts .*; it keeps"):
        write_ctranslate2(generator, folder, folder, int8=False)
    with pytest.raises(InputError, match="ConvolutionalForConditionalGeneration has no linear layers of attention"):
        add_lora(generator.model)
    with pytest.raises(InputError, match="convolutional: only for `mrs train generation`"):
        with_model_revision(LoraArguments(data="x", model_name_or_path="convolutional"))
    named = GenerationArguments(data="x", model_name_or_path="convolutional")
    assert with_model_revision(named) is named
