"""A linear model that separates sensitive messages from everyday ones, by message vectors and character n-grams.

Logistic regression (L2-regularised, classes balanced) on the example messages of all languages and on further everyday
ones. The features are the message's vector from the model's encoder and its hashed character n-grams and pairs of
words, as in the hashing vectorizers of Weinberger et al. (2009): a small encoder alone knows too few words. At most
`ALARMS` of unseen everyday messages exceed the threshold; that of self-harm is lower. If too few held-out sensitive
examples are found (`LEAST_RECALL`), the model is not used. Training writes it to `guard/` in the model's folder.
"""

from __future__ import annotations

import hashlib
import json
import re
import warnings
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_folder
from mrs_suggest.common.io.manifest import again
from mrs_suggest.models.starting_points import GUARD_FOLDER
from mrs_suggest.suggest.guard import EVERYDAY, SENSITIVE
from mrs_suggest.suggest.guard.patterns import fold, spellings

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

SETTINGS, ARRAYS = "guard.json", "space.safetensors"
SELF_HARM = "self_harm"
ALARMS = 0.01  # ours: real chat differs from these messages, so that several times as many of its messages exceed it
SELF_HARM_ALARMS = 0.03  # as ALARMS, for messages that seem to be about self-harm; ours: silence is safer there
LEAST_RECALL = 0.1  # of held-out examples; ours: a space with a lower recall is unreliable
BUCKETS = 2**14  # of n-grams; ours: twice as many find no more, and the file stays below 400 KB
LENGTHS = (3, 4, 5)  # of n-grams, in characters, with a space at both ends of a word
MOST_CHARACTERS = 1000  # of a message that are read; ours: in longer ones each n-gram has almost no weight
VECTOR_LENGTH = 0.7  # of a vector, where that of the n-grams is 1; ours, chosen among 0.3 to 3
STRENGTH = 3.0  # C of the regression; ours, chosen among 1 to 30
STEPS = 50  # of L-BFGS; ours: 150 find no more than a hundredth more, and take three times as long
HELD_OUT = 4  # one of four examples is held out to estimate the recall
Examples = Mapping[str, Mapping[str, Sequence[str]]]
Vectors = NDArray[np.floating]
_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class GuardSpace:
    """Scores messages; create it with `fit` or `load`.

    Attributes:
        weights: (BUCKETS + dimension, 1 + reasons): the first column scores sensitive against everyday messages, the
            others each reason against the others.
        bias: (1 + reasons,).
        threshold: of the first column's score, from which a message is sensitive.
        self_harm: the same, if its likeliest reason is self-harm; at most `threshold`.
        examples: `fingerprint` of the example messages.
        recall: the share of held-out sensitive examples above `threshold`.
    """

    weights: NDArray[np.float32]
    bias: NDArray[np.float32]
    threshold: float
    self_harm: float
    examples: str
    recall: float

    @classmethod
    def fit(
        cls,
        encode: Callable[[list[str]], Vectors],
        examples: Examples,
        everyday: Sequence[str] = (),
        unseen: Sequence[str] = (),
        own: Sequence[str] = (),
    ) -> GuardSpace:
        """Fit to the example messages of all languages.

        Args:
            encode: n texts -> (n, dimension) vectors.
            examples: language -> reason or `everyday` -> texts.
            everyday: further everyday messages to learn from.
            unseen: everyday messages that set the threshold; empty: a quarter of the everyday examples, which are
                harder and lower the recall.
            own: messages of the model's training data, which set the threshold, too: they may be unlike all examples.

        Raises:
            InputError: the everyday or the sensitive examples are missing.
        """
        rows = [(text, kind) for own in examples.values() for kind, texts in own.items() for text in texts]
        if not 0 < sum(kind == EVERYDAY for _, kind in rows) < len(rows):
            raise InputError(f"prototypes: expected sensitive messages and {EVERYDAY} ones; docs/guard.md has both.")
        left_out = np.arange(len(rows) + len(everyday)) % HELD_OUT == 0
        left_out[len(rows) :] = False
        rows += [(text, EVERYDAY) for text in everyday]
        texts, kinds = [text for text, _ in rows], np.array([kind for _, kind in rows])
        grave, vectors = kinds != EVERYDAY, np.asarray(encode(texts), np.float32)
        mean = vectors.mean(axis=0)
        spread = np.sqrt(((vectors - mean) ** 2).sum(axis=1).mean())
        scale = VECTOR_LENGTH / max(float(spread), 1e-9)
        features = _features(texts, (vectors - mean) * scale)
        held = _scores(_logistic(features[~left_out], grave[~left_out]), features[left_out])
        fitted, named = _logistic(features, grave), _logistic(features[grave], kinds[grave])
        weights, bias = np.concatenate([fitted[0], named[0]], axis=1), np.concatenate([fitted[1], named[1]])
        weights[BUCKETS:] *= scale  # so that it takes vectors as they are
        bias -= mean @ weights[BUCKETS:]
        # Stored as they will be read, and the thresholds are those of what is stored.
        weights = weights.astype(np.float16).astype(np.float32)
        space = cls(weights, bias.astype(np.float32), 0.0, 0.0, fingerprint(examples), 0.0)
        calm = list(dict.fromkeys([*unseen, *own]))  # a run on the sample has the same messages in both
        scores = dict(zip(calm, space.scores(calm, encode(calm))[0][:, 0].tolist(), strict=True)) if calm else {}
        groups = [[scores[text] for text in unseen] or held[~grave[left_out]], [scores[text] for text in own]]
        threshold, self_harm = (
            max(float(np.quantile(group, 1 - share, method="higher")) for group in groups if len(group))
            for share in (ALARMS, SELF_HARM_ALARMS)
        )
        recall = float((held[grave[left_out]] > threshold).mean())
        return replace(space, threshold=threshold, self_harm=self_harm, recall=recall)

    def scores(self, messages: Sequence[str], vectors: Vectors) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
        """(n, 1 + reasons) scores of n messages with vectors (n, dimension), and (n,) whether the n-grams alone have a
        positive one: far from all examples, as in another script or among emojis, that of a vector is meaningless."""
        rows = np.asarray(vectors, np.float32) @ self.weights[BUCKETS:] + self.bias
        known = np.zeros(len(rows), bool)
        for number, message in enumerate(messages):
            if buckets := _buckets(message):
                grams = self.weights[buckets].sum(axis=0) / np.sqrt(len(buckets))
                rows[number] += grams
                known[number] = grams[0] > 0
        return rows, known

    def reasons(self, messages: Sequence[str], vectors: Vectors) -> list[str | None]:
        """The reason of each message, or None; `vectors` (n, dimension) are those of the n messages."""
        if self.recall < LEAST_RECALL:
            return [None] * len(messages)
        rows, known = self.scores(messages, vectors)
        best = [SENSITIVE[number] for number in rows[:, 1:].argmax(axis=1)]
        return [
            reason if is_known and score > (self.self_harm if reason == SELF_HARM else self.threshold) else None
            for score, reason, is_known in zip(rows[:, 0], best, known, strict=True)
        ]

    def save(self, folder: Path) -> None:
        """Write `guard/` to a model's folder."""
        facts = {"reasons": list(SENSITIVE), "buckets": BUCKETS}
        facts |= {"threshold": self.threshold, SELF_HARM: self.self_harm}
        text = json.dumps({**facts, "examples": self.examples, "recall": self.recall}, indent=2)
        with atomic_folder(folder / GUARD_FOLDER, overwrite=True, marker=SETTINGS) as place:
            (place / SETTINGS).write_text(text + "\n", encoding="utf-8")
            arrays = {"weights": self.weights.astype(np.float16), "bias": self.bias}
            save_file({name: np.ascontiguousarray(array) for name, array in arrays.items()}, place / ARRAYS)
            (place / ARRAYS).chmod((place / SETTINGS).stat().st_mode & 0o777)  # safetensors lets only the owner read

    @classmethod
    def load(cls, folder: Path) -> GuardSpace | None:
        """Read a model's `guard/`; None if it is missing, InputError if it is damaged."""
        place = folder / GUARD_FOLDER
        if not (place / SETTINGS).is_file():
            return None
        try:
            facts = json.loads((place / SETTINGS).read_text(encoding="utf-8"))
            arrays = {name: array.astype(np.float32) for name, array in load_file(place / ARRAYS).items()}
            thresholds = float(facts["threshold"]), float(facts[SELF_HARM])
            space = cls(arrays["weights"], arrays["bias"], *thresholds, facts["examples"], float(facts["recall"]))
            if tuple(facts["reasons"]) != SENSITIVE or facts["buckets"] != BUCKETS or len(space.weights) < BUCKETS:
                raise ValueError("made for other reasons")
            if space.weights.shape[1:] != (1 + len(SENSITIVE),) or space.bias.shape != (1 + len(SENSITIVE),):
                raise ValueError("expected a column for each reason")
        except (OSError, ValueError, KeyError, TypeError, SafetensorError) as error:
            raise InputError(f"{place}: damaged ({error}); {again(folder)}.") from None
        return space


