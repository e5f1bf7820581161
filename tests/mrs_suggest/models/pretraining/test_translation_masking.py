"""Masked translations: loss and targets against a float64 reference, shares, positions that begin anew, languages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import load_fast_tokenizer
from mrs_suggest.models.generation.padding import IGNORED
from mrs_suggest.models.pretraining.masked_lm import HeadAt, load_masked_lm, masked_loss, token_losses
from mrs_suggest.models.pretraining.masking import Vocabulary, vocabulary_of
from mrs_suggest.models.pretraining.translation_masking import (
    Positions,
    TranslationCollator,
    language_numbers,
    restartable_positions,
    restarted,
)
from mrs_suggest.models.retrieval.tiny import build_tiny
from mrs_suggest.training.pretraining.rows import encode_pairs
from tests.bert_reference import reference_losses
from tests.mrs_suggest.models.pretraining.test_masked_lm import ARCHITECTURES, SHAPE

PAIRS = [("the water boils", "dlo a ap bouyi"), ("she closed the door", "li femen pòt la"), ("yes", "wi")]
SPECIAL, MASK = (0, 1, 2, 3), 3
VOCABULARY = Vocabulary(
    MASK, np.arange(4, 60), np.isin(np.arange(60), SPECIAL), np.ones(60, dtype=bool), -1, has_words=False
)
TEXTS = st.lists(st.integers(4, 59), min_size=1, max_size=30)


def row(one: Sequence[int], two: Sequence[int]) -> dict[str, Any]:
    """As `[CLS] one [SEP] two [SEP]`."""
    return {"input_ids": [1, *one, 2, *two, 2], "second": len(one) + 2}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts = [text for pair in PAIRS for text in pair] * 3
    return build_tiny(texts, tmp_path_factory.mktemp("tiny"), 0, 80, "[MASK]")


@pytest.mark.parametrize("restart", [False, True])
def test_loss_and_targets_of_a_batch_equal_a_float64_reference(tiny: Path, restart: bool) -> None:
    model, tokenizer = load_masked_lm(str(tiny), None, 3)[0].eval(), load_fast_tokenizer(str(tiny), None)
    encoded = encode_pairs(PAIRS, tokenizer, 60, "pairs")
    features = [encoded.rows[n] for n in range(len(PAIRS))]
    positions = restartable_positions(model, "tiny") if restart else None
    vocabulary = vocabulary_of(tokenizer, "tiny")
    batch = TranslationCollator(tokenizer.pad_token_id, vocabulary, 0.4, seed=5, positions=positions)(features)
    assert ("position_ids" in batch) is restart
    whole = tokenizer(*map(list, zip(*PAIRS, strict=True)), padding=True, return_tensors="pt")
    assert torch.equal(batch["attention_mask"], whole["attention_mask"])
    chosen = batch["labels"] != IGNORED
    assert torch.equal(batch["labels"][chosen], whole["input_ids"][chosen]), "the targets are the texts' own tokens"
    assert torch.equal(batch["input_ids"][~chosen], whole["input_ids"][~chosen])
    expected = reference_losses(model, batch)
    labels = batch.pop("labels")
    with HeadAt(model)(chosen):
        outputs = model(**batch)
    assert np.allclose(token_losses(outputs["logits"], labels).detach().numpy(), expected, atol=1e-5)
    assert masked_loss(outputs, labels).item() == pytest.approx(expected.mean(), abs=1e-5)
    if restart:
        del batch["position_ids"]
        with HeadAt(model)(chosen):
            assert not torch.allclose(model(**batch)["logits"], outputs["logits"], atol=1e-4), "positions count"


def test_both_texts_are_masked_and_the_shares_hold() -> None:
    """15 % of the tokens of both texts together; of them 80 % masks, 10 % random tokens, 10 % unchanged."""
    rng, collator = np.random.default_rng(0), TranslationCollator(0, VOCABULARY, seed=1)
    tokens, hidden, masks, same = np.zeros(2), np.zeros(2), 0, 0
    for _ in range(3000):
        one, two = (rng.integers(4, 60, rng.integers(5, 40)).tolist() for _ in range(2))
        feature = row(one, two)
        read, labels = collator.masked(feature["input_ids"])
        chosen = labels != IGNORED
        assert not chosen[[0, len(one) + 1, -1]].any(), "special tokens stay"
        tokens += len(one), len(two)
        hidden += chosen[: feature["second"]].sum(), chosen[feature["second"] :].sum()
        masks += int((read[chosen] == MASK).sum())
        same += int((read[chosen] == labels[chosen]).sum())
    assert hidden / tokens == pytest.approx([0.15, 0.15], abs=0.003)
    assert masks / hidden.sum() == pytest.approx(0.8, abs=0.01)
    assert same / hidden.sum() == pytest.approx(0.1 + 0.1 / 56, abs=0.01)


@given(
    pairs=st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), first=st.integers(0, 3), seed=st.integers(0, 99)
)
def test_rows_of_a_batch_do_not_depend_on_each_other(
    pairs: list[tuple[list[int], list[int]]], first: int, seed: int
) -> None:
    positions = Positions(first, max(0, first - 1))
    batches, alone = (TranslationCollator(0, VOCABULARY, seed=seed, positions=positions) for _ in range(2))
    features = [{**row(*pair), "languages": [3, 5]} for pair in pairs]
    batch = batches(features)
    for number, (feature, (one, two)) in enumerate(zip(features, pairs, strict=True)):
        length = len(feature["input_ids"])
        for name, value in alone([feature]).items():
            assert torch.equal(batch[name][number, :length], value[0]), name
        places, langs = (batch[name][number].tolist() for name in ("position_ids", "langs"))
        assert places[:length] == [*range(first, first + len(one) + 2), *range(first, first + len(two) + 1)]
        assert set(places[length:]) <= {positions.padding}
        assert langs[:length] == [3] * (len(one) + 2) + [5] * (len(two) + 1)


def made(name: str, **more: Any) -> Any:
    from transformers import AutoConfig, AutoModelForMaskedLM

    torch.manual_seed(0)
    config = AutoConfig.for_model(name, **{**SHAPE, **ARCHITECTURES.get(name, {}), **more})
    return AutoModelForMaskedLM.from_config(config).eval()


@pytest.mark.parametrize("name", sorted(ARCHITECTURES.keys() - {"modernbert"}))
def test_positions_begin_where_the_architecture_begins(name: str) -> None:
    """Positions that do not begin anew are those that the model takes by itself."""
    model = made(name)
    positions = restartable_positions(model, name)
    ids, mask = torch.randint(5, 40, (2, 7)), torch.ones(2, 7, dtype=torch.int64)
    ids[1, 5:], mask[1, 5:] = model.config.pad_token_id, 0
    given = torch.tensor([restarted(7, 7, positions), [*restarted(5, 5, positions), *[positions.padding] * 2]])
    anew = given.clone()
    anew[0] = torch.tensor(restarted(7, 4, positions))
    with torch.no_grad():
        own, same, other = (
            model(input_ids=ids, attention_mask=mask, **more).logits
            for more in ({}, {"position_ids": given}, {"position_ids": anew})
        )
    assert torch.allclose(own[mask == 1], same[mask == 1], atol=1e-6)
    assert not torch.allclose(own[0, 4:], other[0, 4:], atol=1e-4)


def test_a_model_like_xlm_reads_the_languages() -> None:
    model = made("xlm", emb_dim=16, n_layers=1, n_heads=2, n_langs=2, lang2id={"en": 0, "ht": 1}, use_lang_emb=True)
    assert language_numbers(model, "xlm") == {"en": 0, "ht": 1}
    features = [{**row([5, 6, 7], [8, 9]), "languages": [0, 1]}]
    batch = TranslationCollator(0, VOCABULARY)(features)
    assert batch["langs"].tolist() == [[0] * 5 + [1] * 3]
    del batch["labels"]
    with torch.no_grad():
        told = model(**batch).logits
        table = model.transformer.lang_embeddings.weight
        vectors = model.transformer.embeddings(batch["input_ids"]) + table[batch.pop("langs")]
        by_hand = model(inputs_embeds=vectors, attention_mask=batch["attention_mask"]).logits
    assert torch.allclose(told, by_hand, atol=1e-6)


def test_what_an_architecture_cannot_take_is_refused() -> None:
    with pytest.raises(
        InputError, match=r"^--restart_positions: m \(modernbert\) has no table of absolute positions .*\.$"
    ):
        restartable_positions(made("modernbert"), "m")
    for model in (made("xlm-roberta"), made("xlm", emb_dim=16, n_layers=1, n_heads=2)):
        with pytest.raises(InputError, match=r"^--language_ids: m \(.*\) has no embeddings of languages, as XLM has; "):
            language_numbers(model, "m")
