"""The short way to a message's vector gives what sentence-transformers gives."""

from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.message_encoder import DOCUMENT, MessageEncoder
from mrs_suggest.models.retrieval.routes import routes_of
from mrs_suggest.suggest.retrieval_suggester import reply_encoder

TEXTS = ["How are you?", "", "明日は元気ですか？", "a b c " * 200, "x", "Как дела? 🙂"]


def saved(checkpoint: Path, pooling: str, folder: Path) -> Path:
    build_dual_encoder(str(checkpoint), pooling).save_pretrained(str(folder))
    return folder


@pytest.mark.parametrize("encoders", ["one", "two"])
def test_reply_vectors_equal_those_of_the_library(checkpoint: Path, encoders: str, tmp_path: Path) -> None:
    model = build_dual_encoder(str(checkpoint), "mean", 70, 30, encoders=encoders, reply_prompt="r ", normalize=True)
    with torch.no_grad():  # so that the routes differ
        for weight in routes_of(model)[1][0].parameters():
            weight.add_(0.01)
    model.save_pretrained(str(tmp_path))
    encoder = MessageEncoder.load(tmp_path, DOCUMENT)
    assert encoder is not None
    expected = encode_replies(load_dual_encoder(tmp_path), TEXTS)
    torch.testing.assert_close(torch.from_numpy(encoder.encode(TEXTS)), expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(torch.from_numpy(reply_encoder(tmp_path)(TEXTS)), expected, rtol=1e-5, atol=1e-5)
    assert not torch.allclose(encode_messages(load_dual_encoder(tmp_path), TEXTS), expected, atol=1e-3)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(max_size=60), max_size=5))
def test_any_text_has_the_vector_that_it_has_alone(shared_encoder: MessageEncoder, texts: list[str]) -> None:
    together = shared_encoder.encode(texts, batch_size=2)
    assert together.shape[0] == len(texts)
    assert np.isfinite(together).all()
    for text, vector in zip(texts, together, strict=True):
        np.testing.assert_allclose(shared_encoder.encode([text])[0], vector, rtol=1e-4, atol=1e-5)


@pytest.fixture(scope="module")
def shared_encoder(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> MessageEncoder:
    encoder = MessageEncoder.load(saved(checkpoint, "mean", tmp_path_factory.mktemp("mean")))
    assert encoder is not None
    return encoder


def test_what_is_no_bert_is_left_to_the_library(checkpoint: Path, tmp_path: Path) -> None:
    folder = saved(checkpoint, "mean", tmp_path)
    config = folder / "query_0_Transformer" / "config.json"
    config.write_text(config.read_text().replace('"model_type": "bert"', '"model_type": "xlm-roberta"'))
    assert MessageEncoder.load(folder) is None
    assert MessageEncoder.load(tmp_path / "nothing") is None
