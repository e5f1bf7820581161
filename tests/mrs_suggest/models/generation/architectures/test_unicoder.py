"""A fairseq checkpoint with random weights becomes a BART that computes what fairseq's graph computes."""

import argparse
import json
import math
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file
from torch import Tensor

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.text.languages import MRS_CODES
from mrs_suggest.models.generation.architectures.fairseq import read_fairseq
from mrs_suggest.models.generation.architectures.unicoder import (
    LANGUAGE_TAGS,
    VOCABULARY,
    Tags,
    convert_state,
    convert_unicoder,
    read_tags,
    unicoder_config,
)
from tests.cases import cases

PAD, HEADS, WIDTH, FFN, VOCAB, ROWS = 1, 2, 16, 24, 60, 14
LANGS = ("de", "en", "es")
FIRST = VOCAB - 1 - len(LANGS) - 6  # the id of [EOS]: three languages and six unused ids follow
ARGUMENTS = {
    "arch": "mbart_base", "encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS, "activation_fn": "gelu",
    "dropout": 0.3, "attention_dropout": 0.2, "common_eos": "EOS", "langs": ",".join(LANGS), "placeholder": 6,
}  # fmt: skip
Write = Callable[..., Path]


def fairseq_state(seed: int = 0, layers: tuple[int, int] = (2, 3)) -> dict[str, Tensor]:
    """Random weights under fairseq's names: large enough that each of them moves the output."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator) * 0.5

    state = {"encoder.version": torch.tensor([3.0]), "decoder.version": torch.tensor([3.0])}

    def linear(name: str, rows: int, columns: int) -> None:
        state[f"{name}.weight"], state[f"{name}.bias"] = draw(rows, columns), draw(rows)

    def norm(name: str) -> None:
        state[f"{name}.weight"], state[f"{name}.bias"] = 1 + draw(WIDTH), draw(WIDTH)

    table = draw(VOCAB, WIDTH)
    table[PAD] = 0
    for side, count in zip(("encoder", "decoder"), layers, strict=True):
        state[f"{side}.embed_tokens.weight"] = table
        state[f"{side}.embed_positions.weight"] = draw(ROWS, WIDTH)
        norm(f"{side}.layernorm_embedding")
        for layer in (f"{side}.layers.{number}" for number in range(count)):
            for attention in ("self_attn", *(["encoder_attn"] if side == "decoder" else [])):
                for projection in ("k_proj", "v_proj", "q_proj", "out_proj"):
                    linear(f"{layer}.{attention}.{projection}", WIDTH, WIDTH)
                norm(f"{layer}.{attention}_layer_norm")
            linear(f"{layer}.fc1", FFN, WIDTH)
            linear(f"{layer}.fc2", WIDTH, FFN)
            norm(f"{layer}.final_layer_norm")
    return state


# --- fairseq's graph (TransformerModel with mbart_base's options), in plain torch


def affine(state: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    return x @ state[f"{name}.weight"].T + state[f"{name}.bias"]


def norm(state: dict[str, Tensor], name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return (
        centred / (centred.pow(2).mean(-1, keepdim=True) + 1e-5).sqrt() * state[f"{name}.weight"]
        + state[f"{name}.bias"]
    )


def attend(state: dict[str, Tensor], name: str, x: Tensor, memory: Tensor, hidden: Tensor) -> Tensor:
    """`hidden` (batch, queries, keys) is true where a query may not look."""

    def split(y: Tensor) -> Tensor:
        return y.view(*y.shape[:2], HEADS, WIDTH // HEADS).transpose(1, 2)

    query = split(affine(state, f"{name}.q_proj", x) * (WIDTH // HEADS) ** -0.5)
    key, value = (split(affine(state, f"{name}.{part}", memory)) for part in ("k_proj", "v_proj"))
    scores = (query @ key.transpose(2, 3)).masked_fill(hidden[:, None], -math.inf)
    return affine(state, f"{name}.out_proj", (scores.softmax(-1) @ value).transpose(1, 2).reshape(x.shape))


def embed(state: dict[str, Tensor], side: str, ids: Tensor, scale: float = math.sqrt(WIDTH)) -> Tensor:
    present = ids.ne(PAD)
    positions = torch.where(present, present.cumsum(1) + PAD, PAD)  # counted over what is no padding
    x = scale * state[f"{side}.embed_tokens.weight"][ids] + state[f"{side}.embed_positions.weight"][positions]
    return norm(state, f"{side}.layernorm_embedding", x)


def blocks(
    state: dict[str, Tensor], side: str, x: Tensor, hidden: Tensor, memory: Tensor | None = None, far: Any = None
) -> Tensor:
    for number in range(len({key.split(".")[2] for key in state if key.startswith(f"{side}.layers.")})):
        layer = f"{side}.layers.{number}"
        x = norm(state, f"{layer}.self_attn_layer_norm", x + attend(state, f"{layer}.self_attn", x, x, hidden))
        if memory is not None:
            seen = attend(state, f"{layer}.encoder_attn", x, memory, far)
            x = norm(state, f"{layer}.encoder_attn_layer_norm", x + seen)
        inner = affine(state, f"{layer}.fc1", x)
        inner = inner * 0.5 * (1 + torch.erf(inner / math.sqrt(2)))
        x = norm(state, f"{layer}.final_layer_norm", x + affine(state, f"{layer}.fc2", inner))
    return x


def reference_logits(state: dict[str, Tensor], source: Tensor, target: Tensor, **scale: float) -> Tensor:
    padded = source.eq(PAD)[:, None]
    memory = blocks(state, "encoder", embed(state, "encoder", source, **scale), padded)
    later = torch.ones(target.shape[1], target.shape[1], dtype=torch.bool).triu(1)
    hidden = later[None] | target.eq(PAD)[:, None]
    x = blocks(state, "decoder", embed(state, "decoder", target, **scale), hidden, memory, padded)
    return x @ state["decoder.embed_tokens.weight"].T


def batch(seed: int = 1) -> tuple[Tensor, Tensor]:
    """Three sources and targets of different lengths, padded on the right."""
    generator = torch.Generator().manual_seed(seed)

    def rows(lengths: list[int]) -> Tensor:
        filled = torch.full((len(lengths), max(lengths)), PAD)
        for row, length in zip(filled, lengths, strict=True):
            row[:length] = torch.randint(4, VOCAB, (length,), generator=generator)
        return filled

    return rows([9, 4, 12]), rows([5, 8, 3])


# --- the conversion


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a checkpoint as fairseq does; returns its path."""

    def save(state: object = None, name: str = "checkpoint.pt", zipped: bool = True, **arguments: object) -> Path:
        content = {
            "args": argparse.Namespace(**{**ARGUMENTS, **arguments}),
            "model": fairseq_state() if state is None else state,
            "optimizer_history": [{"optimizer_name": "FairseqAdam", "num_updates": 7}],
            "last_optimizer_state": {"state": {0: {"step": 7, "exp_avg": torch.ones(3)}}},
            "extra_state": {"epoch": 1, "val_loss": None},
        }
        torch.save(content, tmp_path / name, _use_new_zipfile_serialization=zipped)
        return tmp_path / name

    return save


