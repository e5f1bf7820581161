"""Monte Carlo dropout (Gal and Ghahramani 2016): several thinned copies of one model, each found by its seed.

A pass drops the same units for every text, at every position and step, as the variational dropout of Gal and
Ghahramani 2016b. So a pass is one model, which searches and scores alike, whatever else is in its batch; with
torch's dropout each row and step would be another model's. Attention weights are left whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from mrs_suggest.models.generation.decoding.nbest import Written, merged, written
from mrs_suggest.models.generation.decoding.settings import Decoding

if TYPE_CHECKING:
    from mrs_suggest.models.generation.generator import Generator

HIDDEN = 3  # dimensions of the states whose units are dropped: texts, positions, units


def has_dropout(config: Any) -> bool:
    """Whether a model was trained with dropout of its states."""
    return any(getattr(config, name, None) for name in ("dropout", "dropout_rate"))


@contextmanager
def thinned(model: Any, seed: Sequence[int], rate: float | None = None) -> Iterator[None]:
    """Drop units of an encoder-decoder model of transformers while the block runs; the model stays in evaluation mode.

    Args:
        seed: of what is dropped; equal seeds drop the same.
        rate: of every dropout layer; None: the one that the layer was trained with.
    """
    module: Any = functional
    plain, state = module.dropout, {"side": 0, "call": 0}
    masks: dict[tuple[int, int, int, float], Tensor] = {}

    def dropped(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
        share = p if rate is None else rate
        if input.dim() != HIDDEN or not share:
            return input
        key = state["side"], state["call"], input.shape[-1], share
        state["call"] += 1
        if key not in masks:
            draws = np.random.default_rng([*seed, *key[:3]]).random(key[2])
            masks[key] = torch.tensor((draws >= share) / (1 - share), dtype=input.dtype, device=input.device)
        return input * masks[key]

    def entering(side: int) -> Any:
        return lambda *_: state.update(side=side, call=0)

    sides = model.get_encoder(), model.get_decoder()
    hooks = [side.register_forward_pre_hook(entering(number)) for number, side in enumerate(sides)]
    module.dropout = dropped
    try:
        yield
    finally:
        module.dropout = plain
        for hook in hooks:
            hook.remove()


class Agreed(NamedTuple):
    """A text that passes of Monte Carlo dropout found.

    Attributes:
        text: with the model's own log-probability, without dropout.
        share: of the passes whose n best hold it.
        mean, deviation: of its log-probability, over all passes.
    """

    text: Written
    share: float
    mean: float
    deviation: float


def n_agreed(
    generator: Generator, texts: Sequence[str], language: str, n: int, settings: Decoding,
    passes: Sequence[Sequence[int]], rate: float | None = None,
) -> list[list[Agreed]]:  # fmt: skip
    """The n best texts of several passes of Monte Carlo dropout, pooled (Li et al. 2020), by the model's own score.

    How passes disagree measures the model's uncertainty (Fomicheva et al. 2020, "Unsupervised Quality Estimation for
    Neural Machine Translation", section 3.2).

    Args:
        rate: of dropout; None: the one that the model was trained with.
    """
    coder = generator.coder
    held: list[list[set[str]]] = [[] for _ in texts]  # of each source, the texts of each pass
    pools: list[dict[tuple[int, ...], str]] = [{} for _ in texts]
    for seed in passes:
        with thinned(generator.model, seed, rate):
            rows = generator.hypotheses(texts, language, settings)
        for row, of_passes, pool in zip(rows, held, pools, strict=True):
            own = written(row, coder, settings)
            best = {text for text, _, _ in merged(own)[:n]}
            of_passes.append(best)
            for (ids, _), (text, _, _) in zip(row, own, strict=True):
                if text in best:
                    pool[tuple(ids)] = text
    scored = _scored(generator, texts, language, pools, passes, rate)
    power = settings.length_penalty
    results = []
    for pool, (own_scores, of_seeds), of_passes in zip(pools, scored, held, strict=True):
        chosen: dict[str, Agreed] = {}  # of each text, its most probable tokens
        for place, (tokens, text) in enumerate(pool.items()):
            log_prob, of_text = float(own_scores[place]), of_seeds[:, place]
            if text not in chosen or log_prob > chosen[text].text.log_prob:
                share = sum(text in best for best in of_passes) / len(passes)
                found = Written(text, log_prob, len(tokens) + 1)
                chosen[text] = Agreed(found, share, float(of_text.mean()), float(of_text.std()))
        results.append(sorted(chosen.values(), key=lambda one: -one.text.log_prob / one.text.length**power))
    return results


def _scored(
    generator: Generator, texts: Sequence[str], language: str, pools: Sequence[dict[tuple[int, ...], str]],
    passes: Sequence[Sequence[int]], rate: float | None,
) -> Iterator[tuple[np.ndarray, np.ndarray]]:  # fmt: skip
    """Of each source's pool, the log-probabilities by the model (n,) and by its passes (passes, n)."""
    inputs, prompt = generator.coder.messages(texts, language), generator.coder.prompt(language)
    sources = [ids for ids, pool in zip(inputs, pools, strict=True) for _ in pool]
    targets = [[*ids, generator.end] for pool in pools for ids in pool]
    own = generator.log_probs_of_ids(sources, prompt, targets)
    of_seeds = np.zeros((len(passes), len(targets)))
    for number, seed in enumerate(passes):
        with thinned(generator.model, seed, rate):
            of_seeds[number] = generator.log_probs_of_ids(sources, prompt, targets)
    ends = np.cumsum([len(pool) for pool in pools])[:-1]
    return zip(np.split(own, ends), np.split(of_seeds, ends, axis=1), strict=True)