def fingerprint(examples: Examples) -> str:
    """A hash of example messages, which identifies those a stored space was fitted to."""
    text = json.dumps(examples, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


Linear = tuple[NDArray[np.float64], NDArray[np.float64]]  # weights (features, columns), bias (columns,)


def _logistic(features: csr_matrix, kinds: NDArray[np.bool_] | NDArray[np.str_]) -> Linear:
    """Balanced logistic regression with a column for True, or one for each reason."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    classes = [True] if kinds.dtype == bool else list(SENSITIVE)
    weights, bias = np.zeros((features.shape[1], len(classes))), np.full(len(classes), -1e4)
    present = [number for number, kind in enumerate(classes) if (kinds == kind).any()]
    if len(np.unique(kinds)) == 1:  # the examples have one reason
        bias[present] = 0.0
        return weights, bias
    model = LogisticRegression(C=STRENGTH, class_weight="balanced", solver="lbfgs", max_iter=STEPS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # it stops after STEPS
        model.fit(features, kinds)
    if len(model.classes_) == 2 and kinds.dtype != bool:  # one row of weights for both
        model.coef_, model.intercept_ = np.array([[-1], [1]]) * model.coef_, np.array([-1, 1]) * model.intercept_
    order = [0] if kinds.dtype == bool else [list(model.classes_).index(classes[number]) for number in present]
    weights[:, present], bias[present] = model.coef_[order].T, model.intercept_[order]
    return weights, bias


def _scores(model: Linear, features: csr_matrix) -> NDArray[np.float64]:
    return np.asarray(features @ model[0][:, 0] + model[1][0])


def _features(messages: Sequence[str], vectors: Vectors) -> csr_matrix:
    """(n, BUCKETS + dimension): n-grams of length 1, and vectors."""
    from scipy.sparse import csr_matrix, hstack

    found = [_buckets(message) for message in messages]
    counts = np.array([len(row) for row in found])
    columns = np.array([number for row in found for number in row], np.int32)
    values = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts)
    grams = csr_matrix((values, columns, np.concatenate([[0], counts.cumsum()])), shape=(len(messages), BUCKETS))
    return hstack([grams, csr_matrix(vectors)]).tocsr()


def _buckets(message: str) -> list[int]:
    """The different buckets of a message's n-grams and pairs of words, without accents and stretched letters."""
    words = _WORD.findall(spellings(fold(message[:MOST_CHARACTERS], accents=False))[-1])
    found = {f"{first} {second}" for first, second in pairwise(words)}
    for word in words:
        padded = f" {word} "
        found.update(padded[at : at + n] for n in LENGTHS for at in range(len(padded) - n + 1))
    return sorted({zlib.crc32(gram.encode(errors="surrogatepass")) % BUCKETS for gram in found})
