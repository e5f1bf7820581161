"""The direction of sensitive messages in the space of a model's encoder: a linear model over message vectors.

Ridge regression (Hoerl and Kennard 1970) on the example messages of all languages, sensitive against everyday ones. The
threshold is what at most `ALARMS` of the everyday examples exceed when each is left out (in closed form), so that in a
poor space the linear model says little, or nothing (`LEAST_RECALL`), instead of much that is wrong. Training writes it
to the model's `guard/`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mrs_core.errors import InputError
from mrs_core.files import atomic_folder
from mrs_core.guard import EVERYDAY, SENSITIVE
from mrs_core.manifest import again
from mrs_models.starting_points import GUARD_FOLDER

SETTINGS, ARRAYS = "guard.json", "space.safetensors"
ALARMS = 0.01  # ours: half of the 2 % false alarms that are allowed; a fifth of the examples sound grave on purpose
PENALTIES = tuple(10.0**power for power in range(-4, 2))  # times the mean squared length of a vector
LEAST_RECALL = 0.5  # ours: a space in which fewer left-out examples are found says nothing that can be relied on
Examples = Mapping[str, Mapping[str, Sequence[str]]]
Vectors = NDArray[np.floating]


@dataclass(frozen=True)
class GuardSpace:
    """Scores message vectors; make it with `fit` or `load`.

    Attributes:
        weights: (dimension, 1 + reasons): the first column tells sensitive from everyday messages, the others each
            reason from all else.
        bias: (1 + reasons,).
        threshold: of the first column's score, from which a message is sensitive.
        examples: `fingerprint` of the example messages.
        recall: the share of the sensitive examples above the threshold when each is left out.
    """

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    threshold: float
    examples: str
    recall: float

    @classmethod
    def fit(cls, encode: Callable[[list[str]], Vectors], examples: Examples) -> GuardSpace:
        """Fit it to the example messages of all languages.

        Args:
            encode: n texts -> (n, dimension) vectors.
            examples: language -> reason or `everyday` -> texts.

        Raises:
            InputError: there are no everyday or no sensitive ones.
        """
        rows = [(text, kind) for own in examples.values() for kind, texts in own.items() for text in texts]
        kinds = np.array([kind for _, kind in rows])
        if not 0 < (kinds == EVERYDAY).sum() < len(rows):
            raise InputError(f"prototypes: expected sensitive messages and {EVERYDAY} ones; docs/guard.md has both.")
        vectors = np.asarray(encode([text for text, _ in rows]), np.float64)
        targets = np.stack([kinds != EVERYDAY, *(kinds == reason for reason in SENSITIVE)], axis=1) * 2.0 - 1.0
        found = [_ridge(vectors, targets, penalty) for penalty in PENALTIES]
        # By the separation of the left-out scores in units of their spread: smoother than the recall itself.
        weights, bias, left_out = max(found, key=lambda one: _separation(one[2], kinds != EVERYDAY))
        threshold = float(np.quantile(left_out[kinds == EVERYDAY], 1 - ALARMS, method="higher"))
        recall = float((left_out[kinds != EVERYDAY] > threshold).mean())
        return cls(weights.astype(np.float32), bias.astype(np.float32), threshold, fingerprint(examples), recall)

    def reasons(self, vectors: Vectors) -> list[str | None]:
        """The reason of each message from its (n, dimension) vector, or None."""
        if self.recall < LEAST_RECALL:
            return [None] * len(vectors)
        scores = np.asarray(vectors, np.float32) @ self.weights + self.bias
        best = scores[:, 1:].argmax(axis=1)
        return [
            SENSITIVE[number] if score > self.threshold else None
            for score, number in zip(scores[:, 0], best, strict=True)
        ]

    def save(self, folder: Path) -> None:
        """Write `guard/` to a model's folder."""
        facts = {"reasons": list(SENSITIVE), "threshold": self.threshold}
        text = json.dumps({**facts, "examples": self.examples, "recall": self.recall}, indent=2)
        with atomic_folder(folder / GUARD_FOLDER, overwrite=True, marker=SETTINGS) as place:
            (place / SETTINGS).write_text(text + "\n", encoding="utf-8")
            save_file({"weights": np.ascontiguousarray(self.weights), "bias": self.bias}, place / ARRAYS)
            (place / ARRAYS).chmod((place / SETTINGS).stat().st_mode & 0o777)  # safetensors lets only the owner read

    @classmethod
    def load(cls, folder: Path) -> GuardSpace | None:
        """Read a model's `guard/`; None if it has none.

        Raises:
            InputError: it is damaged.
        """
        place = folder / GUARD_FOLDER
        if not (place / SETTINGS).is_file():
            return None
        try:
            facts = json.loads((place / SETTINGS).read_text(encoding="utf-8"))
            arrays = {name: array.astype(np.float32) for name, array in load_file(place / ARRAYS).items()}
            space = cls(
                arrays["weights"], arrays["bias"], float(facts["threshold"]), facts["examples"], float(facts["recall"])
            )
            if tuple(facts["reasons"]) != SENSITIVE or space.weights.shape[1:] != space.bias.shape:
                raise ValueError("made for other reasons")
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise InputError(f"{place}: damaged ({error}); {again(folder)}.") from None
        return space


def fingerprint(examples: Examples) -> str:
    """A hash of example messages, by which a stored space is known to be made from them."""
    text = json.dumps(examples, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _ridge(vectors: Vectors, targets: Vectors, penalty: float) -> tuple[Vectors, Vectors, Vectors]:
    """Weights, bias, and the scores of the first target with each example left out."""
    mean, middle = vectors.mean(axis=0), targets.mean(axis=0)
    centred = vectors - mean
    gram = centred.T @ centred
    gram.flat[:: len(gram) + 1] += penalty * (centred**2).sum(axis=1).mean()
    solved = np.linalg.solve(gram, centred.T)
    weights = solved @ (targets - middle)
    leverage = np.einsum("nd,dn->n", centred, solved) + 1 / len(vectors)
    fitted = centred @ weights[:, 0] + middle[0]
    left_out = targets[:, 0] - (targets[:, 0] - fitted) / (1 - leverage)
    return weights, middle - mean @ weights, left_out


def _separation(scores: Vectors, sensitive: NDArray[np.bool_]) -> float:
    spread = np.sqrt((scores[sensitive].var() + scores[~sensitive].var()) / 2)
    return float((scores[sensitive].mean() - scores[~sensitive].mean()) / spread)
