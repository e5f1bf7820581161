"""Fewer layers, and learning rates by layer."""

from pathlib import Path
from typing import Any

import pytest
import torch

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages
from mrs_suggest.models.retrieval.encoder_layers import attend_in_bfloat16, rate_factors, set_dropout
from mrs_suggest.models.retrieval.message_encoder import MessageEncoder
from mrs_suggest.models.retrieval.routes import build_settings, encoders

TEXTS = ["how are you?", "元気ですか", "a b c d"]


@pytest.mark.parametrize("kind", ["two", "one"])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_the_first_layers_are_kept(checkpoint: Path, tmp_path: Path, kind: str, layers: int) -> None:
    """The vectors are those of the checkpoint's hidden states after so many layers."""
    from transformers import AutoModel, AutoTokenizer

    model = build_dual_encoder(str(checkpoint), "cls", encoders=kind, layers=layers)
    tokenizer, plain = AutoTokenizer.from_pretrained(checkpoint), AutoModel.from_pretrained(checkpoint).eval()
    with torch.no_grad():
        states = plain(**tokenizer(TEXTS, padding=True, return_tensors="pt"), output_hidden_states=True).hidden_states
    expected = states[layers][:, 0]
    model.save_pretrained(str(tmp_path), create_model_card=False)
    loaded = load_dual_encoder(tmp_path)
    for kept in (model, loaded):
        torch.testing.assert_close(encode_messages(kept, TEXTS), expected, rtol=0, atol=1e-5)
        assert build_settings(kept)["layers"] == layers
        assert not [name for name in kept.state_dict() if f".layer.{layers}." in name]
    short = MessageEncoder.load(tmp_path)
    assert short is not None
    torch.testing.assert_close(torch.from_numpy(short.encode(TEXTS)), expected, rtol=0, atol=1e-5)
    again = build_dual_encoder(str(tmp_path))  # a start with fewer layers
    assert build_settings(again) == build_settings(model)


def test_layers_that_are_not_there_are_refused(checkpoint: Path) -> None:
    with pytest.raises(InputError, match=r"^--layers 4: expected at most 3, the encoder's number of layers\.$"):
        build_dual_encoder(str(checkpoint), layers=4)
    with pytest.raises(InputError, match=r"^--layers: expected 1 or more, found 0\.$"):
        build_dual_encoder(str(checkpoint), layers=0)


def test_rates_fall_from_the_top_to_the_embeddings(checkpoint: Path) -> None:
    model = build_dual_encoder(str(checkpoint), "pooler")
    factors = rate_factors(model, 0.5)
    for encoder in encoders(model):
        for name, parameter in encoder.named_parameters():
            expected = {"embeddings": 0.125, "layer.0": 0.25, "layer.1": 0.5, "layer.2": 1.0, "pooler": 1.0}
            (share,) = (value for part, value in expected.items() if f"{part}." in f"{name}.")
            assert factors.get(id(parameter), 1.0) == share, name


def test_without_dropout_training_vectors_are_those_of_answering(checkpoint: Path) -> None:
    model: Any = build_dual_encoder(str(checkpoint), "mean")
    expected = encode_messages(model, TEXTS)

    def trained() -> torch.Tensor:
        with torch.no_grad():
            return model.train()(model.preprocess(TEXTS), task="query")["sentence_embedding"]

    assert (trained() - expected).abs().max() > 1e-3
    set_dropout(model, 0)
    torch.testing.assert_close(trained(), expected, rtol=0, atol=1e-5)
    assert encoders(model)[0].config.hidden_dropout_prob > 0  # the next run has the checkpoint's again
    attend_in_bfloat16(model)
    torch.testing.assert_close(trained(), expected, rtol=0, atol=1e-5)
    for probability in (-0.1, 1.0, float("nan")):
        with pytest.raises(InputError, match=r"^--dropout: expected 0 or more and less than 1, found "):
            set_dropout(model, probability)
    with pytest.raises(InputError, match=r"^--dropout: static vectors are one table without layers; leave it out"):
        set_dropout(build_dual_encoder(str(checkpoint), encoders="static"), 0)
