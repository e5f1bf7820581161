"""Samples follow the model's probabilities, whatever stands in their batch, and carry the model's own likelihood."""

import dataclasses
import itertools
import math
from collections import Counter
from functools import cache
from typing import Any

import pytest
import torch

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.decoding.sampling import sample
from mrs_suggest.models.generation.decoding.settings import Decoding, Sampling
from tests.mrs_suggest.models.generation.decoding.test_decoding import END, PAD, build, log_probability, tagged, texts

SOURCE, PROMPT = [0, 3, 4, END], [0, 3]
SHORT = Decoding(beams=1, max_tokens=2, length_penalty=0.0)


def shares(model: Any, temperature: float, top_p: float) -> dict[tuple[int, ...], float]:
    """The probability of each text of up to two tokens, by enumeration."""

    @cache
    def step(before: tuple[int, ...]) -> torch.Tensor:
        with torch.no_grad():
            decoder = torch.tensor([[*PROMPT, *before]])
            logits = model(input_ids=torch.tensor([SOURCE]), decoder_input_ids=decoder).logits[0, -1].double()
        logits[PAD] = -math.inf
        if len(before) == 2:
            return torch.nn.functional.one_hot(torch.tensor(END), len(logits)).double()
        found = (logits / temperature).softmax(-1)
        order = found.argsort(descending=True).tolist()
        kept = [token for n, token in enumerate(order) if sum(found[t] for t in order[:n]) < top_p]
        mask = torch.zeros_like(found)
        mask[kept] = 1
        return found * mask / (found * mask).sum()

    tokens = [token for token in range(model.config.vocab_size) if token not in (PAD, END)]
    found = {}
    for length in range(3):
        for reply in itertools.product(tokens, repeat=length):
            probability = 1.0
            for n in range(length + 1):
                probability *= float(step(reply[:n])[(*reply, END)[n]])
            found[reply] = probability
    return found


@pytest.mark.parametrize(("temperature", "top_p"), [(1.0, 1.0), (2.0, 1.0), (1.0, 0.7)])
def test_frequencies_are_the_models_probabilities(temperature: float, top_p: float) -> None:
    model, n = build("bart", vocabulary=6), 4000
    expected = shares(model, temperature, top_p)
    assert sum(expected.values()) == pytest.approx(1)
    found = sample(model, [SOURCE], [PROMPT], SHORT, Sampling(n, temperature, top_p), [7])[0]
    counts = Counter(tuple(hypothesis.tokens) for hypothesis in found)
    assert sum(counts.values()) == n
    assert set(counts) <= {reply for reply, share in expected.items() if share > 0}
    for reply, share in expected.items():  # five standard deviations
        assert abs(counts[reply] / n - share) < 5 * math.sqrt(share * (1 - share) / n) + 1e-9, reply
    for tokens, score in found[:20]:  # neither temperature nor top_p is in it
        assert score == pytest.approx(log_probability(model, SOURCE, PROMPT, tokens), abs=1e-4)


def test_draws_depend_on_their_seed_alone() -> None:
    model, sources, prompts = build("bart"), texts(5), tagged(5)
    how = Decoding(beams=1, max_tokens=5)
    seeds = [3, 1, 4, 1, 5]
    together = sample(model, sources, prompts, how, Sampling(6), seeds)
    for batch_size in (1, 2):
        some = sample(model, sources, prompts, dataclasses.replace(how, batch_size=batch_size), Sampling(6), seeds)
        assert [[h.tokens for h in row] for row in some] == [[h.tokens for h in row] for row in together]
    other = sample(model, sources, prompts, how, Sampling(6), [6, *seeds[1:]])
    assert [h.tokens for h in other[0]] != [h.tokens for h in together[0]]
    assert [[h.tokens for h in row] for row in other[1:]] == [[h.tokens for h in row] for row in together[1:]]


def test_the_rules_of_a_search_hold() -> None:
    how = Decoding(beams=1, min_tokens=2, max_tokens=4, no_repeat_ngram=1)
    rows = sample(build("bart", 12), texts(3, vocabulary=12), tagged(3), how, Sampling(20), [1, 2, 3], [[5]])
    assert all(len(row) == 20 for row in rows)
    for tokens, score in itertools.chain(*rows):
        assert 2 <= len(tokens) <= 4
        assert len(set(tokens)) == len(tokens)
        assert not {PAD, END, 5} & set(tokens)
        assert math.isfinite(score)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [({"samples": 0}, "--samples 0"), ({"temperature": 0.0}, "--temperature 0"), ({"top_p": 1.5}, "--top_p 1.5"),
     ({"temperature": math.nan}, "--temperature nan"), ({"top_p": 0.0}, "--top_p 0")],
)  # fmt: skip
def test_impossible_values_get_a_sentence(values: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        Sampling(**values)
