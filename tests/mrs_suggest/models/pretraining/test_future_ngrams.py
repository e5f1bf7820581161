"""Nine tokens in every 64, in one piece; and the loss, stream by stream, against a float64 reference."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.models.generation.architectures.prophetnet_start import build_tiny_prophetnet
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator
from mrs_suggest.models.generation.language_tokens import TokenFrame
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.pretraining.future_ngrams import (
    BLOCK,
    SPAN,
    SpanMaskingCollator,
    choose_spans,
    future_ngram_loss,
)
from mrs_suggest.models.pretraining.masked_lm import vocabulary_of

TEXTS = ["the water boils", "a man drank the cold water", "she closed the door and the window and the gate"]


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    folder = build_tiny_prophetnet(TEXTS * 3, ("en",), tmp_path_factory.mktemp("tiny"), 0, 90)
    return Generator.build(str(folder), ("en",), 20, 20, Decoding(max_tokens=10))


def collator_of(generator: Generator, seed: int = 0) -> SpanMaskingCollator:
    coder = generator.coder
    frame, _ = TokenFrame.of(coder.row, "en", coder.config, coder.tokenizer)
    vocabulary = vocabulary_of(coder.tokenizer, "tiny")  # type: ignore[arg-type]
    return SpanMaskingCollator(int(coder.tokenizer.pad_token_id or 0), vocabulary, frame, seed)


@given(seed=st.integers(0, 2**32), n=st.integers(0, 300), specials=st.sets(st.integers(0, 299), max_size=20))
def test_every_block_has_one_span_and_special_tokens_none(seed: int, n: int, specials: set[int]) -> None:
    special = np.array([number in specials for number in range(n)], dtype=bool)
    chosen = choose_spans(special, np.random.default_rng(seed))
    assert not (chosen & special).any()
    text = chosen[~special]
    for first in range(0, len(text), BLOCK):
        block = text[first : first + BLOCK]
        places = np.flatnonzero(block)
        if len(block) == BLOCK:
            assert len(places) == SPAN
        else:
            assert abs(len(places) - len(block) * SPAN / BLOCK) < 1 or (first == 0 and len(places) == 1)
        assert len(places) == 0 or places[-1] - places[0] == len(places) - 1, "in one piece"


def test_what_is_read_and_written_of_a_text(generator: Generator) -> None:
    """80/10/10 for each token of the spans; the decoder writes them, and depends on seed, epoch and text alone."""
    collate = collator_of(generator)
    vocabulary = collate.vocabulary
    text = [int(number) for number in np.resize(vocabulary.random_ids, 64 * 60)]
    read, target = collate.masked(text)
    assert len(read) == len(text)
    assert len(target) == 9 * 60
    masked = read == vocabulary.mask_id
    assert masked.sum() / len(target) == pytest.approx(0.8, abs=0.05)
    hidden = np.array(text)[masked]
    remaining = iter(target.tolist())
    assert all(token in remaining for token in hidden.tolist()), "in the order of the text"
    again, other = collator_of(generator), collator_of(generator, 1)
    assert np.array_equal(again.masked(text)[0], read)
    assert not np.array_equal(other.masked(text)[0], read)
    again.set_epoch(1)
    assert not np.array_equal(again.masked(text)[0], read)


def test_loss_and_targets_of_a_batch_equal_a_float64_reference(generator: Generator) -> None:
    coder, model = generator.coder, generator.model.eval()
    tokenizer: Any = coder.tokenizer
    start, end = tokenizer.convert_tokens_to_ids("[en]"), [tokenizer.sep_token_id, tokenizer.eos_token_id]
    ids = tokenizer(TEXTS, add_special_tokens=False)["input_ids"]
    collate = collator_of(generator, 4)
    batch = collate([{"input_ids": text, "language": start} for text in ids])
    spans = [collate.masked(text)[1].tolist() for text in ids]
    for row, span in enumerate(spans):
        assert [label for label in batch["labels"][row].tolist() if label != IGNORED] == [*span, *end]
        assert batch["decoder_input_ids"][row].tolist()[: len(span) + 2] == [start, *span, end[0]]
        assert batch["input_ids"][row].tolist()[: len(ids[row]) + 2][-2:] == end
    labels = batch["labels"]
    with torch.no_grad():
        outputs = model(**{name: value for name, value in batch.items() if name != "labels"})
    streams = [outputs.logits.double(), outputs.logits_ngram[:, 0].double()]
    first = second = 0.0  # the sums of section 4.2, with y_1 at t = 1
    for row, span in enumerate(spans):
        y = [*span, *end]
        for t, token in enumerate(y):
            one, two = (logits[row, t].log_softmax(-1)[token].item() for logits in streams)
            first -= one
            second -= two if t else 0.0
    count = sum(len(span) + 2 for span in spans)
    assert future_ngram_loss(outputs, labels).item() == pytest.approx((first + second) / count, rel=1e-5)
    assert future_ngram_loss(outputs, labels, 50).item() == pytest.approx((first + second) / 50, rel=1e-5)
    alone = {"logits": outputs["logits"]}
    assert future_ngram_loss(alone, labels).item() == pytest.approx(first / count, rel=1e-5), "one stream"
