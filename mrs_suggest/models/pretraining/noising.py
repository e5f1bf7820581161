"""Noise for denoising pre-training (xDAE of Liang et al. 2020, XGLUE, section 4.1).

A sequence-to-sequence model reads a damaged text and writes the whole one. There are four noises: `shuffle`, `drop`,
`mask`, and `spans`, with which all xDAE results of the paper were made (section 6.3.4, Table 10).

The unit is the token. The paper says words for `drop` and `mask`; XLM-R's vocabulary, which it uses, has pieces, and
in scripts without spaces, such as Japanese, pieces do not show where a word starts.

The loss of a text X is -sum_t log p(x_t | x_<t, c(X)), c(X) being the noised text; the tokens that end the text are
predicted too, so that a generator that starts from the model can end its own.
"""

import hashlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor
from torch.nn import functional

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.language_tokens import TokenFrame
from mrs_suggest.models.generation.padding import IGNORED, seq2seq_batch

SHUFFLE_WIDTH = 3.0  # XGLUE, section 4.1 (1)
DROP_SHARE = 0.1  # XGLUE, section 4.1 (2)
MASK_SHARE = 0.1  # XGLUE, section 4.1 (3)
SPAN_LENGTH = 3.0  # XGLUE, section 4.1 (4); mBART (Liu et al. 2020, section 2.2) has 3.5
# XGLUE 4.1 and microsoft/Unicoder (generation/) have none for their spans. BART, with the same span length, masks 30 %
# of the tokens (Lewis et al. 2020, section 5.1); mBART masks 35 % of the words (Liu et al. 2020, section 2.2).
SPAN_SHARE = 0.3
MAX_TOKENS = 512  # XGLUE, section 6.1: "512 max input length"


def shuffle_tokens(tokens: Sequence[int], rng: Generator, width: float = SHUFFLE_WIDTH) -> list[int]:
    """Noise (1): add U(0, `width`) to every position and sort; a token moves by fewer than `width` places.

    Example:
        >>> shuffle_tokens([10, 11, 12, 13], np.random.default_rng(0))
        [11, 10, 12, 13]
        >>> shuffle_tokens([10, 11, 12, 13], np.random.default_rng(0), width=1.0)
        [10, 11, 12, 13]
    """
    places = np.arange(len(tokens)) + rng.uniform(0.0, width, len(tokens))
    return [tokens[place] for place in np.argsort(places, kind="stable")]  # stable: rounding cannot swap far ones


def drop_tokens(tokens: Sequence[int], rng: Generator, p: float = DROP_SHARE) -> list[int]:
    """Noise (2): leave out each token with probability `p`, but never the last one that is left.

    Example:
        >>> drop_tokens([10, 11, 12, 13], np.random.default_rng(1), p=0.5)
        [10, 11, 13]
        >>> drop_tokens([10], np.random.default_rng(0), p=1.0)
        [10]
    """
    kept = [token for token, chance in zip(tokens, rng.random(len(tokens)), strict=True) if chance >= p]
    return kept if kept or not tokens else [tokens[int(rng.integers(len(tokens)))]]


def mask_tokens(tokens: Sequence[int], rng: Generator, mask_id: int, p: float = MASK_SHARE) -> list[int]:
    """Noise (3): replace each token by `mask_id` with probability `p`; the length stays.

    Example:
        >>> mask_tokens([10, 11, 12, 13], np.random.default_rng(1), mask_id=4, p=0.5)
        [10, 11, 4, 13]
    """
    return [mask_id if chance < p else token for token, chance in zip(tokens, rng.random(len(tokens)), strict=True)]


