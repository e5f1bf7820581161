"""Prompts and normalisation: in the vectors, in training, in a saved model, in the short way to a message's vector."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.modules import Normalize, Pooling, Transformer

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder, load_dual_encoder
from mrs_suggest.models.retrieval.encode import encode_messages, encode_replies
from mrs_suggest.models.retrieval.losses import ReplyLoss
from mrs_suggest.models.retrieval.routes import build_settings, prompts_of

TEXTS = ["How are you?", "", "明日は元気ですか？", "a b c " * 40, "x", "Как дела? 🙂", " two  spaces ", "line\nbreak"]
SHAPES: dict[str, dict[str, Any]] = {
    "two": {"encoders": "two", "pooling": "mean"},
    "one": {"encoders": "one", "pooling": "cls"},
    "pooler": {"encoders": "two", "pooling": "pooler"},
    "static": {"encoders": "static", "pooling": None, "dimension": 12},
}


@pytest.mark.parametrize("shape", SHAPES)
def test_a_prompt_is_text_before_the_text_and_vectors_may_have_length_one(
    checkpoint: Path, tmp_path: Path, shape: str
) -> None:
    plain = build_dual_encoder(str(checkpoint), **SHAPES[shape])
    model = build_dual_encoder(str(checkpoint), **SHAPES[shape], query_prompt="z z: ", reply_prompt="q ")
    model.save_pretrained(str(tmp_path), create_model_card=False)
    saved = json.loads((tmp_path / "config_sentence_transformers.json").read_text())
    assert saved["prompts"] == {"query": "z z: ", "document": "q "}
    for prompted in (model, load_dual_encoder(tmp_path)):
        messages = encode_messages(plain, ["z z: " + text for text in TEXTS])
        torch.testing.assert_close(encode_messages(prompted, TEXTS), messages, rtol=0, atol=1e-5)
        replies = encode_replies(plain, ["q " + text for text in TEXTS])
        torch.testing.assert_close(encode_replies(prompted, TEXTS), replies, rtol=0, atol=1e-5)
        assert not torch.allclose(messages, replies, atol=1e-2)
        settings = build_settings(prompted)
        assert (settings["query_prompt"], settings["reply_prompt"]) == prompts_of(prompted) == ("z z: ", "q ")
    model = build_dual_encoder(str(checkpoint), **SHAPES[shape], normalize=True)
    model.save_pretrained(str(tmp_path / "normalised"), create_model_card=False)
    loaded, own = load_dual_encoder(tmp_path / "normalised"), encode_messages(plain, TEXTS)
    expected = torch.nn.functional.normalize(own, dim=1)
    for vectors in (encode_messages(model, TEXTS), encode_messages(loaded, TEXTS)):
        torch.testing.assert_close(vectors, expected, rtol=0, atol=1e-5)
    assert not torch.allclose(own, expected, atol=1e-2)
    assert encode_replies(loaded, TEXTS[2:]).norm(dim=1).sub(1).abs().max() < 1e-5
    assert build_settings(loaded)["normalize"] is True
    assert build_settings(loaded)["pooling"] == SHAPES[shape]["pooling"]


@pytest.fixture(scope="module")
def embedder(tmp_path_factory: pytest.TempPathFactory, checkpoint: Path) -> Path:
    """A sentence-transformers checkpoint as they are published: mean, normalised, with prompts."""
    folder = tmp_path_factory.mktemp("embedder")
    modules = [Transformer(str(checkpoint)), Pooling(16, "mean"), Normalize()]
    model = SentenceTransformer(modules=modules, device="cpu", prompts={"query": "q: ", "passage": "p: "})
    model.save_pretrained(str(folder), create_model_card=False)
    return folder


def test_the_checkpoints_own_prompts_and_normalisation_are_kept_or_replaced(embedder: Path) -> None:
    kept = build_dual_encoder(str(embedder), None)
    assert prompts_of(kept) == ("q: ", "p: ")
    assert build_settings(kept)["normalize"] is True
    changed = build_dual_encoder(str(embedder), None, query_prompt="", reply_prompt="r: ", normalize=False)
    assert prompts_of(changed) == ("", "r: ")
    assert (encode_messages(changed, TEXTS).norm(dim=1) - 1).abs().min() > 0.1
    assert build_settings(changed)["normalize"] is False
    assert build_settings(changed)["pooling"] == "mean"
    plain = build_dual_encoder(str(embedder), "mean")  # a pooling that is named replaces the modules
    assert build_settings(plain)["normalize"] is False
    assert prompts_of(build_dual_encoder(str(embedder), encoders="static")) == ("", "")  # only its tokenizer is used


@pytest.mark.parametrize("shape", ["two", "static"])
def test_training_sees_the_ids_that_encoding_sees(checkpoint: Path, tmp_path: Path, shape: str) -> None:
    """The trainer's batches, made as `trainers/retrieval.py` has them made."""
    model = build_dual_encoder(
        str(checkpoint), **SHAPES[shape], query_prompt="z z: ", reply_prompt="q ", message_tokens=9, reply_tokens=7
    )
    pairs = Dataset.from_dict({"message": TEXTS[2:6], "reply": TEXTS[2:6], "label": [1, 2, 3, 4]})
    training = SentenceTransformerTrainingArguments(
        str(tmp_path), use_cpu=True, report_to="none", prompts={"message": "z z: ", "reply": "q "},
        router_mapping={"message": "query", "reply": "document"},
    )  # fmt: skip
    trainer = SentenceTransformerTrainer(
        model=model, args=training, train_dataset=pairs, loss=ReplyLoss(model, mini_batch_size=2)
    )
    batch = trainer.data_collator([pairs[row] for row in range(4)])
    for column, task, prompt in (("message", "query", "z z: "), ("reply", "document", "q ")):
        expected = model.preprocess(TEXTS[2:6], prompt=prompt, task=task)
        assert torch.equal(batch[f"{column}_input_ids"], expected["input_ids"])
        unprompted = model.preprocess(TEXTS[2:6], task=task)
        assert not torch.equal(batch[f"{column}_input_ids"], unprompted["input_ids"])
    features, labels = trainer.collect_features(batch)
    assert torch.isfinite(trainer.loss(features, labels))  # GradCache cuts such a batch
    # A prompt must leave room.
    with pytest.raises(InputError, match=r"--reply_prompt 'a b c d e ': fills all 4 tokens of a text; .* --reply_tok"):
        build_dual_encoder(str(checkpoint), **SHAPES[shape], reply_tokens=4, reply_prompt="a b c d e ")
