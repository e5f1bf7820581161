"""Every kind of checkpoint is a start: what it has is kept, unless an argument says otherwise."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, StaticEmbedding
from tokenizers import Tokenizer

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.routes import build_settings, encoders
from mrs_suggest.models.starting_points import ENCODER, RETRIEVER, STATIC, start_kind
from tests.cases import cases
from tests.mrs_suggest.models.retrieval.test_dual_encoder import shake

TEXTS = ["how are you?", "元気ですか", "a b c d e f g h i j k l", "Спасибо", "z " * 50]
SHAPES: dict[str, dict[str, Any]] = cases(__file__, "SHAPES")


def trained(checkpoint: Path, folder: Path, shape: str) -> SentenceTransformer:
    """A retriever in `folder`, with lengths of its own."""
    model = build_dual_encoder(str(checkpoint), message_tokens=12, reply_tokens=7, **SHAPES[shape])
    shake(model)
    model.save_pretrained(str(folder), create_model_card=False)
    return model.eval()


def assert_same_vectors(mine: SentenceTransformer, theirs: SentenceTransformer) -> None:
    for encode in (encode_messages, encode_replies):
        torch.testing.assert_close(encode(mine, TEXTS), encode(theirs, TEXTS), rtol=0, atol=1e-6)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_trained_retriever_is_kept_whole(checkpoint: Path, tmp_path: Path, shape: str) -> None:
    model = trained(checkpoint, tmp_path / "stage1", shape)
    again = build_dual_encoder(str(tmp_path / "stage1"))
    assert start_kind(str(tmp_path / "stage1")) == RETRIEVER
    assert_same_vectors(again, model)
    assert build_settings(again) == build_settings(model)
    assert len(encoders(again)) == len(encoders(model))
    assert {name for name, p in again.named_parameters() if p.requires_grad} == {
        name for name, p in model.named_parameters() if p.requires_grad
    }
    again.save_pretrained(str(tmp_path / "stage2"), create_model_card=False)
    assert_same_vectors(load_dual_encoder(tmp_path / "stage2"), model)
    if SHAPES[shape]["encoders"] != "one":  # whose routes differ in their prompts and lengths alone
        assert not torch.allclose(encode_messages(again, TEXTS[:1]), encode_replies(again, TEXTS[:1]), atol=1e-3)


def test_arguments_go_before_what_a_retriever_has(checkpoint: Path, tmp_path: Path) -> None:
    model = trained(checkpoint, tmp_path, "one")
    other = build_dual_encoder(
        str(tmp_path), pooling="mean", encoders="two", message_tokens=20, reply_tokens=5, query_prompt="",
        reply_prompt="s ", normalize=True,
    )  # fmt: skip
    assert build_settings(other) == {
        "encoders": "two", "pooling": "mean", "message_tokens": 20, "reply_tokens": 5, "query_prompt": "",
        "reply_prompt": "s ", "normalize": True, "layers": 3,
    }  # fmt: skip
    for encoder in encoders(other):
        for name, weights in encoders(model)[0].state_dict().items():
            assert torch.equal(encoder.state_dict()[name], weights)
    normalised = tmp_path / "normalised"
    trained(checkpoint, normalised, "two")
    assert build_settings(build_dual_encoder(str(normalised), pooling="cls"))["normalize"] is True
    assert build_settings(build_dual_encoder(str(normalised), normalize=False))["normalize"] is False


@pytest.mark.parametrize(
    ("shape", "arguments", "sentence"), cases(__file__, "test_what_a_retriever_cannot_become_is_refused")
)
def test_what_a_retriever_cannot_become_is_refused(
    checkpoint: Path, tmp_path: Path, shape: str, arguments: dict[str, Any], sentence: str
) -> None:
    trained(checkpoint, tmp_path, shape)
    with pytest.raises(InputError, match=sentence) as caught:
        build_dual_encoder(str(tmp_path), **arguments)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("shape", ["two", "static"])
def test_a_retriever_stored_in_16_bits_trains_in_32(checkpoint: Path, tmp_path: Path, shape: str) -> None:
    trained(checkpoint, tmp_path, shape)
    for path in tmp_path.rglob("*.safetensors"):
        save_file({name: value.half() for name, value in load_file(path).items()}, path, metadata={"format": "pt"})
    assert {p.dtype for p in build_dual_encoder(str(tmp_path)).parameters()} == {torch.float32}


@pytest.mark.parametrize("damage", ["router_config.json", "query_0_Transformer/model.safetensors"])
def test_a_damaged_retriever_is_refused(checkpoint: Path, tmp_path: Path, damage: str) -> None:
    trained(checkpoint, tmp_path, "two")
    (tmp_path / damage).write_bytes((tmp_path / damage).read_bytes()[:-30])
    with pytest.raises(InputError, match=r"^--model_name_or_path .*: cannot load the retriever \(") as caught:
        build_dual_encoder(str(tmp_path))
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Path:
    """A sentence-transformers model of token vectors, with a prompt for queries and a normalisation."""
    folder = tmp_path_factory.mktemp("table")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        module = StaticEmbedding(Tokenizer.from_file(str(checkpoint / "tokenizer.json")), embedding_dim=8)
    model = SentenceTransformer(modules=[module, Normalize()], device="cpu", prompts={"query": "q "})
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


def test_a_model_of_token_vectors_gives_both_tables(checkpoint: Path, table: Path, tmp_path: Path) -> None:
    assert (start_kind(str(table)), start_kind(str(checkpoint))) == (STATIC, ENCODER)
    original = SentenceTransformer(str(table), device="cpu")
    model = build_dual_encoder(str(table))
    assert len(encoders(model)) == 2
    assert build_settings(model) == {
        "encoders": "static", "dimension": 8, "pooling": None, "message_tokens": 70, "reply_tokens": 30,
        "query_prompt": "q ", "reply_prompt": "", "normalize": True,
    }  # fmt: skip
    short = TEXTS[:4]
    expected = original.encode_query(short, convert_to_tensor=True)
    torch.testing.assert_close(encode_messages(model, short), expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(
        encode_replies(model, short), original.encode(short, convert_to_tensor=True), rtol=0, atol=1e-6
    )
    before = encode_replies(model, short)
    with torch.no_grad():
        for parameter in encoders(model)[0].parameters():
            parameter.add_(torch.arange(8.0))
    assert torch.equal(encode_replies(model, short), before)  # the tables are two
    model.save_pretrained(str(tmp_path), create_model_card=False)
    assert_same_vectors(load_dual_encoder(tmp_path), model)


def test_a_baseline_is_a_start_by_its_name() -> None:
    folder = read_baselines()["everyday-retriever"].folder
    assert start_kind("everyday-retriever") == RETRIEVER
    named, plain = (build_dual_encoder(name) for name in ("everyday-retriever", str(folder)))
    assert_same_vectors(named, plain)