def mask_spans(
    tokens: Sequence[int], rng: Generator, mask_id: int, share: float = SPAN_SHARE, mean_length: float = SPAN_LENGTH
) -> list[int]:
    """Noise (4): replace spans of Poisson length by one `mask_id` each; a span of length 0 inserts one.

    Spans are drawn until they cover the `share` (the last is cut to fit), and then placed so that every arrangement of
    spans and kept tokens is equally likely. Spans never overlap; two may touch, and leave two masks side by side.

    Args:
        share: of the tokens, to be replaced. `share * n` is rounded up or down at random so that the share holds on
            the average, also over texts of a few tokens, some of which then stay as they are.
        mean_length: of the spans, lambda of the Poisson distribution.

    Example:
        >>> mask_spans(list(range(10, 20)), np.random.default_rng(0), mask_id=4)
        [4, 12, 13, 14, 4, 15, 16, 4, 18, 19]
    """
    count = min(len(tokens), int(share * len(tokens) + rng.random()))
    lengths = span_lengths(count, rng, mean_length)
    rng.shuffle(lengths)  # the one that was cut is not always the last of the text
    slots = len(tokens) - count + len(lengths)
    is_span = np.zeros(slots, dtype=bool)
    is_span[rng.choice(slots, len(lengths), replace=False)] = True
    covered = np.ones(slots, dtype=np.int64)  # tokens of each slot
    covered[is_span] = lengths
    places = np.cumsum(covered) - covered
    return [mask_id if span else tokens[place] for span, place in zip(is_span.tolist(), places.tolist(), strict=True)]


def span_lengths(count: int, rng: Generator, mean_length: float = SPAN_LENGTH) -> list[int]:
    """Poisson lengths that add up to `count`, zeros among them; the last is cut to fit.

    Example:
        >>> span_lengths(12, np.random.default_rng(0))
        [2, 0, 7, 1, 2]
    """
    lengths: list[int] = []
    left = count
    while left > 0:
        lengths.append(min(left, int(rng.poisson(mean_length))))
        left -= lengths[-1]
    return lengths


NOISES: dict[str, Callable[..., list[int]]] = {
    "shuffle": shuffle_tokens,
    "drop": drop_tokens,
    "mask": mask_tokens,
    "spans": mask_spans,
}


def parse_noises(values: Sequence[str]) -> dict[tuple[str, ...], float]:
    """Read `NAME[+NAME...]`, one alone, or several with shares that add up to 1: `NAME[+NAME...]=SHARE`.

    Raises:
        InputError: an unknown or repeated name, or shares that are not numbers or do not add up to 1.

    Example:
        >>> parse_noises(["spans"])
        {('spans',): 1.0}
        >>> parse_noises(["spans=.7", "shuffle+drop+mask=.3"])
        {('spans',): 0.7, ('shuffle', 'drop', 'mask'): 0.3}
    """
    found: dict[tuple[str, ...], float] = {}
    for value in values:
        joined, equals, share = value.partition("=")
        names = tuple(joined.split("+"))
        unknown = [name for name in names if name not in NOISES]
        if unknown or len(set(names)) < len(names) or names in found:
            raise InputError(
                f"--noise {value}: expected names among {', '.join(NOISES)}, each once, several on one text joined "
                f"by +, found {unknown[0] if unknown else joined!r}."
            )
        try:
            found[names] = float(share) if equals or len(values) > 1 else 1.0
        except ValueError:
            raise InputError(f"--noise {value}: expected a share, such as {joined}=0.5.") from None
    if not all(0 < share <= 1 for share in found.values()) or not math.isclose(sum(found.values()), 1):
        raise InputError(
            f"--noise {' '.join(values)}: expected shares above 0 that add up to 1, found "
            f"{sum(found.values()):g} in all."
        )
    return found


@dataclass
class DrawsByEpoch:
    """A collator whose draws depend on the seed, the epoch and the text alone (see `seeded_by`): not on the batch, the
    rank, the number of workers, or the place where a run was resumed. Call `set_epoch` before each epoch."""

    # In shared memory: workers that outlive an epoch hold a copy of the collator, and must see the next one's number.
    _epoch: Tensor = field(
        default_factory=lambda: torch.zeros((), dtype=torch.int64).share_memory_(),
        init=False, repr=False, compare=False,
    )  # fmt: skip

    def set_epoch(self, epoch: int) -> None:
        """Draw anew from now on; equal numbers draw the same."""
        self._epoch.fill_(epoch)