@pytest.fixture(scope="module")
def xlmr(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer of XLM-R's class with a vocabulary of `FIRST` tokens."""
    from transformers import XLMRobertaTokenizer

    special = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    letters = "abcdefghijklmnopqrs"
    pieces = [(f"▁{letter}", -2.0) for letter in letters] + [(letter, -3.0) for letter in f"{letters}▁[]EOS"]
    vocabulary = [*special, *pieces[: FIRST - 5 - 6], *pieces[-6:], ("<mask>", 0.0)]
    assert len(vocabulary) == FIRST
    folder = tmp_path_factory.mktemp("xlmr")
    XLMRobertaTokenizer(vocab=vocabulary).save_pretrained(folder)
    return folder


def load(folder: Path) -> Any:
    from transformers import BartForConditionalGeneration

    model, info = BartForConditionalGeneration.from_pretrained(folder, output_loading_info=True)
    assert {name: found for name, found in info.items() if found} == {}
    return model.eval()


@torch.no_grad()
def model_logits(model: Any, source: Tensor, target: Tensor) -> Tensor:
    return model(
        input_ids=source, attention_mask=source.ne(PAD).long(), decoder_input_ids=target,
        decoder_attention_mask=target.ne(PAD).long(),
    ).logits  # fmt: skip


@pytest.mark.parametrize("zipped", [True, False], ids=["today's format", "before PyTorch 1.6"])
@pytest.mark.parametrize("precision", [torch.float32, torch.float16])
def test_logits_are_those_of_fairseqs_graph(write: Write, tmp_path: Path, zipped: bool, precision: torch.dtype) -> None:
    state = {name: value.to(precision) for name, value in fairseq_state().items()}
    model = load(convert_unicoder(write(state, zipped=zipped), tmp_path / "out"))
    assert model.dtype == torch.float32
    source, target = batch()
    exact = {name: value.float() for name, value in state.items()}
    expected, found = reference_logits(exact, source, target), model_logits(model, source, target)
    kept = target.ne(PAD)
    assert float(expected[kept].std()) > 0.5, "weights that hardly matter would hide a swapped one"
    torch.testing.assert_close(found[kept], expected[kept], atol=1e-5, rtol=1e-5)


@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 10**6), layers=st.tuples(st.integers(1, 3), st.integers(1, 3)), scaled=st.booleans())
def test_any_weights_and_depths(tmp_path: Path, seed: int, layers: tuple[int, int], scaled: bool) -> None:
    from transformers import BartForConditionalGeneration

    state = fairseq_state(seed, layers)
    config, weights = convert_state(state, {**ARGUMENTS, "no_scale_embedding": not scaled})
    assert (config.encoder_layers, config.decoder_layers) == layers
    model = BartForConditionalGeneration(config).eval()
    missing, unexpected = model.load_state_dict(weights, strict=False)
    assert unexpected == []
    assert set(missing) <= {f"{part}.weight" for part in (
        "model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head")}  # fmt: skip
    model.tie_weights()
    source, target = batch(seed)
    exact = {name: value.double() if value.is_floating_point() else value for name, value in state.items()}
    expected = reference_logits(exact, source, target, scale=math.sqrt(WIDTH) if scaled else 1.0)
    kept = target.ne(PAD)
    found = model_logits(model.double(), source, target)  # in float64: random weights can cancel to any rounding
    torch.testing.assert_close(found[kept], expected[kept], atol=1e-8, rtol=1e-6)


