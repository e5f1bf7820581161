"""A search that only finds the replies of a set (De Cao et al. 2021, "Autoregressive Entity Retrieval")."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor


class Allowed(NamedTuple):
    """A set of replies.

    Attributes:
        texts: the tokens of each reply -> its text.
        following: the beginning of a reply -> the tokens that continue it, or the end token.
    """

    texts: Mapping[tuple[int, ...], str]
    following: Mapping[tuple[int, ...], list[int]]

    @classmethod
    def of(cls, replies: Sequence[str], ids: Sequence[Sequence[int]], most: int, end: int) -> Self:
        """The replies of at most `most` tokens, by their ids; of two with the same, the first."""
        texts: dict[tuple[int, ...], str] = {}
        for tokens, reply in zip(map(tuple, ids), replies, strict=True):
            if 0 < len(tokens) <= most:
                texts.setdefault(tokens, reply)
        following: dict[tuple[int, ...], dict[int, None]] = {}
        for tokens in texts:
            for place, token in enumerate((*tokens, end)):
                following.setdefault(tokens[:place], {})[token] = None
        return cls(texts, {beginning: list(found) for beginning, found in following.items()})

    def restrict(self, tokens: Tensor, scores: Tensor, ends: Sequence[int]) -> Tensor:
        """The scores (rows, vocabulary) of what may follow the tokens (rows, length); others are -inf.

        Only an end follows what is no beginning of a reply: beams that have ended, or that nothing continues.
        """
        kept = torch.full_like(scores, -torch.inf)
        for row, beginning in enumerate(map(tuple, tokens.tolist())):
            allowed = self.following.get(beginning, list(ends))
            kept[row, allowed] = scores[row, allowed]
        return kept
