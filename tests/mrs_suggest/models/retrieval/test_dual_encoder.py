"""The dual encoder: its shapes, the plain dot product, lengths, pooling, freezing, saving."""

import shutil
from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import (
    BoW,
    Dense,
    Normalize,
    Pooling,
    StaticEmbedding,
    Transformer,
)

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.encoder_layers import freeze
from mrs_suggest.models.retrieval.message_encoder import MessageEncoder
from mrs_suggest.models.retrieval.routes import build_settings, encoders
from tests.cases import cases

TEXTS = ["how are you?", "元気ですか", "a b c d", "Спасибо"]


def letters(count: int, last: str = "b") -> str:
    """`count` pieces, the last one as given."""
    return " ".join(["a"] * (count - 1) + [last])


@pytest.fixture(scope="module")
def distilled(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Path:
    """An encoder without a pooler, which keeps its layers under another name."""
    from transformers import AutoTokenizer, DistilBertConfig, DistilBertModel

    folder = tmp_path_factory.mktemp("distilled")
    tokenizer = AutoTokenizer.from_pretrained(checkpoint)
    DistilBertModel(
        DistilBertConfig(vocab_size=len(tokenizer), dim=16, n_layers=1, n_heads=2, hidden_dim=32)
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def sentence_model(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Path:
    """A sentence-transformers checkpoint with a projection, a normalisation, prompts and a length of its own."""
    folder = tmp_path_factory.mktemp("sentence_model")
    transformer = Transformer(str(checkpoint), max_seq_length=9, processing_kwargs={"text": {"max_length": 9}})
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        dense = Dense(16, 8)
    modules = [transformer, Pooling(16, "mean"), dense, Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu", prompts={"query": "z z z "})
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


SHAPES: dict[str, dict[str, object]] = cases(__file__, "SHAPES")


def build_shape(folder: Path, shape: str, **arguments: object) -> SentenceTransformer:
    return build_dual_encoder(str(folder), **{**SHAPES[shape], **arguments})  # type: ignore[arg-type]


def shake(model: SentenceTransformer, seed: int = 3) -> None:
    """Other weights, as after training."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator) * 0.1)


def assert_cut_at(model: SentenceTransformer, message: int, reply: int) -> None:
    """Texts of single letters are cut after so many pieces."""
    for encode, room in ((encode_messages, message), (encode_replies, reply)):
        inside = encode(model, [letters(room), letters(room, "c")])
        assert not torch.allclose(inside[0], inside[1], atol=1e-4)
        beyond = encode(model, [letters(room), letters(room) + " c", letters(room) + " d" * 300])
        torch.testing.assert_close(beyond, beyond[:1].expand(3, -1), rtol=1e-5, atol=1e-5)


def test_pooler_output_is_that_of_the_transformers_model(checkpoint: Path) -> None:
    from transformers import AutoModel, AutoTokenizer

    tokenizer, plain = AutoTokenizer.from_pretrained(checkpoint), AutoModel.from_pretrained(checkpoint).eval()
    batch = tokenizer(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = plain(**batch)
    model = build_dual_encoder(str(checkpoint), "pooler")
    torch.testing.assert_close(encode_messages(model, TEXTS), expected.pooler_output, rtol=1e-4, atol=1e-5)
    torch.testing.assert_close(encode_replies(model, TEXTS), expected.pooler_output, rtol=1e-4, atol=1e-5)
    mask = batch["attention_mask"][..., None]
    means = (expected.last_hidden_state * mask).sum(1) / mask.sum(1)
    averaged = build_dual_encoder(str(checkpoint), "mean")
    torch.testing.assert_close(encode_messages(averaged, TEXTS), means, rtol=1e-4, atol=1e-5)
    assert not torch.allclose(means, expected.pooler_output, atol=1e-2)
    first = build_dual_encoder(str(checkpoint), "cls")
    torch.testing.assert_close(encode_replies(first, TEXTS), expected.last_hidden_state[:, 0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("pooling", ["pooler", "mean"])
def test_each_side_is_cut_at_its_own_length(checkpoint: Path, pooling: str) -> None:
    assert_cut_at(build_dual_encoder(str(checkpoint), pooling), 68, 28)  # 70 and 30 with [CLS] and [SEP]
    longer_replies = build_shape(checkpoint, "one", pooling=pooling, message_tokens=6, reply_tokens=20)
    assert_cut_at(longer_replies, 4, 18)


@pytest.mark.parametrize(
    ("embeddings", "layers", "expected"),
    [
        (False, 0, ()),
        (True, 2, ("embeddings.", "encoder.layer.0.", "encoder.layer.1.")),
        (False, 1, ("encoder.layer.0.",)),
    ],
)
def test_freeze_takes_embeddings_and_lowest_layers_of_both(
    checkpoint: Path, embeddings: bool, layers: int, expected: tuple[str, ...]
) -> None:
    model = build_dual_encoder(str(checkpoint), "pooler")
    before = [{name for name, p in encoder.named_parameters() if p.requires_grad} for encoder in encoders(model)]
    freeze(model, embeddings, layers)
    for encoder, trained in zip(encoders(model), before, strict=True):
        frozen = {name for name, p in encoder.named_parameters() if not p.requires_grad} & trained
        wanted = {name for name, _ in encoder.named_parameters() if name.startswith(expected)} if expected else set()
        assert frozen == wanted


def test_layers_and_a_pooler_that_are_not_there_are_refused(checkpoint: Path, distilled: Path) -> None:
    with pytest.raises(InputError, match=r"--freeze_layers 4: expected at most 3, the encoder's number of layers\."):
        freeze(build_dual_encoder(str(checkpoint)), True, 4)
    with pytest.raises(InputError, match=r"--encoders static: .* pass --freeze_layers 0"):
        freeze(build_shape(checkpoint, "static"), True, 0)
    with pytest.raises(InputError, match="DistilBertModel does not keep its layers as BERT"):
        freeze(build_dual_encoder(str(distilled), "mean"), True, 1)
    with pytest.raises(InputError, match=r"has no pooler; choose mean, cls or max\."):
        build_dual_encoder(str(distilled), "pooler")


def one_sentence(error: BaseException) -> bool:
    return "\n" not in str(error) and str(error).endswith(".")


@pytest.mark.parametrize("name", ["no/such-model", "./nowhere/at/all", "single", "cut"])
def test_a_missing_checkpoint_is_refused_in_a_sentence(
    name: str, checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "cut":
        shutil.copytree(checkpoint, name)
        Path(name, "model.safetensors").write_bytes(Path(name, "model.safetensors").read_bytes()[:2000])
    with pytest.raises(InputError, match="--model_name_or_path") as caught:
        build_dual_encoder(name)
    assert name in str(caught.value)
    assert one_sentence(caught.value)


def test_pickled_weights_are_never_loaded(checkpoint: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    for path in checkpoint.iterdir():
        if path.suffix == ".json":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    torch.save(AutoModel.from_pretrained(checkpoint).state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot load the encoder"):
        build_dual_encoder(str(tmp_path))


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_survives_saving_and_loading(checkpoint: Path, tmp_path: Path, shape: str) -> None:
    model = build_shape(checkpoint, shape, message_tokens=12, reply_tokens=7)
    shake(model)
    model.save_pretrained(str(tmp_path), create_model_card=False)
    loaded = load_dual_encoder(tmp_path)
    for encode in (encode_messages, encode_replies):
        torch.testing.assert_close(encode(loaded, TEXTS), encode(model, TEXTS), rtol=0, atol=1e-6)
    assert build_settings(loaded) == build_settings(model)
    assert len(encoders(loaded)) == len(encoders(model))
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".bin", ".pt", ".pkl")]
    assert (MessageEncoder.load(tmp_path) is None) == (shape == "static")  # which it cannot run
    special = 0 if shape == "static" else 2
    assert_cut_at(loaded, 12 - special, 7 - special)
    assert_cut_at(model, 12 - special, 7 - special)
    shake(model, 4)  # the way in which a trainer goes back to a checkpoint
    model.load_state_dict(loaded.state_dict())
    torch.testing.assert_close(encode_replies(model, TEXTS), encode_replies(loaded, TEXTS), rtol=0, atol=1e-6)


def test_one_encoder_is_one(checkpoint: Path, tmp_path: Path) -> None:
    model = build_shape(checkpoint, "one")
    shake(model)
    model.save_pretrained(str(tmp_path), create_model_card=False)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1
    single = sum(p.numel() for p in build_shape(checkpoint, "two").parameters()) // 2
    for shared in (model, load_dual_encoder(tmp_path)):
        (encoder,) = encoders(shared)
        assert sum(p.numel() for p in shared.parameters()) == single == sum(p.numel() for p in encoder.parameters())
        before = encode_replies(shared, TEXTS)
        torch.testing.assert_close(encode_messages(shared, TEXTS), before)
        shake(shared)
        after = encode_replies(shared, TEXTS)
        torch.testing.assert_close(encode_messages(shared, TEXTS), after)
        assert not torch.allclose(before, after, atol=1e-3)


def test_static_vectors_are_means_of_a_table_a_route(checkpoint: Path) -> None:
    model = build_shape(checkpoint, "static")
    query, document = encoders(model)
    assert isinstance(query, StaticEmbedding)
    assert isinstance(document, StaticEmbedding)
    assert query.embedding.weight.data_ptr() != document.embedding.weight.data_ptr()
    assert torch.equal(encode_messages(model, TEXTS), encode_replies(model, TEXTS))  # they start alike
    assert encode_messages(model, TEXTS).shape == (len(TEXTS), 12)
    single = encode_messages(model, ["a", "b"])
    torch.testing.assert_close(encode_messages(model, ["a b a"])[0], (2 * single[0] + single[1]) / 3)
    assert torch.equal(encode_messages(model, [""]), torch.zeros(1, 12))
    before = encode_replies(model, TEXTS)
    with torch.no_grad():
        query.embedding.weight.add_(1)
    assert torch.equal(encode_replies(model, TEXTS), before)
    lengths = encode_messages(build_shape(checkpoint, "static", dimension=400), list("abcdefgh")).norm(dim=1)
    assert (lengths - 1).abs().max() < 0.2  # near 1 for any dimension, so that unscaled scores start small


@pytest.mark.parametrize("shape", ["two", "one"])
def test_a_sentence_transformers_model_keeps_its_modules(sentence_model: Path, tmp_path: Path, shape: str) -> None:
    model = build_shape(sentence_model, shape, pooling=None)
    original = SentenceTransformer(str(sentence_model), device="cpu")
    expected = original.encode(TEXTS, convert_to_tensor=True)
    torch.testing.assert_close(encode_replies(model, TEXTS), expected, rtol=1e-5, atol=1e-5)  # it has no prompt
    queries = original.encode_query(TEXTS, convert_to_tensor=True)
    torch.testing.assert_close(encode_messages(model, TEXTS), queries, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(queries, expected, atol=1e-2)
    assert expected.shape == (len(TEXTS), 8)
    torch.testing.assert_close(expected.norm(dim=1), torch.ones(len(TEXTS)))
    shake(model)
    model.save_pretrained(str(tmp_path), create_model_card=False)
    loaded = load_dual_encoder(tmp_path)
    for encode in (encode_messages, encode_replies):
        torch.testing.assert_close(encode(loaded, TEXTS), encode(model, TEXTS), rtol=0, atol=1e-6)
    assert_cut_at(loaded, 65, 28)  # our limits, not the model's own; its prompt has three tokens
    assert build_settings(loaded)["pooling"] is None
    assert MessageEncoder.load(tmp_path) is None  # it knows no projection


def test_weights_that_a_checkpoint_lacks_are_the_same_each_time(checkpoint: Path, tmp_path: Path) -> None:
    from transformers import BertModel

    shutil.copytree(checkpoint, tmp_path, dirs_exist_ok=True)
    BertModel.from_pretrained(checkpoint, add_pooling_layer=False).save_pretrained(tmp_path)  # as XLM-R is published
    first, again = build_dual_encoder(str(tmp_path)), build_dual_encoder(str(tmp_path))
    assert torch.equal(encode_messages(first, TEXTS), encode_messages(again, TEXTS))
    assert torch.equal(encode_messages(first, TEXTS), encode_replies(first, TEXTS))  # both routes start alike
    assert not torch.equal(
        encode_messages(first, TEXTS), encode_messages(build_dual_encoder(str(tmp_path), seed=1), TEXTS)
    )


def test_a_sentence_transformers_model_without_a_transformer_is_refused(tmp_path: Path) -> None:
    words = BoW(vocab=["a", "b"])
    SentenceTransformer(modules=[words], device="cpu").save_pretrained(str(tmp_path), create_model_card=False)
    with pytest.raises(InputError, match=r"begins with a Transformer, found BoW; ") as caught:
        build_dual_encoder(str(tmp_path))
    assert one_sentence(caught.value)


@pytest.mark.parametrize("name", ["modules.json", "2_Dense/config.json", "2_Dense/model.safetensors"])
def test_a_damaged_sentence_transformers_model_is_refused(sentence_model: Path, tmp_path: Path, name: str) -> None:
    shutil.copytree(sentence_model, tmp_path, dirs_exist_ok=True)
    (tmp_path / name).write_bytes((tmp_path / name).read_bytes()[:-20])
    with pytest.raises(InputError, match="cannot load the encoder") as caught:
        build_dual_encoder(str(tmp_path), None)
    assert "\n" not in str(caught.value)


def test_code_of_a_model_is_never_run(sentence_model: Path, tmp_path: Path) -> None:
    shutil.copytree(sentence_model, tmp_path, dirs_exist_ok=True)
    listed = (tmp_path / "modules.json").read_text()
    kind = f"{Normalize.__module__}.Normalize"
    assert kind in listed
    (tmp_path / "modules.json").write_text(listed.replace(kind, "own.Normalize"))
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Normalize: pass\n")
    with pytest.raises(InputError, match="cannot load the encoder"):
        build_dual_encoder(str(tmp_path), None)
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(("arguments", "sentence"), cases(__file__, "test_impossible_arguments_are_refused"))
def test_impossible_arguments_are_refused(checkpoint: Path, arguments: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        build_dual_encoder(str(checkpoint), **arguments)  # type: ignore[arg-type]
