"""The corruption of masked language modelling: shares, 80/10/10, special tokens, whole words, and the seed."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.pretraining.masked_lm import MaskingCollator, Vocabulary, choose, corrupt, units, vocabulary_of
from mrs_suggest.models.retrieval.tiny import train_tokenizer

SIZE, SPECIAL, MASK = 60, (0, 1, 2, 3), 3
SEEDS = st.integers(0, 2**32)
TEXTS = st.lists(st.integers(0, SIZE - 1), max_size=80)


def vocabulary(has_words: bool = True) -> Vocabulary:
    """60 ids, 0 to 3 special; even ones begin a word, and 4 is the bare mark of a beginning."""
    numbers = np.arange(SIZE)
    special = np.isin(numbers, SPECIAL)
    starts = numbers % 2 == 0 if has_words else np.ones(SIZE, dtype=bool)
    return Vocabulary(MASK, numbers[~special], special, starts, 4 if has_words else -1, has_words)


@given(ids=TEXTS, seed=SEEDS, share=st.floats(0.01, 1), words=st.booleans())
def test_chosen_units_are_whole_and_as_many_as_the_share_says(
    ids: list[int], seed: int, share: float, words: bool
) -> None:
    unit = units(ids, vocabulary(), words)
    chosen = choose(unit, np.random.default_rng(seed), share)
    assert not chosen[unit < 0].any(), "special tokens are never chosen"
    count = int(unit.max(initial=-1)) + 1
    whole = {int(number) for number in unit[chosen]}
    assert all(chosen[unit == number].all() for number in whole)
    if count:
        assert max(1, int(share * count)) <= len(whole) <= min(count, int(share * count) + 1)
    else:
        assert not whole


@pytest.mark.parametrize("words", [False, True])
def test_the_shares_hold_over_many_texts(words: bool) -> None:
    """15 % of the units, and of their tokens 80 % masks, 10 % random tokens, 10 % unchanged."""
    vocab, rng = vocabulary(), np.random.default_rng(0)
    numbers, hidden, masks, same, other, tokens = 0, 0, 0, 0, 0, 0
    for _ in range(4000):
        ids = rng.integers(4, SIZE, rng.integers(20, 60))
        unit = units(ids, vocab, words)
        chosen = choose(unit, rng)
        read = corrupt(ids, chosen, rng, vocab)
        assert (read[~chosen] == ids[~chosen]).all()
        assert not np.isin(read, (0, 1, 2)).any(), "no special token but [MASK] is ever put in"
        numbers += int(unit.max()) + 1
        hidden += len(set(unit[chosen]))
        tokens += int(chosen.sum())
        masks += int((read[chosen] == MASK).sum())
        same += int((read[chosen] == ids[chosen]).sum())
        other += int(((read[chosen] != MASK) & (read[chosen] != ids[chosen])).sum())
    assert hidden / numbers == pytest.approx(0.15, abs=0.003)
    assert masks / tokens == pytest.approx(0.8, abs=0.01)
    assert same / tokens == pytest.approx(0.1 + 0.1 / 56, abs=0.01)  # a random token may be the same one
    assert other / tokens == pytest.approx(0.1 - 0.1 / 56, abs=0.01)


@given(
    rows=st.lists(TEXTS.filter(lambda ids: any(id not in SPECIAL for id in ids)), min_size=1, max_size=6), seed=SEEDS
)
def test_batches_depend_on_seed_epoch_and_text_alone(rows: list[list[int]], seed: int) -> None:
    one, two = (MaskingCollator(0, vocabulary(), seed=seed) for _ in range(2))
    batch = one([{"input_ids": row} for row in rows])
    for number, row in enumerate(rows):
        alone = two([{"input_ids": row}])
        for name, value in alone.items():
            assert torch.equal(batch[name][number, : len(row)], value[0]), name
    labels, reads = batch["labels"], batch["input_ids"]
    for number, row in enumerate(rows):
        known = labels[number, : len(row)]
        assert (known != IGNORED).any(), "every text has something to predict"
        assert all(label in (IGNORED, token) for label, token in zip(known.tolist(), row, strict=True))
        assert (labels[number, len(row) :] == IGNORED).all()
        assert batch["attention_mask"][number].tolist() == [1] * len(row) + [0] * (reads.shape[1] - len(row))


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, float("nan")])
def test_an_impossible_share_is_refused(share: float) -> None:
    with pytest.raises(InputError, match=r"--masked_share .*: expected more than 0 and at most 1"):
        MaskingCollator(0, vocabulary(), share)


def tokenizer_of(model: models.Model, pieces: object, decoder: object = None) -> PreTrainedTokenizerFast:
    backend = Tokenizer(model)
    backend.pre_tokenizer = pieces
    if decoder is not None:
        backend.decoder = decoder
    return PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]", mask_token="[MASK]")


def words_of(tokenizer: PreTrainedTokenizerFast, text: str) -> list[str]:
    """The pieces of each word, joined."""
    vocab = vocabulary_of(tokenizer, "made")
    ids = tokenizer(text, add_special_tokens=False)["input_ids"]
    found = units(ids, vocab, True)
    pieces = tokenizer.convert_ids_to_tokens(ids)
    return ["".join(piece for piece, at in zip(pieces, found, strict=True) if at == n) for n in range(max(found) + 1)]


def test_words_of_sentencepiece() -> None:
    """A mark begins a word, alone or not; punctuation and letters without spaces between words are words."""
    pieces = ["[UNK]", "[MASK]", "▁", "▁run", "ning", ".", "▁go", "中", "文", "รัก", "▁ฉัน"]
    model = models.Unigram([(piece, -1.0 - 0.001 * n) for n, piece in enumerate(pieces)], 0, False)
    tokenizer = tokenizer_of(model, pre_tokenizers.Metaspace(), decoders.Metaspace())
    assert words_of(tokenizer, "running go. 中文 ฉันรัก") == ["▁running", "▁go", ".", "▁中", "文", "▁ฉัน", "รัก"]


def test_a_tokenizer_without_a_mask_token_is_refused() -> None:
    with pytest.raises(InputError, match="--model_name_or_path made: its tokenizer has no mask token"):
        vocabulary_of(train_tokenizer(["some words"] * 3, 50), "made")
