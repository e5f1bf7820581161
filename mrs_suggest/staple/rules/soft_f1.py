"""A network of two layers that is trained on the differentiable weighted F1 itself, as sweagraw's filter in the task.

Source: Agrawal and Carpuat 2020, "Generating Diverse Translations via Weighted Fine-tuning and Hypotheses Filtering for
the Duolingo STAPLE Task": the counts of F1 are replaced by sums of probabilities. Here precision is that of the
translations and recall is weighted, as in the metric (Mayhew et al. 2020, section 2.3), for each prompt by itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from mrs_suggest.staple.filters.choice_scores import reaching
from mrs_suggest.staple.lists import Labels, Lists
from mrs_suggest.staple.pooling import Floats
from mrs_suggest.staple.rules.base import Choice, Fitting, Learned
from mrs_suggest.staple.rules.trees import logistic

if TYPE_CHECKING:
    from torch import Tensor

HIDDEN = 16  # ours: a few times fewer numbers to learn than prompts
STEPS = 300  # of Adam over all prompts together; ours
RATE, DECAY = 0.02, 1e-2  # ours
LEAST = 0.5  # a soft count of one half or more is a choice
LONGEST = 4.0  # standard deviations that a feature may lie off its mean; ours: outliers drive a network far


@dataclass(frozen=True, eq=False)
class SoftF1(Learned):
    """Translations with a probability from one half, and always the first of a prompt.

    Attributes:
        network: (d,) mean and scale of the features, (d, h) weights1 and (h,) bias1 of the first layer, (h,) weights2
            and (1,) bias2 of the second.
    """

    name: ClassVar[str] = "soft-f1"
    network: Mapping[str, Floats]

    @classmethod
    def fit(cls, lists: Lists, gold: Labels, fitting: Fitting) -> SoftF1:
        names = cls.needs(fitting, list(lists.features))
        x = lists.matrix(names)
        known = np.isfinite(x)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, x, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(known, (x - mean) ** 2, 0.0).sum(axis=0) / count)
        network = {"mean": mean, "scale": np.where(spread > 0, spread, 1.0)}
        return cls(names, {**network, **_trained(_scaled(x, network), lists, gold, fitting.seed)})

    def choose(self, lists: Lists) -> Choice:
        network = self.network
        hidden = _scaled(lists.matrix(self.names), network) @ network["weights1"] + network["bias1"]
        probability = logistic(np.maximum(hidden, 0.0) @ network["weights2"] + network["bias2"][0])
        return Choice(reaching(lists, probability, LEAST), probability)


def _scaled(x: Floats, network: Mapping[str, Floats]) -> Floats:
    """Features in standard deviations from their mean; the mean where one is not known."""
    return np.clip(np.nan_to_num((x - network["mean"]) / network["scale"], nan=0.0), -LONGEST, LONGEST)


def _trained(x: Floats, lists: Lists, gold: Labels, seed: int) -> dict[str, Floats]:
    import torch

    d = x.shape[1]
    generator = torch.Generator().manual_seed(seed)

    def drawn(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64) * shape[0] ** -0.5

    first, bias, second = drawn(d, HIDDEN), torch.zeros(HIDDEN, dtype=torch.float64), drawn(HIDDEN)
    last = torch.zeros(1, dtype=torch.float64)
    learned = [first, bias, second, last]
    for part in learned:
        part.requires_grad_(True)
    optimizer = torch.optim.AdamW(learned, lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.01, STEPS)
    rows, place = torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(lists.prompt)
    accepted, share = torch.from_numpy(gold.accepted.astype(np.float64)), torch.from_numpy(gold.share)
    for _ in range(STEPS):
        optimizer.zero_grad()
        probability = torch.sigmoid(torch.relu(rows @ first + bias) @ second + last)
        loss = 1 - soft_weighted_f1(probability, accepted, share, place, lists.prompts).mean()
        loss.backward()
        optimizer.step()
        schedule.step()
    names = ("weights1", "bias1", "weights2", "bias2")
    return {name: part.detach().numpy() for name, part in zip(names, learned, strict=True)}


def soft_weighted_f1(probability: Tensor, accepted: Tensor, share: Tensor, place: Tensor, prompts: int) -> Tensor:
    """(prompts,) weighted F1 in which each row counts by its probability; with probabilities 0 and 1 the metric.

    Args:
        probability: (n,) of being chosen.
        accepted, share: (n,) as in `Labels`.
        place: (n,) the prompt of each row.
    """

    def total(values: Tensor) -> Tensor:
        return values.new_zeros(prompts).index_add(0, place, values)

    right, chosen, recall = total(probability * accepted), total(probability), total(probability * share)
    # 2PR / (P + R) with P = right / chosen, times chosen in numerator and denominator.
    return 2 * right * recall / (right + chosen * recall).clamp_min(1e-12)
