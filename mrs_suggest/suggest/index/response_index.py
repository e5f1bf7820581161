"""Search for the best replies of a response set (Zhang et al. 2021, sections 2.1 and 4.1)."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.io.files import atomic_write
from mrs_suggest.common.io.manifest import again
from mrs_suggest.common.text.text import normalise_reply
from mrs_suggest.models.array_files import load_arrays, save_arrays
from mrs_suggest.models.starting_points import INDEXES_FOLDER
from mrs_suggest.suggest.answering import Suggestion
from mrs_suggest.suggest.index.cells import RESCORED, Cells

Array = NDArray[np.float32]
Encode = Callable[[list[str]], Array]
Part = TypeVar("Part")
VECTORS, _REPLIES = "vectors.safetensors", "replies.json"
AXES = "axes"  # (d, q): stored vectors are projections on these
_SCORES_AT_A_TIME = 1 << 25  # 128 MiB of float32
_FEW = 16  # messages below which a large set is searched one by one; more are faster in one product


@dataclass(frozen=True)
class ResponseIndex:
    """The replies of one language with their vectors; create it with `build`.

    Attributes:
        replies: N reply texts, no two with the same normalised form.
        vectors: (N, dimension) of the replies, float32.
        clusters: (N,) int64; at most one reply of a cluster is suggested.
        log_probs: (N,) float32 natural log-probabilities of the replies, 0 if unknown.
        alpha: weight of the log-probability in the score. 0 as in the paper, which omits the bonus for simplicity
            (section 4.1), and in the official test script; its training script sweeps around 0.5.
        cells: for the search in a large set; None in a small one.
    """

    replies: list[str]
    vectors: Array
    clusters: NDArray[np.int64]
    log_probs: Array
    alpha: float = 0.0
    cells: Cells | None = None

    @classmethod
    def build(
        cls,
        encode: Encode,
        replies: Sequence[str],
        clusters: Sequence[str] | None = None,
        log_probs: Sequence[float | None] | None = None,
        alpha: float = 0.0,
    ) -> ResponseIndex:
        """Embed a response set, most frequent reply first.

        Args:
            encode: reply texts -> (n, dimension) vectors.
            replies: the first of those with the same normalised form is kept.
            clusters: a name per reply; default its normalised form.
            log_probs: natural logarithms, None if unknown.

        Raises:
            InputError: all replies are blank, or a bonus is requested without log-probabilities.
        """
        kept: dict[str, int] = {}
        for number, reply in enumerate(replies):
            if reply.strip():
                kept.setdefault(normalise_reply(reply), number)
        order = list(kept.values())
        if not order:
            raise InputError("the response set is empty: nothing can be suggested from it.")
        known = log_probs is not None and any(value is not None for value in log_probs)
        if alpha and not known:
            raise InputError(f"the bonus alpha = {alpha} needs log-probabilities, which the response set lacks.")
        names = [(clusters[number] if clusters is not None else "") or form for form, number in kept.items()]
        ids = {name: number for number, name in enumerate(dict.fromkeys(names))}
        floor = min((v for v in log_probs or () if v is not None), default=0.0)
        bonus = [floor if (v := log_probs[number]) is None else v for number in order] if known and log_probs else []
        texts = [replies[number] for number in order]
        vectors = np.ascontiguousarray(encode(texts), np.float32)
        numbers = np.array([ids[name] for name in names], np.int64)
        weights = np.array(bonus or [0.0] * len(order), np.float32)
        return cls(texts, vectors, numbers, weights, float(alpha), Cells.from_arrays({}, vectors))

    def part(self, rows: NDArray[np.int64]) -> ResponseIndex:
        """The index of the replies with the numbers `rows`, in this order."""
        replies, clusters = [self.replies[row] for row in rows], list(map(str, self.clusters[rows].tolist()))
        log_probs = self.log_probs[rows].tolist()
        return ResponseIndex.build(lambda _: self.vectors[rows], replies, clusters, log_probs, self.alpha)

    def scores(self, messages: NDArray[np.floating]) -> Array:
        """(n, dimension) message vectors -> (n, N) scores `message . reply + alpha * log_prob`."""
        scores = np.asarray(messages, np.float32) @ self.vectors.T
        if self.alpha:
            scores += np.float32(self.alpha) * self.log_probs
        return scores

    def search(self, messages: NDArray[np.floating], k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k best replies of each message, best first, no two of one cluster.

        Exact, except in a large set (`cells.CELLS_FROM`) for few messages and without a bonus: there it searches
        the nearest cells.

        Args:
            messages: (n, dimension).
            k: at most the number of clusters is returned.

        Returns:
            Reply numbers (n, k') int64 and scores (n, k') float32; equal scores in the order of the set.
        """
        k = min(k, self._distinct_clusters)
        if (cells := self.cells) is not None and not self.alpha and 0 < len(messages) < _FEW:
            rows_found = [self._search_cells(message, cells, k) for message in np.asarray(messages, np.float32)]
            return np.stack([numbers for numbers, _ in rows_found]), np.stack([scores for _, scores in rows_found])
        rows = max(1, _SCORES_AT_A_TIME // len(self.replies))
        found = [self._search(messages[begin : begin + rows], k) for begin in range(0, len(messages), rows)]
        if not found:
            return np.empty((0, k), np.int64), np.empty((0, k), np.float32)
        return np.concatenate([numbers for numbers, _ in found]), np.concatenate([scores for _, scores in found])

    def suggest(self, messages: NDArray[np.floating], k: int) -> list[list[Suggestion]]:
        """The results of `search` as suggestions."""
        numbers, scores = self.search(messages, k)
        return [
            [Suggestion(self.replies[number], float(score)) for number, score in zip(row, values, strict=True)]
            for row, values in zip(numbers, scores, strict=True)
        ]

    def _search(self, messages: NDArray[np.floating], k: int) -> tuple[np.ndarray, np.ndarray]:
        scores = self.scores(messages)
        width = k if self._distinct_clusters == len(self.replies) else min(4 * k, len(self.replies))
        while True:
            top = _stable_top(scores, width)
            rows = [_first_of_clusters(row, self.clusters, k) for row in top]
            if all(len(row) == k for row in rows):
                chosen = np.stack(rows)
                return chosen, np.take_along_axis(scores, chosen, 1)
            width = min(4 * width, len(self.replies))

    def _search_cells(self, message: Array, cells: Cells, k: int) -> tuple[np.ndarray, np.ndarray]:
        """One message: exact among the likely replies, of all replies if those are of fewer than k clusters."""
        least = max(RESCORED, 4 * k)
        numbers = cells.likely(message, least) if least < len(self.replies) else np.arange(len(self.replies))
        scores = self.vectors[numbers] @ message
        order = np.argsort(-scores, kind="stable")
        chosen = _first_of_clusters(numbers[order], self.clusters, k)
        if len(chosen) < k:
            found, values = self._search(message[None], k)
            return found[0], values[0]
        return chosen, scores[np.searchsorted(numbers, chosen)]

    @cached_property
    def _distinct_clusters(self) -> int:
        return len(np.unique(self.clusters))

    def save(self, folder: Path) -> None:
        """Write vectors as safetensors, and texts and settings as JSON."""
        folder.mkdir(parents=True, exist_ok=True)
        cells = self.cells.arrays() if self.cells else {}
        arrays = {"vectors": self.vectors, **cells, "clusters": self.clusters, "log_probs": self.log_probs}
        save_arrays(arrays, folder / VECTORS)
        text = json.dumps({"alpha": self.alpha, "replies": self.replies}, ensure_ascii=False, indent=0)
        atomic_write(folder / _REPLIES, text + "\n")

    @classmethod
    def load(cls, folder: Path) -> ResponseIndex:
        """Read an index that `save` wrote; InputError if it is damaged."""
        try:
            arrays = load_arrays(folder / VECTORS)
            facts: dict[str, Any] = json.loads((folder / _REPLIES).read_text(encoding="utf-8"))
            vectors = arrays["vectors"]
            if vectors.ndim != 2 or vectors.dtype.kind != "f":
                raise ValueError("expected the vectors to be a table of floating-point numbers")
            vectors = np.asarray(vectors, np.float32)
            if AXES in arrays:  # a small copy has fewer dimensions
                with np.errstate(over="ignore"):  # scores that are not finite are refused
                    vectors = vectors @ np.asarray(arrays[AXES], np.float32).T
            log_probs = np.asarray(arrays["log_probs"], np.float32)  # a small copy has fp16
            clusters = np.asarray(arrays["clusters"], np.int64)
            cells = Cells.from_arrays(arrays, vectors)
            index = cls(facts["replies"], vectors, clusters, log_probs, float(facts["alpha"]), cells)
            if not isinstance(index.replies, list) or not all(isinstance(reply, str) for reply in index.replies):
                raise ValueError("expected replies to be a list of texts")
            if not np.abs(index.alpha * log_probs.astype(np.float64)).max(initial=0) <= np.finfo(np.float32).max:
                raise ValueError(f"alpha {index.alpha:g} gives a bonus that is not finite")
        except (OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError, SafetensorError) as error:
            raise InputError(f"{folder}: no usable response index ({error}); {again(folder)}.") from None
        if not len(index.replies) == len(index.vectors) == len(index.clusters) == len(index.log_probs):
            raise InputError(f"{folder}: {_REPLIES} and {VECTORS} differ in length; {again(folder)}.")
        return index


def _stable_top(scores: Array, width: int) -> NDArray[np.int64]:
    """(n, width) numbers of the best columns, ties by column number, so that results do not depend on the machine."""
    total = scores.shape[1]
    if width >= total:
        return np.argsort(-scores, axis=1, kind="stable")
    # All columns that reach the border value: of a tie across it, the smaller numbers are taken.
    borders = np.partition(scores, total - width, axis=1)[:, total - width]
    reach = [np.flatnonzero(~(row < border)) for row, border in zip(scores, borders, strict=True)]
    return np.stack(
        [some[np.argsort(-row[some], kind="stable")[:width]] for row, some in zip(scores, reach, strict=True)]
    )


def _first_of_clusters(columns: NDArray[np.int64], clusters: NDArray[np.int64], k: int) -> NDArray[np.int64]:
    """The first k columns that are each the first of their cluster."""
    seen: dict[int, int] = {}
    for column, cluster in zip(columns.tolist(), clusters[columns].tolist(), strict=True):
        seen.setdefault(cluster, column)
        if len(seen) == k:
            break
    return np.array(list(seen.values()), np.int64)


class ByLanguage(Mapping[str, Part], ABC):
    """The parts of a model by language, each read on first use."""

    def __init__(self, languages: Iterable[str]) -> None:
        self._languages, self._loaded = list(languages), dict[str, Part]()

    @abstractmethod
    def read(self, language: str) -> Part:
        """Read the part of a language."""

    def __getitem__(self, language: str) -> Part:
        if language not in self._languages:
            raise KeyError(language)
        if language not in self._loaded:
            self._loaded[language] = self.read(language)
        return self._loaded[language]

    def __iter__(self) -> Iterator[str]:
        return iter(self._languages)

    def __len__(self) -> int:
        return len(self._languages)


class ResponseIndexes(ByLanguage[ResponseIndex]):
    """The indexes of a model, in `response_index/` of its folder.

    Attributes:
        width: of the message vectors, once it is known.
    """

    FOLDER = INDEXES_FOLDER

    def __init__(self, model_folder: Path) -> None:
        self._folder = model_folder / self.FOLDER
        self.width: int | None = None
        super().__init__(sorted(path.name for path in self._folder.glob("*/")))

    def read(self, language: str) -> ResponseIndex:
        index = ResponseIndex.load(self._folder / language)
        if self.width is not None and index.vectors.shape[1:] != (self.width,):
            raise InputError(
                f"{self._folder / language}: the index belongs to another model: its vectors have "
                f"{index.vectors.shape[1]} dimensions, those of messages {self.width}."
            )
        return index
