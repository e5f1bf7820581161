"""Rows are framed as a generator's messages and replies, and the loss equals a float64 reference."""

from typing import Any

import numpy as np
import pytest
import torch

from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator, PairCollator
from mrs_suggest.models.generation.language_tokens import ROWS, TokenFrame
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.models.pretraining.noising import NoisingCollator, next_token_loss, next_token_losses

TEXTS = ["the water boils", "a man drank the cold water", "she closed the door"]
LANGUAGES = ("en", "es")


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    folder = build_tiny_generator(TEXTS * 3, LANGUAGES, tmp_path_factory.mktemp("tiny"), 0, 90)
    return Generator.build(str(folder), LANGUAGES, 20, 20, Decoding(max_tokens=10))


def batch_of(generator: Generator, **options: Any) -> tuple[dict[str, torch.Tensor], list[list[int]]]:
    """A batch of the texts in both languages, and their ids."""
    coder = generator.coder
    tokenizer: Any = coder.tokenizer
    ids = tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    frames = {code: TokenFrame.of(coder.row, code, coder.config, tokenizer) for code in LANGUAGES}
    assert len({frame for frame, _ in frames.values()}) == 1, "only the language's own token differs"
    frame = frames["en"][0]
    noising = NoisingCollator(tokenizer.pad_token_id, tokenizer.mask_token_id, frame, **options)
    rows = [
        {"input_ids": text, "language": frames[code][1]} for text, code in zip(ids, ("en", "es", "en"), strict=True)
    ]
    return noising(rows), ids


@pytest.mark.parametrize("name", [name for name in ROWS if name != "causal"])  # which has no encoder
def test_without_noise_a_row_is_the_pair_of_a_text_with_itself(name: str, generator: Generator) -> None:
    """In every way of telling the language: `<2en>`, `en_XX`, `[en]` ..."""
    from dataclasses import replace

    row = ROWS[name]
    coder = replace(generator.coder, row=replace(row, tag=row.tag and ROWS["unicoder"].tag))
    coder.config.decoder_start_token_id = 0
    frame, own = TokenFrame.of(coder.row, "es", coder.config, coder.tokenizer)
    tokenizer: Any = coder.tokenizer
    collate = NoisingCollator(tokenizer.pad_token_id, 4, frame, noises={(): 1.0})
    found = collate(
        [{"input_ids": ids, "language": own} for ids in tokenizer(TEXTS, add_special_tokens=False)["input_ids"]]
    )
    pairs = zip(coder.messages(TEXTS, "es"), coder.replies(TEXTS), strict=True)
    expected = PairCollator(generator.pad)(
        [{"input_ids": message, "labels": reply, "prompt": coder.prompt("es")} for message, reply in pairs]
    )
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    lengths = [found[name].shape[1] for name in ("input_ids", "labels")]
    assert frame.room(max(lengths)) == max(map(len, tokenizer(TEXTS, add_special_tokens=False)["input_ids"]))


def test_loss_and_targets_of_a_batch_equal_a_float64_reference(generator: Generator) -> None:
    batch, ids = batch_of(generator, span_share=0.5, seed=3)
    end = [generator.coder.tokenizer.sep_token_id, generator.coder.tokenizer.eos_token_id]
    for row, text in enumerate(ids):
        labels = batch["labels"][row].tolist()
        assert labels[: len(text) + 2] == [*text, *end]
        assert set(labels[len(text) + 2 :]) <= {IGNORED}
        tag = "[es]" if row == 1 else "[en]"
        start = generator.coder.tokenizer.convert_tokens_to_ids(tag)
        assert batch["decoder_input_ids"][row].tolist()[: len(text) + 2] == [start, *text, end[0]]
    assert (batch["input_ids"] == generator.coder.tokenizer.mask_token_id).any()
    labels = batch.pop("labels")
    model = generator.model.eval()
    with torch.no_grad():
        outputs = model(**batch)
        logits = model.double()(**batch).logits.numpy()
    model.float()
    top = logits.max(-1, keepdims=True)
    log_p = logits - top - np.log(np.exp(logits - top).sum(-1, keepdims=True))
    rows, places = np.nonzero(labels.numpy() != IGNORED)
    expected = -log_p[rows, places, labels.numpy()[rows, places]]
    assert len(expected) == sum(map(len, ids)) + 2 * len(ids)
    losses = next_token_losses(outputs["logits"], labels)
    assert np.allclose(losses[rows, places], expected, atol=1e-4)
    assert losses.sum().item() == pytest.approx(expected.sum(), rel=1e-5), "nothing is lost elsewhere"
    assert next_token_loss(outputs, labels).item() == pytest.approx(expected.mean(), rel=1e-5)
    assert next_token_loss(outputs, labels, 100).item() == pytest.approx(expected.sum() / 100, rel=1e-5)