def test_the_folder_says_what_the_checkpoint_is(write: Write, tmp_path: Path) -> None:
    out = convert_unicoder(write(), tmp_path / "deep" / "out")
    assert sorted(path.name for path in out.iterdir()) == [
        "config.json", "generation_config.json", "model.safetensors",
    ]  # fmt: skip
    config = json.loads((out / "config.json").read_text())
    expected = {
        "architectures": ["BartForConditionalGeneration"], "vocab_size": VOCAB, "d_model": WIDTH, "encoder_layers": 2,
        "decoder_layers": 3, "encoder_ffn_dim": FFN, "decoder_ffn_dim": FFN, "encoder_attention_heads": HEADS,
        "max_position_embeddings": ROWS - 2, "scale_embedding": True, "dropout": 0.3, "attention_dropout": 0.2,
        "activation_function": "gelu", "pad_token_id": 1, "eos_token_id": FIRST, "decoder_start_token_id": None,
        "dtype": "float32",
    }  # fmt: skip
    assert {key: config[key] for key in expected} == expected
    generation = json.loads((out / "generation_config.json").read_text())
    assert (generation["num_beams"], generation["eos_token_id"]) == (5, FIRST)
    assert generation["max_new_tokens"] < ROWS - 2, "no position is left beyond"
    weights = load_file(out / "model.safetensors")
    assert {tensor.dtype for tensor in weights.values()} == {torch.float32}
    assert not {name for name in weights if "embed_tokens" in name or "lm_head" in name or "version" in name}