def seeded_by(seed: int, epoch: int, tokens: Sequence[int]) -> Generator:
    """Random numbers that depend on the seed, the epoch and the text alone."""
    content = np.asarray(tokens, dtype="<i8").tobytes()  # the same bytes on every machine
    digest = int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")
    return np.random.default_rng([seed, epoch, digest])


@dataclass
class NoisingCollator(DrawsByEpoch):
    """Texts in several languages -> a batch for denoising: the source is the noised text, the target the clean one.

    Special tokens come after the noise, so that none is ever masked, dropped or moved.

    Args:
        pad_id, mask_id: ids of the padding and of [MASK].
        frame: of the checkpoint: what stands around source and target.
        noises: names from `NOISES`, applied in this order -> their share; each text gets one of these recipes.
        special_ids: stand between texts of one row: they stay in their places, and each text is noised by itself.
        max_tokens: no row of the batch is longer; the end of a text is cut, and of a source where masks were inserted.
    """

    pad_id: int
    mask_id: int
    frame: TokenFrame
    noises: Mapping[tuple[str, ...], float] = field(default_factory=lambda: {("spans",): 1.0})
    seed: int = 0
    max_tokens: int = MAX_TOKENS
    span_share: float = SPAN_SHARE
    span_length: float = SPAN_LENGTH
    special_ids: Sequence[int] = ()

    def noise(self, tokens: Sequence[int]) -> list[int]:
        rng = seeded_by(self.seed, int(self._epoch), tokens)
        noised: list[int] = []
        for is_special, group in groupby(tokens, set(self.special_ids).__contains__):
            part = list(group)
            noised += part if is_special else self._noised(part, rng)
        return noised

    def _noised(self, part: list[int], rng: Generator) -> list[int]:
        options: dict[str, dict[str, Any]] = {
            "mask": {"mask_id": self.mask_id},
            "spans": {"mask_id": self.mask_id, "share": self.span_share, "mean_length": self.span_length},
        }
        chosen = 0
        if len(self.noises) > 1:
            chosen = int(np.searchsorted(np.cumsum(list(self.noises.values()))[:-1], rng.random(), side="right"))
        for name in list(self.noises)[chosen]:
            part = NOISES[name](part, rng, **options.get(name, {}))
        return part

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch.

        Args:
            features: `input_ids`, a text without special tokens around it, and `language`, the id of its language's
                token.

        Returns:
            As `seq2seq_batch`.
        """
        end = list(self.frame.end)
        sources, prompts, targets = [], [], []
        for feature in features:
            before, prompt = self.frame.begin(feature["language"]), self.frame.start(feature["language"])
            room = self.frame.room(self.max_tokens)
            if room < 1:
                raise InputError(
                    f"--max_tokens {self.max_tokens}: leaves no room for text next to the special tokens; raise it."
                )
            text = list(feature["input_ids"])[:room]
            sources.append([*before, *self.noise(text)[: self.max_tokens - len(before) - len(end)], *end])
            prompts.append(prompt)
            targets.append([*text, *end])
        return seq2seq_batch(sources, prompts, targets, self.pad_id)


def next_token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each token in nats, (batch, length), 0 where the label is -100.

    Args:
        logits: (batch, length, vocabulary).
        labels: (batch, length).
    """
    return functional.cross_entropy(logits.float().transpose(1, 2), labels, ignore_index=IGNORED, reduction="none")


def next_token_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Cross-entropy averaged over the target tokens of the whole step, of all ranks and accumulated batches, so that
    the gradient does not depend on how a step is cut into batches."""
    count = (labels != IGNORED).sum() if num_items_in_batch is None else num_items_in_batch
    return next_token_losses(outputs["logits"], labels).sum() / count
