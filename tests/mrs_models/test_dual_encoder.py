"""The dual encoder: two encoders, the plain dot product, lengths, pooling, freezing, saving."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from sentence_transformers import SentenceTransformer

from mrs_core.errors import InputError
from mrs_models.dual_encoder import build_dual_encoder, encoders, freeze, load_dual_encoder
from mrs_models.suggester import encode_messages, encode_replies

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


def test_the_two_encoders_share_no_weights(checkpoint: Path) -> None:
    model = build_dual_encoder(str(checkpoint))
    query, document = encoders(model)
    places = [{p.data_ptr() for p in encoder.parameters()} for encoder in (query, document)]
    assert not places[0] & places[1]
    assert torch.equal(encode_messages(model, TEXTS), encode_replies(model, TEXTS))  # one checkpoint
    before = encode_replies(model, TEXTS)
    with torch.no_grad():
        for parameter in query.parameters():
            parameter.add_(0.5)
    assert torch.equal(encode_replies(model, TEXTS), before)
    assert not torch.allclose(encode_messages(model, TEXTS), before)


def test_the_score_is_the_plain_dot_product(checkpoint: Path) -> None:
    model = build_dual_encoder(str(checkpoint), "mean")
    messages, replies = encode_messages(model, TEXTS), encode_replies(model, TEXTS[::-1])
    torch.testing.assert_close(model.similarity(messages, replies), messages @ replies.T)
    assert (messages.norm(dim=1) - 1).abs().min() > 0.1  # not normalised: a cosine would hide the vectors' lengths


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
@pytest.mark.parametrize("saved", [False, True])
def test_each_side_is_cut_at_its_own_length(checkpoint: Path, tmp_path: Path, pooling: str, saved: bool) -> None:
    model = build_dual_encoder(str(checkpoint), pooling)
    if saved:
        model.save_pretrained(str(tmp_path))
        model = load_dual_encoder(tmp_path)
    for encode, room in ((encode_messages, 68), (encode_replies, 28)):  # 70 and 30 with [CLS] and [SEP]
        inside = encode(model, [letters(room), letters(room, "c")])
        assert not torch.allclose(inside[0], inside[1], atol=1e-3)
        beyond = encode(
            model, [letters(room + 1), letters(room + 1, "c"), letters(room + 300, "d"), letters(room, "a")]
        )
        torch.testing.assert_close(beyond, beyond[3:].expand(4, -1), rtol=1e-5, atol=1e-5)


def test_other_lengths(checkpoint: Path) -> None:
    model = build_dual_encoder(str(checkpoint), "mean", message_tokens=5, reply_tokens=4)
    cut = encode_messages(model, [letters(3), letters(3, "a") + " z z", letters(3) + " z z"])
    assert not torch.allclose(cut[0], cut[1], atol=1e-3)
    torch.testing.assert_close(cut[0], cut[2])
    cut = encode_replies(model, [letters(2), letters(2) + " z z"])
    torch.testing.assert_close(cut[0], cut[1])


@pytest.mark.parametrize("pooling", ["pooler", "mean"])
def test_saved_and_loaded_gives_the_same_vectors(checkpoint: Path, tmp_path: Path, pooling: str) -> None:
    model = build_dual_encoder(str(checkpoint), pooling)
    with torch.no_grad():
        for parameter in encoders(model)[0].parameters():
            parameter.mul_(1.3)
    model.save_pretrained(str(tmp_path), create_model_card=False, safe_serialization=True)
    loaded = load_dual_encoder(tmp_path)
    for encode in (encode_messages, encode_replies):
        torch.testing.assert_close(encode(loaded, TEXTS), encode(model, TEXTS))
    assert not torch.allclose(encode_messages(loaded, TEXTS), encode_replies(loaded, TEXTS), atol=1e-2)
    assert loaded.similarity_fn_name == "dot"
    assert not [path for path in tmp_path.rglob("*") if path.suffix in (".bin", ".pt", ".pkl")]


@pytest.mark.parametrize("pooling", ["pooler", "mean"])
@pytest.mark.parametrize(
    ("embeddings", "layers", "expected"),
    [
        (False, 0, ()),
        (True, 0, ("embeddings.",)),
        (True, 2, ("embeddings.", "encoder.layer.0.", "encoder.layer.1.")),
        (False, 1, ("encoder.layer.0.",)),
    ],
)
def test_freeze_takes_embeddings_and_lowest_layers_of_both(
    checkpoint: Path, pooling: str, embeddings: bool, layers: int, expected: tuple[str, ...]
) -> None:
    model = build_dual_encoder(str(checkpoint), pooling)
    before = [{name for name, p in encoder.named_parameters() if p.requires_grad} for encoder in encoders(model)]
    count = freeze(model, embeddings, layers)
    total = 0
    for encoder, trained in zip(encoders(model), before, strict=True):
        frozen = {name for name, p in encoder.named_parameters() if not p.requires_grad} & trained
        wanted = {name for name, _ in encoder.named_parameters() if name.startswith(expected)} if expected else set()
        assert frozen == wanted
        total += sum(p.numel() for name, p in encoder.named_parameters() if name in wanted)
    assert count == total


def test_freezing_more_layers_than_there_are_is_refused(checkpoint: Path) -> None:
    with pytest.raises(InputError, match=r"--freeze_layers 4: the encoder has only 3 layers\."):
        freeze(build_dual_encoder(str(checkpoint)), True, 4)


def test_freezing_layers_under_other_names_is_refused(distilled: Path) -> None:
    with pytest.raises(InputError, match="DistilBertModel does not keep its layers as BERT"):
        freeze(build_dual_encoder(str(distilled), "mean"), True, 1)


def test_a_checkpoint_without_pooler_is_refused(distilled: Path) -> None:
    with pytest.raises(InputError, match=r"has no pooler; choose mean, cls or max\."):
        build_dual_encoder(str(distilled), "pooler")


def one_sentence(error: BaseException) -> bool:
    return "\n" not in str(error) and str(error).endswith(".")


@pytest.mark.parametrize("name", ["no/such-model", "./nowhere/at/all", "single"])
def test_a_missing_checkpoint_is_refused_in_a_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match="--model_name_or_path") as caught:
        build_dual_encoder(name)
    assert name in str(caught.value)
    assert one_sentence(caught.value)


def test_a_damaged_checkpoint_is_refused_in_a_sentence(checkpoint: Path, tmp_path: Path) -> None:
    for path in checkpoint.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:2000])
    with pytest.raises(InputError, match="cannot load the encoder") as caught:
        build_dual_encoder(str(tmp_path))
    assert one_sentence(caught.value)


def test_pickled_weights_are_never_loaded(checkpoint: Path, tmp_path: Path) -> None:
    from transformers import AutoModel

    for path in checkpoint.iterdir():
        if path.suffix == ".json":
            (tmp_path / path.name).write_bytes(path.read_bytes())
    torch.save(AutoModel.from_pretrained(checkpoint).state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(InputError, match="cannot load the encoder"):
        build_dual_encoder(str(tmp_path))


def test_unknown_pooling_is_refused(checkpoint: Path) -> None:
    with pytest.raises(InputError, match=r"--pooling: expected one of pooler, mean, cls, max, found 'last'\."):
        build_dual_encoder(str(checkpoint), "last")


def test_max_pooling_differs(checkpoint: Path) -> None:
    models: list[SentenceTransformer] = [build_dual_encoder(str(checkpoint), p) for p in ("max", "mean")]
    assert not torch.allclose(*(encode_messages(model, TEXTS) for model in models), atol=1e-2)
