"""Noise for denoising pre-training (xDAE of Liang et al. 2020, XGLUE, section 4.1), and the collator that applies it.

A sequence-to-sequence model reads a damaged text and writes the whole one. There are four noises: `shuffle`, `drop`,
`mask`, and `spans`, with which all xDAE results of the paper were made (section 6.3.4, Table 10).

The unit is the token. The paper says words for `drop` and `mask`; XLM-R's vocabulary, which it uses, has pieces, and
in scripts without spaces, such as Japanese, a word starts nowhere that the pieces would show. The functions do not
interpret tokens, so that a caller may pass words.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.padding import seq2seq_batch

SHUFFLE_WIDTH = 3.0  # XGLUE, section 4.1 (1)
DROP_SHARE = 0.1  # XGLUE, section 4.1 (2)
MASK_SHARE = 0.1  # XGLUE, section 4.1 (3)
SPAN_LENGTH = 3.0  # XGLUE, section 4.1 (4); mBART (Liu et al. 2020, section 2.2) has 3.5
# XGLUE names no share for its spans. BART, which it follows with the same span length, masks 30 % of the tokens (Lewis
# et al. 2020, section 5.1); mBART masks 35 % of the words (Liu et al. 2020, section 2.2).
SPAN_SHARE = 0.3
MAX_TOKENS = 512  # XGLUE, section 6.1: "512 max input length"


def shuffle_tokens(tokens: Sequence[int], rng: Generator, width: float = SHUFFLE_WIDTH) -> list[int]:
    """Noise (1): add U(0, `width`) to every position and sort; a token moves by fewer than `width` places.

    Raises:
        InputError: the width is negative or not finite.

    Example:
        >>> shuffle_tokens([10, 11, 12, 13], np.random.default_rng(0))
        [11, 10, 12, 13]
        >>> shuffle_tokens([10, 11, 12, 13], np.random.default_rng(0), width=1.0)
        [10, 11, 12, 13]
    """
    if not 0 <= width < np.inf:
        raise InputError(f"noise `shuffle`: expected a width of 0 or more places, found {width}.")
    places = np.arange(len(tokens)) + rng.uniform(0.0, width, len(tokens))
    return [tokens[place] for place in np.argsort(places, kind="stable")]  # stable: rounding cannot swap far ones


def drop_tokens(tokens: Sequence[int], rng: Generator, p: float = DROP_SHARE) -> list[int]:
    """Noise (2): leave out each token with probability `p`, but never the last one that is left.

    Raises:
        InputError: `p` is not a probability.

    Example:
        >>> drop_tokens([10, 11, 12, 13], np.random.default_rng(1), p=0.5)
        [10, 11, 13]
        >>> drop_tokens([10], np.random.default_rng(0), p=1.0)
        [10]
    """
    _check_share("drop", p)
    kept = [token for token, chance in zip(tokens, rng.random(len(tokens)), strict=True) if chance >= p]
    return kept if kept or not tokens else [tokens[int(rng.integers(len(tokens)))]]


def mask_tokens(tokens: Sequence[int], rng: Generator, mask_id: int, p: float = MASK_SHARE) -> list[int]:
    """Noise (3): replace each token by `mask_id` with probability `p`; the length stays.

    Raises:
        InputError: `p` is not a probability.

    Example:
        >>> mask_tokens([10, 11, 12, 13], np.random.default_rng(1), mask_id=4, p=0.5)
        [10, 11, 4, 13]
    """
    _check_share("mask", p)
    return [mask_id if chance < p else token for token, chance in zip(tokens, rng.random(len(tokens)), strict=True)]


def mask_spans(
    tokens: Sequence[int],
    rng: Generator,
    mask_id: int,
    share: float = SPAN_SHARE,
    mean_length: float = SPAN_LENGTH,
) -> list[int]:
    """Noise (4): replace spans of Poisson length by one `mask_id` each; a span of length 0 inserts one.

    Spans are drawn until they cover the `share` (the last is cut to fit), and then placed so that every arrangement of
    spans and kept tokens is equally likely. Spans never overlap; two may touch, and leave two masks side by side.

    Args:
        tokens: (n,) ids of the text without special tokens.
        share: of the tokens, to be replaced. `share * n` is rounded up or down at random so that the share holds on
            the average, also over texts of a few tokens, some of which then stay as they are.
        mean_length: of the spans, lambda of the Poisson distribution.

    Returns:
        n - replaced + spans ids.

    Raises:
        InputError: the share is not between 0 and 1, or the length not positive.

    Example:
        >>> mask_spans(list(range(10, 20)), np.random.default_rng(0), mask_id=4)
        [4, 12, 13, 14, 4, 15, 16, 4, 18, 19]
    """
    _check_share("spans", share)
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

    Raises:
        InputError: the mean length is not a positive, finite number.

    Example:
        >>> span_lengths(12, np.random.default_rng(0))
        [2, 0, 7, 1, 2]
    """
    if not 0 < mean_length < np.inf:
        raise InputError(f"noise `spans`: expected a mean length above 0 tokens, found {mean_length}.")
    lengths: list[int] = []
    left = count
    while left > 0:
        lengths.append(min(left, int(rng.poisson(mean_length))))
        left -= lengths[-1]
    return lengths


