"""A network of two layers that is trained on the differentiable weighted F1 itself, as sweagraw's filter in the task.

Source: Agrawal and Carpuat 2020, "Generating Diverse Translations via Weighted Fine-tuning and Hypotheses Filtering for
the Duolingo STAPLE Task": the counts of F1 are replaced by sums of probabilities. Here precision is that of the
translations and recall is weighted, as in the metric (Mayhew et al. 2020, section 2.3), for each prompt by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.staple.filters.choice_scores import reaching
from mrs_suggest.staple.lists import Gold, Lists
from mrs_suggest.staple.pooling import Floats
from mrs_suggest.staple.rules.base import Choice, Fitting, Rule
from mrs_suggest.staple.rules.classifier import learned_features
from mrs_suggest.staple.rules.trees import logistic

if TYPE_CHECKING:
    from torch import Tensor

HIDDEN = 16  # ours: a few times fewer numbers to learn than prompts
STEPS = 300  # of Adam over all prompts at once; ours
RATE, DECAY = 0.02, 1e-2  # ours
LEAST = 0.5  # a soft count of one half or more is a choice
LONGEST = 4.0  # standard deviations that a feature may lie off its mean; ours: outliers drive a network far
KEYS = ("mean", "scale", "weights1", "bias1", "weights2", "bias2")


@dataclass(frozen=True, eq=False)
class SoftF1(Rule):
    """Those with a probability from one half, and always the first of a prompt.

    Attributes:
        names: of the d features, in their order.
        parts: `KEYS`: (d,) mean and scale, (d, h) and (h,) of the first layer, (h,) and (1,) of the second.
    """

    name: ClassVar[str] = "soft-f1"
    score_name: ClassVar[str | None] = "probability"
    names: tuple[str, ...]
    parts: Mapping[str, Floats]

    @classmethod
    def needs(cls, fitting: Fitting, features: Sequence[str]) -> tuple[str, ...]:
        return learned_features(fitting, features)

    @classmethod
    def fit(cls, lists: Lists, gold: Gold, fitting: Fitting) -> SoftF1:
        names = learned_features(fitting, list(lists.features))
        x = lists.matrix(names)
        known = np.isfinite(x)
        count = np.maximum(known.sum(axis=0), 1)
        mean = np.where(known, x, 0.0).sum(axis=0) / count
        spread = np.sqrt(np.where(known, (x - mean) ** 2, 0.0).sum(axis=0) / count)
        parts = {"mean": mean, "scale": np.where(spread > 0, spread, 1.0)}
        return cls(names, {**parts, **_trained(_scaled(x, parts), lists, gold, fitting.seed)})

    @property
    def features(self) -> tuple[str, ...]:
        return self.names

    def choose(self, lists: Lists) -> Choice:
        parts = self.parts
        hidden = np.maximum(_scaled(lists.matrix(self.names), parts) @ parts["weights1"] + parts["bias1"], 0.0)
        probability = logistic(hidden @ parts["weights2"] + parts["bias2"][0])
        return Choice(reaching(lists, probability, LEAST), probability)

    def settings(self) -> dict[str, Any]:
        return {"hidden": len(self.parts["bias1"])}

    def arrays(self) -> dict[str, NDArray[Any]]:
        return dict(self.parts)

    @classmethod
    def stored(
        cls, settings: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], features: tuple[str, ...]
    ) -> SoftF1:
        parts = {key: arrays[key].astype(np.float64) for key in KEYS}
        d, h = len(features), settings["hidden"]
        shapes = {"mean": (d,), "scale": (d,), "weights1": (d, h), "bias1": (h,), "weights2": (h,), "bias2": (1,)}
        for key, shape in shapes.items():
            if parts[key].shape != shape or not np.isfinite(parts[key]).all():
                raise ValueError(f"its array {key} is not one of finite numbers {shape}")
        return cls(features, parts)


def _scaled(x: Floats, parts: Mapping[str, Floats]) -> Floats:
    """Features in standard deviations from their mean; the mean where one is not known."""
    return np.clip(np.nan_to_num((x - parts["mean"]) / parts["scale"], nan=0.0), -LONGEST, LONGEST)


def _trained(x: Floats, lists: Lists, gold: Gold, seed: int) -> dict[str, Floats]:
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
    values = [part.detach().numpy() for part in learned]
    return dict(zip(KEYS[2:], values, strict=True))


def soft_weighted_f1(probability: Tensor, accepted: Tensor, share: Tensor, place: Tensor, prompts: int) -> Tensor:
    """(prompts,) weighted F1 in which each row counts by its probability; with probabilities 0 and 1 the metric.

    Args:
        probability: (n,) of being chosen.
        accepted, share: (n,) as in `Gold`.
        place: (n,) the prompt of each row.
    """

    def total(values: Tensor) -> Tensor:
        return values.new_zeros(prompts).index_add(0, place, values)

    right, chosen, recall = total(probability * accepted), total(probability), total(probability * share)
    # 2PR / (P + R) with P = right / chosen, times chosen in numerator and denominator.
    return 2 * right * recall / (right + chosen * recall).clamp_min(1e-12)
