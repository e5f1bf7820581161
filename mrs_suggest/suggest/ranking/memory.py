"""A memory of real conversations: a reply is a good candidate if similar messages received it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mrs_suggest.suggest.ranking.char_tfidf import CharTfidf

PROTOTYPES = 64  # messages that are kept per reply; ours: the sample's most frequent reply has 41
_SAMPLE = 2048  # of a reply's messages, from which the prototypes are chosen: bounds their table of cosines to 16 MiB
Array = NDArray[np.float32]
ArrayOfInts = Sequence[int] | NDArray[np.int64]


@dataclass(frozen=True)
class MessageMemory:
    """Groups of messages, and the replies that they received; create it with `build`.

    Replies that received the same messages share a group.

    Attributes:
        vectors: (M, q) float32 of norm 1, rounded to float16 as they are saved, group by group.
        replies: (R,) int64 numbers of the replies that have messages, ascending.
        groups: (R,) int64 the group of each.
        starts: (G,) int64; the messages of group g begin at `starts[g]`.
        ngrams: character TF-IDF of the same M messages, optional.
        axes: (d, q) principal axes on which vectors are projected; None: no projection, q = d.
    """

    vectors: Array
    replies: NDArray[np.int64]
    groups: NDArray[np.int64]
    starts: NDArray[np.int64]
    ngrams: CharTfidf | None = None
    axes: NDArray[np.float32] | None = None

    @classmethod
    def build(
        cls,
        messages: Sequence[str],
        vectors: NDArray[np.float32],
        replies: ArrayOfInts,
        limit: int = PROTOTYPES,
        dimension: int | None = None,
        ngrams: bool = True,
    ) -> Self:
        """Remember messages, at most `limit` of each reply.

        Args:
            messages: M texts.
            vectors: (M, d) of any norm but 0.
            replies: (M,) number of the reply that each message received.
            limit: number of messages kept per reply, chosen by `prototypes`.
            dimension: of the kept vectors, along their principal axes; default d. On the sample 64 of 384 lose nothing.
            ngrams: keep character TF-IDF, too.

        Raises:
            ValueError: the three are empty, or differ in length.
        """
        numbers = np.asarray(replies, np.int64)
        if not len(messages) == len(vectors) == len(numbers) or not len(messages):
            raise ValueError(f"Expected one vector and one reply per message, and a message; found {len(messages)}.")
        # Before the product: its last digits depend on the place of a row.
        same = [hash((text, vector.tobytes())) for text, vector in zip(messages, vectors, strict=True)]
        unit, axes = unit_length(vectors), None
        if dimension is not None and dimension < vectors.shape[1]:
            axes = principal_axes(unit, dimension)
            unit = unit_length(unit @ axes)
        order = np.argsort(numbers, kind="stable")
        found, begins = np.unique(numbers[order], return_index=True)
        received = np.split(order, begins[1:])
        kept = [group if len(group) <= limit else group[prototypes(unit[group], limit)] for group in received]
        keys = [tuple(sorted(same[place] for place in group)) for group in kept]
        different = {key: number for number, key in enumerate(dict.fromkeys(keys))}
        by_key = dict(zip(reversed(keys), reversed(kept), strict=True))  # the first of equal ones stays
        shared = [by_key[key] for key in different]
        starts = np.concatenate([[0], np.cumsum([len(group) for group in shared])[:-1]]).astype(np.int64)
        places = np.concatenate(shared)
        rounded = unit[places].astype(np.float16).astype(np.float32)
        texts = CharTfidf.build([messages[place] for place in places]) if ngrams else None
        return cls(rounded, found, np.array([different[key] for key in keys], np.int64), starts, texts, axes)

    def cosines(self, message: NDArray[np.float32]) -> NDArray[np.float32]:
        """(M,) cosines of a message's vector (d,) with the remembered ones."""
        return self.vectors @ unit_length(message if self.axes is None else message @ self.axes)

    def nearest(self, cosines: Array) -> Array:
        """(G,) the largest cosine of each group."""
        return np.asarray(np.maximum.reduceat(cosines, self.starts))

    def votes(self, cosines: Array, temperature: float, top: Array | None = None) -> Array:
        """(G,) `temperature * ln(sum of exp(cosine / temperature))` of each group: many near messages count more than
        one; as the temperature approaches 0, only the nearest counts. `top` is `nearest`, if it is known."""
        top = self.nearest(cosines) if top is None else top
        sizes = np.diff(self.starts, append=len(cosines))
        below = cosines - np.repeat(top, sizes)  # so that the nearest one's is exp(0)
        sums = np.add.reduceat(np.exp(below / np.float32(temperature)), self.starts)
        return np.asarray(top + temperature * np.log(sums), np.float32)

    def arrays(self) -> dict[str, np.ndarray]:
        own: dict[str, np.ndarray] = {"vectors": self.vectors.astype(np.float16)}
        own |= {"replies": self.replies, "groups": self.groups, "starts": self.starts}
        if self.axes is not None:
            own["axes"] = self.axes
        return {**own, **{f"ngrams.{name}": a for name, a in self.ngrams.arrays().items()}} if self.ngrams else own

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The memory that `arrays` wrote; KeyError or ValueError if it is damaged."""
        ngrams = {name.removeprefix("ngrams."): array for name, array in arrays.items() if name.startswith("ngrams.")}
        axes = arrays["axes"].astype(np.float32) if "axes" in arrays else None
        texts = CharTfidf.from_arrays(ngrams) if ngrams else None
        vectors = np.asarray(arrays["vectors"], np.float32)
        replies, groups, starts = (np.asarray(arrays[name], np.int64) for name in ("replies", "groups", "starts"))
        memory, (size, width) = cls(vectors, replies, groups, starts, texts, axes), vectors.shape
        fits = len(replies) == len(groups) > 0 and len(starts) > 0 and 0 <= groups.min() <= groups.max() < len(starts)
        fits = fits and starts[0] == 0 and np.all(np.diff(starts) > 0)
        fits = fits and (axes is None or axes.shape[1:] == (width,))
        if not fits or starts[-1] >= size or (texts is not None and texts.size != size):
            raise ValueError("the arrays of the message memory do not match")
        return memory


def principal_axes(vectors: NDArray[np.float32], dimension: int) -> NDArray[np.float32]:
    """(d, dimension) orthonormal axes along which (n, d) vectors are longest, not centred, to preserve cosines."""
    _, axes = np.linalg.eigh(vectors.T.astype(np.float64) @ vectors)
    return np.ascontiguousarray(axes[:, ::-1][:, :dimension], np.float32)


def unit_length(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    """(..., d) vectors scaled to norm 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-12), np.float32)


def prototypes(vectors: NDArray[np.float32], limit: int) -> NDArray[np.int64]:
    """The numbers, ascending, of the `limit` most representative messages: a greedy choice of the largest total cosine
    between each message and the nearest chosen one (facility location).

    Args:
        vectors: (n, d) of norm 1; of more than 2,048, an evenly spaced sample counts.
    """
    seen = np.unique(np.linspace(0, len(vectors) - 1, min(len(vectors), _SAMPLE)).astype(np.int64))
    cosines = vectors[seen] @ vectors[seen].T
    best = np.full(len(seen), -1.0, np.float32)
    chosen: list[int] = []
    for _ in range(min(limit, len(seen))):
        gains = np.maximum(cosines - best, 0).sum(1)
        gains[chosen] = -np.inf
        chosen.append(int(gains.argmax()))
        best = np.maximum(best, cosines[chosen[-1]])
    return np.sort(seen[chosen])