Noises = Sequence[str] | Mapping[tuple[str, ...], float]
NOISES: dict[str, Callable[..., list[int]]] = {
    "shuffle": shuffle_tokens,
    "drop": drop_tokens,
    "mask": mask_tokens,
    "spans": mask_spans,
}


@dataclass
class DrawsByEpoch:
    """A collator whose draws depend on the epoch, beside seed and text (see `seeded_by`)."""

    # In shared memory: workers that outlive an epoch hold a copy of the collator, and must see the next one's number.
    _epoch: Tensor = field(
        default_factory=lambda: torch.zeros((), dtype=torch.int64).share_memory_(),
        init=False,
        repr=False,
        compare=False,
    )

    def set_epoch(self, epoch: int) -> None:
        """Draw anew from now on; equal numbers draw the same."""
        self._epoch.fill_(epoch)


@dataclass
class NoisingCollator(DrawsByEpoch):
    """Texts -> a batch for denoising: the source is the noised text, the target the clean one.

    The source is `noised + eos_ids`, the target `text + eos_ids`, and the decoder reads its prompt (start token,
    language tag) and then the target, one place behind. Special tokens come after the noise, so that none is ever
    masked, dropped or moved.

    The noise of a text depends on the seed, the epoch and the text alone: not on the batch, the rank, the number of
    workers, or the place where a run was resumed. Equal texts of one epoch therefore get equal noise. Call `set_epoch`
    before each epoch, or every epoch repeats the noise of the first; running workers of a data loader see the call.

    Args:
        pad_id, mask_id: ids of the padding and of [MASK].
        eos_ids: what ends source and target: `(2,)` for BART, the ids of `</s> [EOS]` for Unicoder.
        decoder_prompt: for features without one of their own; Unicoder has `[language]`, mBART `</s> language`.
            The model is not trained to write its prompt.
        noises: names from `NOISES`, applied in this order; an empty list leaves the text unchanged. Or such names ->
            their share: each text gets one of them, with this probability.
        special_ids: stand between texts of one row: they stay in their places, and each text is noised for itself.
        begin_ids: before the source, for features without `before`.
        seed: not negative.
        max_tokens: no row of the batch is longer; text is cut at its end, and so is the source where masks were
            inserted. Special tokens stay.
        shuffle_width, drop_share, mask_share, span_share, span_length: of the four noises.

    Raises:
        InputError: a noise is unknown, a number impossible, or nothing ends the texts.

    Example:
        >>> collator = NoisingCollator(pad_id=1, mask_id=4, eos_ids=(2,), decoder_prompt=(9,), span_share=0.5)
        >>> batch = collator([{"input_ids": [10, 11, 12, 13]}, {"input_ids": [10, 11], "decoder_prompt": [8]}])
        >>> batch["decoder_input_ids"].tolist()
        [[9, 10, 11, 12, 13], [8, 10, 11, 1, 1]]
        >>> batch["labels"].tolist()
        [[10, 11, 12, 13, 2], [10, 11, 2, -100, -100]]
        >>> batch["input_ids"].tolist()
        [[4, 12, 13, 2], [10, 4, 2, 1]]
    """

    pad_id: int
    mask_id: int
    eos_ids: Sequence[int]
    decoder_prompt: Sequence[int] = ()
    noises: Noises = ("spans",)
    seed: int = 0
    max_tokens: int = MAX_TOKENS
    shuffle_width: float = SHUFFLE_WIDTH
    drop_share: float = DROP_SHARE
    mask_share: float = MASK_SHARE
    span_share: float = SPAN_SHARE
    span_length: float = SPAN_LENGTH
    special_ids: Sequence[int] = ()
    begin_ids: Sequence[int] = ()

    def __post_init__(self) -> None:
        for name in (name for names in self._recipes for name in names):
            if name not in NOISES:
                raise InputError(f"noises: expected names among {', '.join(NOISES)}, found {name!r}.")
        shares = list(self._recipes.values())
        if not all(0 < share <= 1 for share in shares) or not math.isclose(sum(shares), 1):  # refuses NaN too
            raise InputError(f"noises: expected shares that add up to 1, found {' '.join(f'{s:g}' for s in shares)}.")
        if not self.eos_ids:
            raise InputError("eos_ids: expected one id or more that ends source and target, found none.")
        if self.seed < 0:
            raise InputError(f"seed: expected 0 or more, found {self.seed}.")
        for name, options in self._options().items():  # refuse impossible numbers now, not in the first batch
            NOISES[name]([], np.random.default_rng(0), **options)

    def set_epoch(self, epoch: int) -> None:
        """Draw new noise from now on; equal numbers give equal noise."""
        if epoch < 0:
            raise InputError(f"epoch: expected 0 or more, found {epoch}.")
        super().set_epoch(epoch)

    def noise(self, tokens: Sequence[int]) -> list[int]:
        """The noised text of this epoch."""
        rng = seeded_by(self.seed, int(self._epoch), tokens)
        noised: list[int] = []
        for part, special in _parts(tokens, set(self.special_ids)):
            noised += part if special else self._noised(part, rng)
        return noised

    def _noised(self, part: list[int], rng: Generator) -> list[int]:
        recipes, options = self._recipes, self._options()
        chosen = 0
        if len(recipes) > 1:
            chosen = int(np.searchsorted(np.cumsum(list(recipes.values()))[:-1], rng.random(), side="right"))
        for name in list(recipes)[chosen]:
            part = NOISES[name](part, rng, **options[name])
        return part

    @property
    def _recipes(self) -> Mapping[tuple[str, ...], float]:
        return self.noises if isinstance(self.noises, Mapping) else {tuple(self.noises): 1.0}

    def _options(self) -> dict[str, dict[str, float]]:
        return {
            "shuffle": {"width": self.shuffle_width},
            "drop": {"p": self.drop_share},
            "mask": {"mask_id": self.mask_id, "p": self.mask_share},
            "spans": {"mask_id": self.mask_id, "share": self.span_share, "mean_length": self.span_length},
        }

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate a batch.

        Args:
            features: `input_ids`, the tokens of a text without special tokens (tokenize with
                `add_special_tokens=False`); `decoder_prompt`, unless the collator has one; and `before`, where the
                source begins with other tokens than `begin_ids`. A trainer that removes columns the model does not
                know (`remove_unused_columns`) would take the prompt away.

        Returns:
            As `seq2seq_batch`.

        Raises:
            InputError: an example has no decoder prompt, or `max_tokens` leaves no room for text.
        """
        eos = list(self.eos_ids)
        sources, prompts, targets = [], [], []
        for feature in features:
            prompt = list(feature.get("decoder_prompt", self.decoder_prompt))
            if not prompt:
                raise InputError(
                    "decoder_prompt: expected one id or more for the decoder to start from, found none; "
                    "give the examples or the collator one."
                )
            before = list(feature.get("before", self.begin_ids))
            specials = len(eos) + max(len(before), len(prompt) - 1)
            if specials >= self.max_tokens:
                raise InputError(
                    f"max_tokens: {self.max_tokens} leaves no room for text beside {specials} special tokens; raise it."
                )
            text = list(feature["input_ids"])[: self.max_tokens - specials]
            sources.append([*before, *self.noise(text)[: self.max_tokens - len(before) - len(eos)], *eos])
            prompts.append(prompt)
            targets.append([*text, *eos])
        return seq2seq_batch(sources, prompts, targets, self.pad_id)


def _parts(tokens: Sequence[int], special: Set[int]) -> Iterator[tuple[list[int], bool]]:
    """The texts between special tokens, and these, in their order."""
    for is_special, group in groupby(tokens, special.__contains__):
        yield list(group), is_special


def parse_noises(values: Sequence[str], option: str = "--noise") -> dict[tuple[str, ...], float]:
    """Read `NAME[+NAME...]`, one alone, or several with shares that add up to 1: `NAME[+NAME...]=SHARE`.

    Raises:
        InputError: an unknown or repeated name, or shares that are none or do not add up to 1.

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
                f"{option} {value}: expected names among {', '.join(NOISES)}, each once, several on one text joined "
                f"by +, found {unknown[0] if unknown else joined!r}."
            )
        try:
            found[names] = float(share) if equals or len(values) > 1 else 1.0
        except ValueError:
            raise InputError(f"{option} {value}: expected a share, such as {joined}=0.5.") from None
    if not all(0 < share <= 1 for share in found.values()) or not math.isclose(sum(found.values()), 1):
        raise InputError(
            f"{option} {' '.join(values)}: expected shares above 0 that add up to 1, found "
            f"{sum(found.values()):g} in all."
        )
    return found


def seeded_by(seed: int, epoch: int, tokens: Sequence[int]) -> Generator:
    """Random numbers that depend on the seed, the epoch and the text alone."""
    content = np.asarray(tokens, dtype="<i8").tobytes()  # the same bytes on every machine
    digest = int.from_bytes(hashlib.blake2b(content, digest_size=16).digest(), "little")
    return np.random.default_rng([seed, epoch, digest])


def _check_share(noise: str, share: float) -> None:
    if not 0 <= share <= 1:
        raise InputError(f"noise `{noise}`: expected a share from 0 to 1, found {share}.")
