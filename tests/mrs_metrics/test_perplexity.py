"""Perplexity: hand-worked probabilities, a model's own loss, refusals, overflow, and properties."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_metrics import perplexity
from mrs_metrics.perplexity import aggregate, perplexity_interval, score_losses, score_token_losses
from tests.mrs_metrics.modules import golden, refused_calls

GOLDEN: list[dict[str, Any]] = golden("perplexity")
token_losses = st.lists(st.lists(st.floats(0, 50), max_size=6), min_size=1, max_size=6).filter(any)


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_worked_cases(case: dict[str, Any]) -> None:
    losses = [[-math.log(p) for p in row] for row in case["probabilities"]]
    assert aggregate(score_token_losses(losses))["perplexity"] == pytest.approx(case["perplexity"])


def test_it_is_the_exponential_of_torch_s_mean_loss_without_padding() -> None:
    torch = pytest.importorskip("torch")
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(4, 7, 11, generator=generator)
    labels = torch.randint(11, (4, 7), generator=generator)
    labels[1, 3:] = -100
    labels[3, 1:] = -100
    mean = torch.nn.functional.cross_entropy(logits.reshape(-1, 11), labels.reshape(-1))
    each = torch.nn.functional.cross_entropy(logits.transpose(1, 2), labels, reduction="none")
    summed = score_losses(each.sum(1), (labels != -100).sum(1))
    listed = score_token_losses([row[kept] for row, kept in zip(each, labels != -100, strict=True)])
    assert summed.tokens.tolist() == listed.tokens.tolist() == [7, 3, 7, 1]
    for scores in (summed, listed):
        assert aggregate(scores)["perplexity"] == pytest.approx(math.exp(mean.item()), rel=1e-5)


def test_figures_by_hand() -> None:
    found = aggregate(score_losses([3.0, 0.0, 1.0], [3, 0, 1], "words"))
    assert found == {
        "n": 3, "empty": 1, "tokens": 4, "loss": 1.0, "perplexity": pytest.approx(math.e), "overflow": False,
    }  # fmt: skip


def test_overflow_is_said_and_the_loss_still_tells() -> None:
    found = aggregate(score_losses([1420.0], [2]))
    assert (found["perplexity"], found["overflow"], found["loss"]) == (math.inf, True, 710.0)
    assert aggregate(score_losses([1418.0], [2]))["overflow"] is False
    assert perplexity_interval(score_losses([1420.0, 1421.0], [2, 2])) == (math.inf, math.inf)
    assert perplexity_interval(score_losses([1420.0], [2])).ends is None
    assert perplexity_interval(score_losses([0.0] * 9, [2] * 9)).ends is None, "a loss is no share"


def test_the_interval_resamples_examples_not_tokens() -> None:
    # Two kinds of example, alike inside: resampling tokens would ignore that and give a narrower interval.
    losses, tokens = [1.0 * 50, 3.0 * 50] * 20, [50] * 40
    low, high = perplexity_interval(score_losses(losses, tokens))
    assert low < math.exp(2) < high
    by_token = perplexity_interval(score_losses([1.0, 3.0] * 1000, [1] * 2000))
    assert high - low > 3 * (by_token[1] - by_token[0])


def test_the_interval_leaves_out_examples_without_tokens() -> None:
    with_empty = score_losses([2.0, 0.0, 6.0], [1, 0, 2])
    assert perplexity_interval(with_empty) == perplexity_interval(score_losses([2.0, 6.0], [1, 2]))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        *refused_calls(__file__, "test_bad_input_is_refused_with_one_sentence", perplexity),
        (lambda: aggregate(score_token_losses([[], []])), "The 2 examples have no token to compute a perplexity of"),
        (lambda: perplexity_interval(score_losses([0.0], [0])), "no token"),
    ],
)
def test_bad_input_is_refused_with_one_sentence(call: Any, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


@given(token_losses)
def test_it_lies_between_the_surest_and_the_least_sure_token(losses: list[list[float]]) -> None:
    found = aggregate(score_token_losses(losses))
    each = [loss for row in losses for loss in row]
    assert math.exp(min(each)) * (1 - 1e-9) <= found["perplexity"] <= math.exp(max(each)) * (1 + 1e-9)
    assert found["perplexity"] >= 1
    assert found["n"] == len(losses)
