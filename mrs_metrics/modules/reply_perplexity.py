"""Perplexity of the real replies under a model, exp(sum of the losses of all tokens / number of all tokens), from
losses that were computed before; no model is needed.
"""

from typing import Any

import datasets
import evaluate

from mrs_metrics.perplexity import aggregate, perplexity_interval, score_losses, score_token_losses
from mrs_metrics.significance import interval_entries
from mrs_metrics.module import Lists

_CITATION = """\
@article{jelinek-etal-1977-perplexity, author = "Jelinek, Fred and Mercer, Robert L. and Bahl, Lalit R. and Baker, James
K.", title = "Perplexity---a measure of the difficulty of speech recognition tasks", year = "1977",
journal = "The Journal of the Acoustical Society of America", volume = "62", number = "S1"}
"""


class ReplyPerplexity(Lists, evaluate.Metric):
    """
    Args:
        predictions: for each example the losses of the tokens of its real reply: negative natural logarithms (nats).
            With `tokens`, for each example the sum of these losses.
        tokens: for each example the number of its tokens, where the predictions are sums.
        tokenizer: what the tokens are, for the signature.
        interval: also return the 95 % interval (studentised bootstrap); default False.
    Returns:
        n: examples.
        empty: examples without tokens.
        tokens: number of all tokens.
        loss: nats per token.
        perplexity: 1 or more.
        overflow: true if the perplexity is too large for a float and so reads inf.
        signature: how the figure was computed, to be printed with it.
    Examples:
        >>> metric = evaluate.load("reply_perplexity")
        >>> metric.compute(predictions=[[0.0, 1.5], [1.5]])["perplexity"]
        2.718281828459045
        >>> metric.compute(predictions=[1.5, 1.5], tokens=[2, 1])["perplexity"]
        2.718281828459045
    """

    citation = _CITATION
    urls = ("https://arxiv.org/abs/2106.02017",)
    inputs = (
        datasets.Features({"predictions": datasets.Sequence(datasets.Value("float64"))}),
        datasets.Features({"predictions": datasets.Value("float64")}),
    )
    compares = False

    def _compute(
        self,
        predictions: list[Any],
        tokens: list[int] | None = None,
        tokenizer: str | None = None,
        interval: bool = False,
        units: list[object] | None = None,
    ) -> dict[str, object]:
        listed = any(isinstance(entry, list) for entry in predictions)
        if listed != (tokens is None):
            raise ValueError(
                "Give the losses of each token, or sums of losses and `tokens`, the number of tokens of each."
            )
        if tokens is None:
            scores = score_token_losses(predictions, tokenizer)
        else:
            scores = score_losses(predictions, tokens, tokenizer)
        result: dict[str, object] = {**aggregate(scores), "signature": scores.signature}
        if interval:
            result |= interval_entries(perplexity_interval, scores, scores, units, len(predictions))
        return result