def test_later_fairseq_writes_cfg_and_an_output_projection(tmp_path: Path) -> None:
    state = fairseq_state()
    state["decoder.output_projection.weight"] = state["decoder.embed_tokens.weight"]
    keys = ("common_eos", "langs", "placeholder")
    cfg = {
        "task": argparse.Namespace(**{key: ARGUMENTS[key] for key in keys}),
        "model": {key: value for key, value in ARGUMENTS.items() if key not in keys},
    }
    torch.save({"cfg": cfg, "args": None, "model": state}, tmp_path / "checkpoint.pt")
    read, arguments = read_fairseq(tmp_path / "checkpoint.pt", "Unicoder-xDAE")
    assert arguments == ARGUMENTS
    assert convert_state(read, arguments)[0].eos_token_id == FIRST


# --- tags and tokenizer


def test_the_official_layout() -> None:
    assert (len(LANGUAGE_TAGS), len(set(LANGUAGE_TAGS)), VOCABULARY) == (100, 100, 250_303)
    assert set(MRS_CODES) <= set(LANGUAGE_TAGS)
    config = unicoder_config()
    shape = (config.encoder_layers, config.decoder_layers, config.d_model, config.max_position_embeddings)
    assert shape == (12, 12, 768, 512)
    assert (config.vocab_size, config.eos_token_id) == (250_303, 250_002)
    official = read_tags({}, VOCABULARY)
    assert official == Tags()
    assert official.tokens()[:3] == ["[EOS]", "[af]", "[als]"]
    assert official.tokens()[101] == "[placeholder_0]"
    assert read_tags({}, VOCAB) is None
    # Pre-training's names of the same arguments, and languages left out.
    assert read_tags({"common_eos": "EOS", "langs": None, "add_placeholder": 200}, VOCABULARY) == official


def test_the_tokenizer_has_the_tags_at_their_ids(write: Write, tmp_path: Path, xlmr: Path) -> None:
    from transformers import AutoTokenizer

    out = convert_unicoder(write(), tmp_path / "out", str(xlmr))
    tokenizer, plain = AutoTokenizer.from_pretrained(out), AutoTokenizer.from_pretrained(xlmr)
    tags = ["[EOS]", "[de]", "[en]", "[es]", "[placeholder_0]"]
    assert tokenizer.convert_tokens_to_ids(tags) == list(range(FIRST, FIRST + 5))
    assert len(tokenizer) == VOCAB
    assert (tokenizer.eos_token_id, tokenizer.sep_token_id, tokenizer.pad_token_id) == (FIRST, 2, PAD)
    pieces = plain("a b c", add_special_tokens=False)["input_ids"]
    assert tokenizer("a b c")["input_ids"] == [*pieces, 2, FIRST]
    assert tokenizer("a b c", truncation=True, max_length=4)["input_ids"] == [*pieces[:2], 2, FIRST]
    assert tokenizer.model_max_length == ROWS - 2
    assert max(tokenizer("a [EOS] b [en] [placeholder_0]")["input_ids"][:-1]) < FIRST, "a text must not write a tag"
    reply = [FIRST + 2, *pieces, 2, FIRST]
    assert tokenizer.decode(reply, skip_special_tokens=True) == "a b c"
    tokenizer.save_pretrained(tmp_path / "again")
    assert AutoTokenizer.from_pretrained(tmp_path / "again")("a [en]")["input_ids"] == tokenizer("a [en]")["input_ids"]


