"""Steps of denoising (xDAE; XGLUE, Liang et al. 2020, section 4.1) between those of a generator's pairs.

Text in languages without pairs, mixed into training, keeps a generator writing them (Vu et al. 2022).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from mrs_datasets.texts.text_sources import TextSource
from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.language_tokens import TokenFrame
from mrs_suggest.models.generation.text_coder import TextCoder
from mrs_suggest.models.pretraining.denoising import NoisingCollator, next_token_loss
from mrs_suggest.training.pretraining.mixture import WHICH
from mrs_suggest.training.pretraining.options import ALPHA
from mrs_suggest.training.pretraining.rows import TokenRows, encode
from mrs_suggest.training.pretraining.seq2seq import separators
from mrs_suggest.training.pretraining.texts import TextData, read_texts
from mrs_suggest.training.sampling import (
    BatchOptions,
    KeyedCollator,
    KeyedRows,
    MixedSampler,
    PairSampler,
    StepSampler,
    make_sampler,
)

if TYPE_CHECKING:
    from transformers import Trainer as Base
else:
    Base = object

PAIRS, DENOISING = 0, 1  # in a batch, under `WHICH`
NAMES = {PAIRS: "reply_loss", DENOISING: "denoising_loss"}  # in the log


def read_denoising_text(values: Sequence[str], seed: int) -> TextData | None:
    """The text of `--denoising_text`, None without any; InputError if a source cannot be read."""
    if not values:
        return None
    sources = [TextSource.parse(value, "--denoising_text") for value in values]
    return read_texts(sources, (), (), "text", 0, (), None, seed)


class DenoisingSteps(Base):
    """Mixin, placed before the library's trainer: some steps denoise; `mix` prepares them.

    The log has the mean loss of either kind of step next to that of all.
    """

    _losses_of_kinds: Mapping[int, Any] | None = None

    def mix(
        self, texts: Mapping[str, Sequence[str]], share: float, coder: TextCoder, sampler: PairSampler,
        options: BatchOptions,
    ) -> StepSampler:  # fmt: skip
        """Mix steps of text into those of the pairs, which alone decide how long an epoch is.

        Args:
            texts: sentences by language; languages are drawn by size to the power of .3 (XGLUE, section 3.1).

        Returns:
            The sampler of all steps.

        Raises:
            InputError: the tokenizer has no mask token, or knows none of a language's text.
        """
        noising, frame = noising_of(coder, next(iter(texts)), self.args.seed)
        rows = {language: _rows(sentences, language, coder, frame) for language, sentences in texts.items()}
        lengths = np.concatenate([found.lengths for found in rows.values()])
        own = make_sampler([len(found) for found in rows.values()], options, self.args, ALPHA, lengths)
        pairs: Any = self.train_dataset
        self.train_dataset = KeyedRows([(PAIRS, pairs), *((DENOISING, found) for found in rows.values())])
        self.data_collator = KeyedCollator({PAIRS: self.data_collator, DENOISING: noising}, WHICH)
        self._losses_of_kinds = {PAIRS: self.compute_loss_func, DENOISING: next_token_loss}
        self._sums: dict[int, tuple[Tensor | float, int]] = {}
        mixed = MixedSampler(
            [sampler, own], [len(pairs), len(lengths)], [1 - share, share], self.args.seed, epoch_of=PAIRS
        )
        mixed.told.append(noising.set_epoch)
        return mixed

    def compute_loss(self, model: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
        """The library's, with the loss of the batch's kind."""
        if self._losses_of_kinds is None:
            return super().compute_loss(model, inputs, *args, **kwargs)
        which = inputs.pop(WHICH)
        self.compute_loss_func = self._losses_of_kinds[which]
        loss: Any = super().compute_loss(model, inputs, *args, **kwargs)
        total, batches = self._sums.get(which, (0.0, 0))
        self._sums[which] = total + loss.detach(), batches + 1
        return loss

    def log(self, logs: dict[str, float], *args: Any, **kwargs: Any) -> None:
        """The library's, with the losses of both kinds of steps since the last point of the curve."""
        if self._losses_of_kinds is not None and "loss" in logs:
            logs |= {NAMES[which]: self._mean(*found) for which, found in sorted(self._sums.items())}
            self._sums = {}
        super().log(logs, *args, **kwargs)

    def _mean(self, total: Any, batches: int) -> float:
        if self.args.world_size > 1:
            total = self.accelerator.reduce(total.float(), reduction="mean")
        return float(total) / (batches / self.args.gradient_accumulation_steps)


def noising_of(coder: TextCoder, language: str, seed: int) -> tuple[NoisingCollator, TokenFrame]:
    """The noise for the texts of a generator, as in pretraining: spans (XGLUE, section 6.3.4).

    Args:
        language: one that the model has; the frame is the same for all.

    Raises:
        InputError: the tokenizer has no mask token.
    """
    tokenizer: Any = coder.tokenizer
    if tokenizer.mask_token_id is None:
        raise InputError(
            "--denoising_share: the tokenizer has no mask token, so the checkpoint was not made for denoising; use "
            "mBART-50, a converted Unicoder-xDAE, or an encoder, or leave it out."
        )
    frame, _ = TokenFrame.of(coder.row, language, coder.config, tokenizer)
    noising = NoisingCollator(
        int(tokenizer.pad_token_id or 0), int(tokenizer.mask_token_id), frame, seed=seed,
        special_ids=separators(tokenizer), max_tokens=coder.message_tokens,
    )  # fmt: skip
    return noising, frame


def _rows(sentences: Sequence[str], language: str, coder: TextCoder, frame: TokenFrame) -> TokenRows:
    tokenizer: Any = coder.tokenizer
    where = f"--denoising_text {language}"
    rows = encode(sentences, tokenizer, frame.room(coder.message_tokens), False, where, framed=False).rows
    rows.shared = {"language": TokenFrame.of(coder.row, language, coder.config, tokenizer)[1]}
    return rows
