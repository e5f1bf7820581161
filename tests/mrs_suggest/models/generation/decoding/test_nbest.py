"""Lists of many texts: each once, with the model's own log-probability, whatever search found it."""

import numpy as np
import pytest
from torch.nn import functional

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.decoding.monte_carlo import n_agreed, thinned
from mrs_suggest.models.generation.decoding.nbest import Written, merged, n_best, n_drawn
from mrs_suggest.models.generation.decoding.settings import Decoding, Sampling
from mrs_suggest.models.generation.generator import Generator
from tests.word_generator import PROMPTS, make_run

WIDE = Decoding(beams=60, max_tokens=4)
SEEDS = [(5, 0), (5, 1), (5, 2)]


@pytest.fixture(scope="module")
def generator(tmp_path_factory: pytest.TempPathFactory) -> Generator:
    return Generator.load(make_run(tmp_path_factory.mktemp("runs") / "one", 1))


def require_forced(generator: Generator, rows: list[list[Written]]) -> None:
    """Log-probabilities and lengths are those that the texts get by themselves."""
    pairs = [(prompt, *text) for prompt, row in zip(PROMPTS, rows, strict=True) for text in row]
    prompts, texts, scores, lengths = zip(*pairs, strict=True)
    losses, tokens = generator.losses(prompts, texts, "pt")
    np.testing.assert_allclose(scores, -losses, atol=1e-4)
    assert list(lengths) == tokens.tolist()


def test_more_texts_than_are_suggested_with_their_log_probabilities(generator: Generator) -> None:
    rows = n_best(generator, PROMPTS, "pt", 60, WIDE)
    assert min(map(len, rows)) > 50  # the most that `suggest` gives
    require_forced(generator, rows)
    for row in rows:
        scores = [text.log_prob / text.length for text in row]
        assert scores == sorted(scores, reverse=True)
    assert [row[:9] for row in rows] == n_best(generator, PROMPTS, "pt", 9, WIDE)
    with pytest.raises(InputError, match="--nbest 61: a search with --beams 60"):
        n_best(generator, PROMPTS, "pt", 61, WIDE)


def test_drawn_texts_come_once_and_the_best_first(generator: Generator) -> None:
    rows = n_drawn(generator, PROMPTS, "pt", 10, Decoding(max_tokens=4), Sampling(40), list(range(len(PROMPTS))))
    require_forced(generator, rows)
    for row in rows:
        scores = [text.log_prob / text.length for text in row]
        assert scores == sorted(scores, reverse=True)
        assert len({text.text for text in row}) == len(row) <= 10
    rows = [Written("a", -2.0, 3), Written("b", -1.0, 2), Written("a", -1.5, 4), Written("\u200b", -0.1, 1)]
    assert merged(rows) == [Written("a", -1.5, 4), Written("b", -1.0, 2)]


def test_a_thinned_model_is_one_model(generator: Generator) -> None:
    """It searches and scores alike, alone and in a batch; another seed is another model, and none is left behind."""
    how, plain = Decoding(beams=4, max_tokens=4), functional.dropout
    before = generator.hypotheses(PROMPTS, "pt", how)
    inputs, prompt = generator.coder.messages(PROMPTS, "pt"), generator.coder.prompt("pt")
    seen = []
    for seed in SEEDS[:2]:
        with thinned(generator.model, seed):
            rows = generator.hypotheses(PROMPTS, "pt", how)
            alone = [generator.hypotheses([text], "pt", how)[0] for text in PROMPTS]
            assert [[h.tokens for h in row] for row in rows] == [[h.tokens for h in row] for row in alone]
            sources = [ids for ids, row in zip(inputs, rows, strict=True) for _ in row]
            found = generator.log_probs_of_ids(
                sources, prompt, [[*h.tokens, generator.end] for row in rows for h in row]
            )
        np.testing.assert_allclose([h.score * (len(h.tokens) + 1) for row in rows for h in row], found, atol=1e-4)
        seen.append(rows)
    assert seen[0] != seen[1] != before
    assert functional.dropout is plain
    assert generator.hypotheses(PROMPTS, "pt", how) == before
    with thinned(generator.model, SEEDS[0], rate=0.0):
        assert generator.hypotheses(PROMPTS, "pt", how) == before


def test_passes_are_pooled_with_their_agreement(generator: Generator) -> None:
    how = Decoding(beams=5, max_tokens=4)
    rows = n_agreed(generator, PROMPTS, "pt", 5, how, SEEDS)
    require_forced(generator, [[found.text for found in row] for row in rows])
    assert rows == n_agreed(generator, PROMPTS, "pt", 5, how, SEEDS)
    passes, scores = [], []
    for seed in SEEDS:
        with thinned(generator.model, seed):
            passes.append([{text.text for text in row} for row in n_best(generator, PROMPTS, "pt", 5, how)])
            texts = [found.text.text for row in rows for found in row]
            prompts = [prompt for prompt, row in zip(PROMPTS, rows, strict=True) for _ in row]
            scores.append(-generator.losses(prompts, texts, "pt")[0])
    assert [{found.text.text for found in row} for row in rows] == [
        set.union(*sets) for sets in zip(*passes, strict=True)
    ]
    shares = [sum(found.text.text in held[n] for held in passes) / 3 for n, row in enumerate(rows) for found in row]
    assert [found.share for row in rows for found in row] == pytest.approx(shares)
    assert len(set(shares)) > 1
    np.testing.assert_allclose([f.mean for row in rows for f in row], np.mean(scores, 0), atol=1e-4)
    np.testing.assert_allclose([f.deviation for row in rows for f in row], np.std(scores, 0), atol=1e-4)