def test_generation_needs_a_language_and_ends_at_the_end_tag(write: Write, tmp_path: Path) -> None:
    model = load(convert_unicoder(write(), tmp_path / "out"))
    source = batch()[0][:2]
    inputs = {"input_ids": source, "attention_mask": source.ne(PAD).long()}
    with pytest.raises(ValueError, match="decoder_start_token_id"):
        model.generate(**inputs)
    replies = model.generate(**inputs, decoder_start_token_id=[FIRST + 1, FIRST + 2])
    assert replies[:, 0].tolist() == [FIRST + 1, FIRST + 2]
    for reply in replies.tolist():
        written = reply[: reply.index(FIRST) + 1] if FIRST in reply else reply
        assert written[-1] == FIRST
        assert set(reply[len(written) :]) <= {PAD}


# --- refusals: one sentence, and nothing half-written


def refused(tmp_path: Path, checkpoint: Path, *words: str, out: Path | None = None, **options: Any) -> None:
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with pytest.raises(InputError) as caught:
        convert_unicoder(checkpoint, out or tmp_path / "deep" / "out", **options)
    sentence = str(caught.value)
    for word in words:
        assert word in sentence
    assert sentence.endswith(".")
    assert "\n" not in sentence
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


class Payload:
    """Runs a command when it is unpickled; the command makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch {self.mark}",)


@pytest.mark.parametrize("place", ["args", "model", "extra_state", "alone"])
@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_the_file_is_not_run(tmp_path: Path, place: str, zipped: bool) -> None:
    mark, path = tmp_path / "executed", tmp_path / "checkpoint.pt"
    content = {"args": argparse.Namespace(**ARGUMENTS), "model": fairseq_state(), place: Payload(mark)}
    torch.save(content["alone"] if place == "alone" else content, path, _use_new_zipfile_serialization=zipped)
    refused(tmp_path, path, "system", "could run code", str(path))
    assert not mark.exists()
    if zipped:  # the payload does what it should, where nothing prevents it
        torch.load(path, weights_only=False)
        assert mark.exists()


def test_what_is_no_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint.pt"
    refused(tmp_path, path, "no such file")
    refused(tmp_path, tmp_path, "no such file", out=tmp_path.parent / "unicoder-elsewhere")
    for content in (b"", b"hello world\n" * 20, b"PK\x03\x04 no zip"):
        path.write_bytes(content)
        refused(tmp_path, path, str(path), "cut short or damaged")
    for thing in ([torch.ones(2)], {"weights": {}}, {"model": None}, {"model": {}}, {"model": torch.ones(2)}):
        torch.save(thing, path)
        refused(tmp_path, path, "not a fairseq checkpoint", '"model"')
    torch.save({"model": {"encoder.layers": [1, 2]}}, path)
    refused(tmp_path, path, "'encoder.layers' is not a tensor")


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data(), zipped=st.booleans())
def test_damaged_files_never_leave_a_folder_or_a_traceback(
    tmp_path: Path, write: Write, data: st.DataObject, zipped: bool
) -> None:
    content = bytearray(write(fairseq_state(layers=(1, 1)), zipped=zipped).read_bytes())
    if data.draw(st.booleans(), label="cut"):
        content = content[: data.draw(st.integers(0, len(content) - 1), label="length")]
    else:  # nearer to the ends, where the structure is
        for place in data.draw(st.lists(st.integers(-6000, 6000), min_size=1, max_size=8), label="places"):
            content[place % len(content)] ^= data.draw(st.integers(1, 255), label="bits")
    path, out = tmp_path / "damaged.pt", tmp_path / "out"
    path.write_bytes(content)
    with suppress(InputError):  # anything else is a traceback for the user
        convert_unicoder(path, out, overwrite=True)
    assert [found.name for found in tmp_path.iterdir() if "out" in found.name] == ([out.name] if out.exists() else [])


Change = Callable[[dict[str, Tensor]], object]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda s: s.pop("encoder.embed_tokens.weight"), "weight encoder.embed_tokens.weight is missing"),
        (lambda s: s.update({"encoder.layers.7.fc1.bias": torch.ones(FFN)}), "encoder.layers.2.self_attn"),
        (
            lambda s: s.update({"encoder.layer_norm.weight": torch.ones(WIDTH)}),
            "encoder.layer_norm.weight is not one of",
        ),
        (lambda s: [s.pop(k) for k in list(s) if k.startswith("decoder.layers")], "decoder.layers.0.fc1.weight is mis"),
        (
            lambda s: s.update({"encoder.layers.1.fc2.weight": torch.ones(WIDTH, FFN + 1)}),
            f"encoder.layers.1.fc2.weight has shape ({WIDTH}, {FFN + 1}), the others require ({WIDTH}, {FFN})",
        ),
        (lambda s: s.update({"encoder.embed_tokens.weight": torch.ones(5)}), "has shape (5,), expected a matrix"),
        (lambda s: s.update({"encoder.embed_positions.weight": torch.ones(2, WIDTH)}), "2 positions leave no room"),
        (lambda s: s["encoder.layers.0.fc1.weight"].fill_(math.nan), "0.fc1.weight has values that are not finite"),
        (lambda s: s.update({"decoder.embed_tokens.weight": torch.ones(VOCAB, WIDTH)}), "embed_tokens.weight differs"),
    ],
)
def test_weights_of_another_model(tmp_path: Path, write: Write, change: Change, words: str) -> None:
    state = fairseq_state()
    change(state)
    path = write(state)
    refused(tmp_path, path, str(path), words)


@pytest.mark.parametrize(("arguments", "words"), cases(__file__, "test_arguments_of_another_model"))
def test_arguments_of_another_model(tmp_path: Path, write: Write, arguments: dict[str, object], words: str) -> None:
    path = write(**arguments)
    refused(tmp_path, path, str(path), words)


def test_tokenizers_that_do_not_fit(tmp_path: Path, write: Write, xlmr: Path) -> None:
    path = write()
    refused(tmp_path, path, "--tokenizer", "cannot load", tokenizer=str(tmp_path / "none"))
    other = write(name="other.pt", langs="de,en")
    refused(tmp_path, other, f"with {FIRST + 1} tokens", f"found {FIRST} that begin", tokenizer=str(xlmr))
    twice = write(name="twice.pt", langs="de,en,en")
    refused(tmp_path, twice, "'[en]'", "is repeated", tokenizer=str(xlmr))
    spaced = write(name="spaced.pt", langs="de,e n,es")
    refused(tmp_path, spaced, "'[e n]' is not a tag", tokenizer=str(xlmr))
    refused(tmp_path, path, "--language-tags", "--tokenizer", language_tags=("en",))
    broken = tmp_path / "broken"
    shutil.copytree(xlmr, broken)
    (broken / "tokenizer.json").write_text('{"version": ')
    refused(tmp_path, path, "--tokenizer", "cannot load", tokenizer=str(broken))


def test_an_input_inside_the_output_is_not_replaced(tmp_path: Path, write: Write, xlmr: Path) -> None:
    out = convert_unicoder(write(), tmp_path / "out")
    shutil.move(tmp_path / "checkpoint.pt", out / "checkpoint.pt")
    refused(tmp_path, out / "checkpoint.pt", "would be replaced", out=out, overwrite=True)
    shutil.copytree(xlmr, tmp_path / "tokenizer")
    (tmp_path / "tokenizer" / "config.json").write_text("{}")
    refused(
        tmp_path, write(), "would be replaced", out=tmp_path / "tokenizer", overwrite=True,
        tokenizer=str(tmp_path / "tokenizer"),
    )  # fmt: skip
