"""Texts drawn from a model, token by token, with the model's own log-probability of each."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from mrs_suggest.common.batches import by_length
from mrs_suggest.models.generation.decoding.beam_search import (
    encoded,
    ends_and_pad,
    generate,
    read_hypotheses,
    require_room,
)
from mrs_suggest.models.generation.decoding.hypotheses import Hypothesis
from mrs_suggest.models.generation.decoding.search_steps import (
    Allowed,
    Processor,
    Record,
    Rules,
    no_defaults,
    processors_of,
)
from mrs_suggest.models.generation.decoding.settings import Decoding, Sampling


def sample(
    model: Any, inputs: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], settings: Decoding,
    sampling: Sampling, seeds: Sequence[int], bad_words: Sequence[Sequence[int]] = (), allowed: Allowed | None = None,
) -> list[list[Hypothesis]]:  # fmt: skip
    """The samples of each input in the order of their drawing; equal ones stay.

    Temperature and `top_p` change the draws; a score is the model's own log-probability, as that of `decode`. The rules
    of the settings hold, and after `max_tokens` tokens a text ends.

    Args:
        model, inputs, prompts, bad_words, allowed: as for `decode`; `batch_size` inputs are decoded together.
        seeds: of each input's draws, which depend on nothing else.

    Raises:
        InputError: a text is too long for the model, or it has no end token.
        ValueError: inputs, prompts and seeds do not fit each other.
    """
    greedy = replace(settings, beams=1, groups=1, diversity_penalty=0.0)
    require_room(model, inputs, prompts, greedy, 1)
    ends, pad = ends_and_pad(model)
    shared = Rules(greedy, 1, 0, ends, pad, [list(word) for word in bad_words if word], allowed)
    results: list[list[Hypothesis]] = [[] for _ in inputs]
    with torch.inference_mode(), no_defaults(model):
        for numbers in by_length(inputs, settings.batch_size):
            hidden, mask, start = encoded(model, [inputs[n] for n in numbers], [prompts[n] for n in numbers], pad)
            hidden = None if hidden is None else hidden.repeat_interleave(sampling.samples, 0)
            mask, start = (tensor.repeat_interleave(sampling.samples, 0) for tensor in (mask, start))
            rules = shared._replace(prompt=start.shape[1])
            record = Record(rules.prompt, 1, ends)
            shape = sampling.samples, settings.max_tokens + 1
            draws = torch.tensor(np.concatenate([np.random.default_rng(seeds[n]).random(shape) for n in numbers]))
            chooser = _chooser(sampling, draws.to(start.device), rules.prompt)
            output = generate(model, hidden, mask, start, rules, [*processors_of(rules), record, chooser])
            found = read_hypotheses(output.sequences, None, record, rules, len(start))
            for place, number in enumerate(numbers):
                own = found[place * sampling.samples : (place + 1) * sampling.samples]
                results[number] = [hypothesis for row in own for hypothesis in row]
    return results


def _chooser(sampling: Sampling, draws: Tensor, prompt: int) -> Processor:
    """Leaves one token a row, drawn by inversion from uniform numbers (rows, steps)."""

    def choose(input_ids: Tensor, scores: Tensor) -> Tensor:
        uniform = draws[:, input_ids.shape[1] - prompt, None]
        shares = (scores.double() / sampling.temperature).softmax(-1)
        if sampling.top_p < 1:
            shares, tokens = shares.sort(dim=-1, descending=True, stable=True)
            shares = shares.masked_fill(shares.cumsum(-1) - shares >= sampling.top_p, 0.0)
            chosen = tokens.gather(1, _inverted(shares, uniform))
        else:
            chosen = _inverted(shares, uniform)
        return torch.full_like(scores, -torch.inf).scatter_(1, chosen, 0.0)

    return choose


def _inverted(shares: Tensor, uniform: Tensor) -> Tensor:
    """(rows, 1): the first place whose cumulative share exceeds the uniform number's part of the whole."""
    sums = shares.cumsum(-1)
    found = torch.searchsorted(sums, uniform * sums[:, -1:], right=True)
    return found.clamp(max=shares.shape[1] - 1)
