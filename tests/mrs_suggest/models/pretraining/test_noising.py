"""The four noises keep their promises, and the collator's batches are what a denoising model needs."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from torch.utils.data import DataLoader

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.language_tokens import OF_ROW, TokenFrame
from mrs_suggest.models.pretraining.noising import (
    NOISES,
    NoisingCollator,
    drop_tokens,
    mask_spans,
    mask_tokens,
    parse_noises,
    shuffle_tokens,
    span_lengths,
)
from tests.cases import cases

MASK = -7  # no token of the texts below
PAD, EOS, LANGUAGE = 1, (2, 3), 9
SEEDS = st.integers(0, 2**32)
TEXTS = st.lists(st.integers(10, 40), max_size=40)
SHARES = st.one_of(st.sampled_from([0.0, 0.1, 0.3, 1.0]), st.floats(0, 1))
BATCH_OF_TEXTS = [list(range(10 + start, 10 + start + 25)) for start in range(8)]


def collator(frame: TokenFrame = TokenFrame((), (OF_ROW,), EOS), **options: Any) -> NoisingCollator:  # noqa: B008
    return NoisingCollator(PAD, 4, frame, **options)


def rows(texts: list[list[int]]) -> list[dict[str, Any]]:
    return [{"input_ids": text, "language": LANGUAGE} for text in texts]


def is_subsequence(part: list[int], whole: list[int]) -> bool:
    following: Iterator[int] = iter(whole)
    return all(token in following for token in part)


@given(seed=SEEDS, n=st.integers(0, 60), width=st.floats(0, 20))
def test_shuffle_permutes_and_moves_no_token_as_far_as_the_width(seed: int, n: int, width: float) -> None:
    shuffled = shuffle_tokens(range(n), np.random.default_rng(seed), width)
    assert sorted(shuffled) == list(range(n))
    assert all(abs(place - token) <= max(0, math.ceil(width) - 1) for place, token in enumerate(shuffled))


@given(seed=SEEDS, text=TEXTS, p=SHARES)
def test_drop_keeps_order_and_never_empties_a_text(seed: int, text: list[int], p: float) -> None:
    kept = drop_tokens(text, np.random.default_rng(seed), p)
    assert is_subsequence(kept, text)
    assert bool(kept) == bool(text)
    assert p > 0 or kept == text


@pytest.mark.parametrize(("noise", "options"), [(drop_tokens, {}), (mask_tokens, {"mask_id": MASK})])
def test_drop_and_mask_hit_every_tenth_token(noise: Callable[..., list[int]], options: dict[str, int]) -> None:
    left = [token for token in noise(range(20_000), np.random.default_rng(3), **options) if token != MASK]
    assert 1 - len(left) / 20_000 == pytest.approx(0.1, abs=0.01)
    thirds = Counter(token * 3 // 20_000 for token in left)  # beginning, middle and end alike
    assert all(thirds[third] == pytest.approx(6000, abs=120) for third in range(3))


@given(seed=SEEDS, text=TEXTS, share=SHARES, mean_length=st.floats(0.2, 12))
def test_spans_keep_their_books(seed: int, text: list[int], share: float, mean_length: float) -> None:
    noised = mask_spans(text, np.random.default_rng(seed), MASK, share, mean_length)
    left = [token for token in noised if token != MASK]
    assert is_subsequence(left, text)
    replaced = len(text) - len(left)
    assert share * len(text) - 1 < replaced < share * len(text) + 1
    masks = len(noised) - len(left)
    assert (masks > 0) == (replaced > 0)
    numbers = mask_spans(range(len(text)), np.random.default_rng(seed), MASK, share, mean_length)
    assert_gaps_are_marked(numbers, len(text))
    assert noised == [number if number == MASK else text[number] for number in numbers]


def assert_gaps_are_marked(noised: list[int], n: int) -> None:
    """`noised` comes from 0, 1, ... n - 1: a number is missing exactly where a mask stands for it."""
    expected = 0
    for masks, token in runs([*noised, n]):
        assert token == expected or (token > expected and masks > 0)
        expected = token + 1


def runs(noised: list[int]) -> Iterator[tuple[int, int]]:
    """Each kept token with the number of masks just before it."""
    masks = 0
    for token in noised:
        if token == MASK:
            masks += 1
        else:
            yield masks, token
            masks = 0


@pytest.mark.parametrize("mean_length", [3.0, 1.5])
def test_span_lengths_are_poisson(mean_length: float) -> None:
    lengths = np.array(span_lengths(30_000, np.random.default_rng(0), mean_length)[:-1])  # the last is cut to fit
    assert lengths.mean() == pytest.approx(mean_length, rel=0.04)
    assert lengths.var() == pytest.approx(mean_length, rel=0.08)
    top = int(mean_length * 2) + 2
    observed = np.bincount(np.minimum(lengths, top), minlength=top + 1)
    for mean, right in ((mean_length, True), (mean_length + 0.3, False)):
        shares = np.array([*stats.poisson.pmf(range(top), mean), stats.poisson.sf(top - 1, mean)])
        assert (stats.chisquare(observed, shares * len(lengths)).pvalue > 0.01) == right


@given(
    texts=st.lists(TEXTS, min_size=1, max_size=5),
    noises=st.lists(st.sampled_from(sorted(NOISES)), max_size=4).map(tuple),
    more=st.lists(st.integers(41, 45), max_size=2).map(tuple),
    max_tokens=st.integers(6, 40),
    seed=st.integers(0, 100),
)
def test_a_batch_holds_what_the_model_needs(
    texts: list[list[int]], noises: tuple[str, ...], more: tuple[int, ...], max_tokens: int, seed: int
) -> None:
    frame = TokenFrame(more, (*more, OF_ROW), EOS)
    collate = collator(frame, noises={noises: 1.0}, max_tokens=max_tokens, seed=seed)
    batch = collate(rows(texts))
    assert list(batch) == ["input_ids", "attention_mask", "decoder_input_ids", "labels"]
    assert all(tensor.dtype == torch.int64 and tensor.shape[1] <= max_tokens for tensor in batch.values())
    ahead = len(more)
    for row, text in enumerate(texts):
        source, labels, decoder = (batch[key][row].tolist() for key in ("input_ids", "labels", "decoder_input_ids"))
        text = text[: max_tokens - len(EOS) - ahead]
        length = int(batch["attention_mask"][row].sum())
        assert batch["attention_mask"][row].tolist() == [1] * length + [0] * (len(source) - length)
        assert source[length:] == [PAD] * (len(source) - length)
        assert source[:length] == [*more, *collate.noise(text)[: max_tokens - len(EOS) - ahead], *EOS]
        target = [*text, *EOS]
        assert labels == [-100] * ahead + target + [-100] * (len(labels) - ahead - len(target))
        # Where the model must write label t, it has read the prompt and all labels before t.
        assert decoder[: ahead + len(target)] == [*more, LANGUAGE, *target[:-1]]
        assert set(decoder[ahead + len(target) :]) <= {PAD}
    with pytest.raises(InputError, match="^--max_tokens 2: leaves no room for text next to the special tokens"):
        collator(max_tokens=2)(rows(texts))


def sources(batches: list[dict[str, torch.Tensor]]) -> list[list[int]]:
    rows = [row for batch in batches for row in zip(batch["input_ids"], batch["attention_mask"], strict=True)]
    return [ids[mask.bool()].tolist() for ids, mask in rows]


def test_noise_is_new_in_each_epoch_and_the_same_when_an_epoch_is_repeated() -> None:
    features = rows(BATCH_OF_TEXTS)
    epochs = []
    collate = collator(seed=5)
    for epoch in (0, 1, 2, 1):
        collate.set_epoch(epoch)
        epochs.append(sources([collate(features)]))
    assert epochs[1] == epochs[3]
    for one, other in ((0, 1), (1, 2), (0, 2)):
        assert sum(a != b for a, b in zip(epochs[one], epochs[other], strict=True)) >= 6
    assert epochs[0] == sources([collator(seed=5)(features)]), "another process, or a resumed run"
    assert epochs[0] != sources([collator(seed=6)(features)])
    patterns = {tuple(token - start for token in text if token >= 10) for start, text in enumerate(epochs[0])}
    assert len(patterns) > 4, "one text's noise must say nothing about another's"


@pytest.mark.parametrize("workers", [1, 2])
def test_neither_batches_nor_workers_change_the_noise(workers: int) -> None:
    features = rows(BATCH_OF_TEXTS)
    alone, collate = collator(), collator()
    # Workers that live on through all epochs must see the new epoch as well.
    loader = DataLoader(features, batch_size=3, collate_fn=collate, num_workers=workers, persistent_workers=True)
    seen = []
    for epoch in range(2):
        alone.set_epoch(epoch)
        collate.set_epoch(epoch)
        seen.append(sources(list(loader)))
        assert seen[-1] == sources([alone([feature]) for feature in features])
    assert seen[0] != seen[1]


@given(seed=st.integers(0, 1000), text=st.lists(st.integers(10, 14), max_size=40), names=st.sampled_from([*NOISES]))
def test_special_tokens_stay_and_each_text_between_them_is_noised_for_itself(
    seed: int, text: list[int], names: str
) -> None:
    collate = collator(noises={(names,): 1.0}, special_ids=(12,), seed=seed, span_share=0.5)
    noised = collate.noise(text)
    before, after = ([list(group) for group in split(tokens)] for tokens in (text, noised))
    assert len(before) == len(after)
    for one, other in zip(before, after, strict=True):
        assert bool(other) == bool(one)
        assert set(other) <= {*one, 4}
        assert names != "shuffle" or sorted(one) == sorted(other)


def split(tokens: list[int]) -> list[list[int]]:
    parts: list[list[int]] = [[]]
    for token in tokens:
        if token == 12:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def test_noises_mix_by_their_shares_and_one_recipe_may_have_several() -> None:
    mixed = collator(noises={("spans",): 0.5, ("shuffle", "drop"): 0.3, ("mask", "mask", "mask"): 0.2}, span_share=1.0)
    found = Counter()
    for number in range(3000):
        noised = mixed.noise([*range(100, 120), number + 200])
        left = sum(token != 4 for token in noised)
        found["spans" if not left else "mask" if 4 in noised else "shuffle"] += 1
    assert [found[name] / 3000 for name in ("spans", "shuffle", "mask")] == pytest.approx([0.5, 0.3, 0.2], abs=0.04)
    alone, both = (
        collator(noises={noises: 1.0}).noise(list(range(100, 160))) for noises in (("drop",), ("shuffle", "drop"))
    )
    assert alone == sorted(alone)
    assert len(both) < 60
    assert both != sorted(both)


def test_noises_are_read_from_their_names() -> None:
    assert parse_noises(["spans"]) == {("spans",): 1.0}
    assert parse_noises(["shuffle+drop+mask+spans"]) == {("shuffle", "drop", "mask", "spans"): 1.0}
    for values, sentence in cases(__file__, "REFUSED"):
        with pytest.raises(InputError) as caught:
            parse_noises(values)
        assert str(caught.value) == sentence
    for values in (("drop+drop",), ("drop=.5", "drop=.5"), ("",)):
        with pytest.raises(InputError, match="expected names among"):
            parse_noises(values)
