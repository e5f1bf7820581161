"""Perplexity of the real replies under a model, from the losses of their tokens.

Source: Jelinek et al. 1977, "Perplexity - a measure of the difficulty of speech recognition tasks"; for generated
replies Zhang et al. 2021 (MRS), section 3.3, who print no figures, after Adiwardana et al. 2020, "Towards a Human-like
Open-Domain Chatbot".

    perplexity = exp(sum of all losses / number of all tokens)

A loss is the negative natural logarithm (nats) of the probability that the model gives to a token of the real reply,
after the message and the tokens before it. All tokens have equal weight: a long reply counts more than a short one.

- An example without tokens and loss is counted (`empty`) and adds nothing.
- Losses with label smoothing are not logarithms of probabilities: evaluate without it.
- Whether the end-of-text token counts depends on how the losses were computed; say it in `tokenizer`.
- Models with different tokenizers cut replies into different numbers of tokens: their perplexities are not comparable.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mrs_metrics.interval import Interval
from mrs_metrics.signature import signature
from mrs_metrics.significance import Units, ratio_interval, unit_sums


@dataclass(frozen=True, eq=False)
class PerplexityScores:
    """Losses of the n examples, one entry each; statistics stay apart from their aggregation.

    Attributes:
        losses: (n,) sum of the losses of the example's tokens, in nats, finite and 0 or more.
        tokens: (n,) number of its tokens.
    """

    losses: NDArray[np.float64]
    tokens: NDArray[np.int64]
    signature: str


def score_losses(losses: ArrayLike, tokens: ArrayLike, tokenizer: str | None = None) -> PerplexityScores:
    """Take the summed loss and the number of tokens of each example.

    Args:
        losses: (n,) sum of the negative log-likelihoods of the example's tokens, in nats.
        tokens: (n,) number of these tokens.
        tokenizer: what the tokens are, for the signature, such as `xlm-roberta-base+eos`.

    Raises:
        ValueError: the two differ in length, a loss is negative, NaN or infinite, a number of tokens is negative or
            not whole, or an example has a loss without tokens.

    >>> score_losses([2.0, 4.0], [1, 2]).tokens.tolist()
    [1, 2]
    """
    sums, numbers = _column(losses, "losses"), _column(tokens, "numbers of tokens")
    if sums.shape != numbers.shape:
        raise ValueError(
            f"There must be one loss and one number of tokens for each example, not {len(sums)} and {len(numbers)}."
        )
    _refuse(~np.isfinite(sums) | (sums < 0), sums, "The loss", "finite and 0 or more nats")
    _refuse(
        ~np.isfinite(numbers) | (numbers < 0) | (numbers % 1 != 0), numbers, "The number of tokens", "whole, 0 or more"
    )
    _refuse((numbers == 0) & (sums > 0), sums, "The loss", "0 for an example without tokens")
    return PerplexityScores(sums, numbers.astype(np.int64), perplexity_signature(tokenizer))


def score_token_losses(token_losses: Iterable[Sequence[float]], tokenizer: str | None = None) -> PerplexityScores:
    """Take the losses of the tokens of each example, in nats.

    Raises:
        ValueError: a loss is negative, NaN, infinite or not a number.

    >>> scores = score_token_losses([[0.5, 1.5], [4.0]])
    >>> scores.losses.tolist(), scores.tokens.tolist()
    ([2.0, 4.0], [2, 1])
    """
    sums: list[float] = []
    numbers: list[int] = []
    for index, entry in enumerate(token_losses):
        values = _column(entry, f"losses of example {index}")
        bad = ~np.isfinite(values) | (values < 0)
        _refuse(bad, values, f"In example {index}, the loss", "finite and 0 or more", "token")
        sums.append(float(values.sum()))
        numbers.append(len(values))
    return score_losses(sums, numbers, tokenizer)


def aggregate(scores: PerplexityScores) -> dict[str, float]:
    """Average over all tokens.

    Returns:
        `n`, examples (an int); `empty`, those without tokens (an int); `tokens` (an int); `loss`, nats per token;
        `perplexity`, 1 or more; `overflow`, true if that is too large for a float (above exp(709.78)) and so reads inf;
        `loss` is still finite.

    Raises:
        ValueError: all examples are without tokens.

    >>> figures = aggregate(score_token_losses([[math.log(8)], [math.log(2), math.log(2)]]))
    >>> round(figures["perplexity"], 6), figures["tokens"]  # (8 * 2 * 2) ** (1 / 3)
    (3.174802, 3)
    """
    _require_tokens(scores)
    tokens = int(scores.tokens.sum())
    loss = float(scores.losses.sum()) / tokens
    perplexity = _exp(loss)
    return {
        "n": len(scores.tokens),
        "empty": int((scores.tokens == 0).sum()),
        "tokens": tokens,
        "loss": loss,
        "perplexity": perplexity,
        "overflow": math.isinf(perplexity),
    }


def perplexity_interval(scores: PerplexityScores, units: Units = None) -> Interval:
    """Return the 95 % studentised bootstrap interval of the perplexity, resampling the units (n,) that have tokens.

    Each resample divides its own sum of losses by its own number of tokens, so examples keep their weight.

    Raises:
        ValueError: all examples are without tokens.

    >>> low, high = perplexity_interval(score_losses([0.0, 4.0], [3, 4]))
    >>> round(low, 4), round(high, 4)
    (1.0, 2.7183)
    """
    _require_tokens(scores)
    losses, tokens = (unit_sums(column, units)[1] for column in (scores.losses, scores.tokens))
    found = ratio_interval(losses[tokens > 0], tokens[tokens > 0])
    return Interval(map(_exp, found), found.method)


def perplexity_signature(tokenizer: str | None = None, cut: int | None = None) -> str:
    """Return the signature of a perplexity; `tok` is left out without a tokenizer's name.

    Args:
        cut: the most tokens of a reply that count; None if replies were not cut.

    >>> perplexity_signature("xlm-roberta-base+eos").rsplit("|", 1)[0]
    'reply_perplexity|avg:token|log:natural|tok:xlm-roberta-base+eos'
    """
    return signature("reply_perplexity", avg="token", log="natural", tok=tokenizer, cut=cut)


def _column(values: ArrayLike, name: str) -> NDArray[np.float64]:
    try:
        column = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):  # texts, None, lists of different lengths
        column = np.array(math.nan)
    if column.ndim != 1:
        raise ValueError(f"The {name} must be a list of numbers, not {values!r:.80}.")
    return column


def _exp(loss: float) -> float:
    try:
        return math.exp(loss)
    except OverflowError:
        return math.inf


def _refuse(
    bad: NDArray[np.bool_], values: NDArray[np.generic], what: str, expected: str, unit: str = "example"
) -> None:
    if bad.any():
        index = int(bad.argmax())
        raise ValueError(f"{what} of {unit} {index} must be {expected}, not {values[index]}.")


def _require_tokens(scores: PerplexityScores) -> None:
    if not scores.tokens.sum():
        raise ValueError(f"The {len(scores.tokens)} examples have no token to compute a perplexity of.")
