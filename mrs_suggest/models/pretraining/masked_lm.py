"""Masked language models: an encoder with its head, the head at the predicted positions alone, and the loss.

The vocabulary of a multilingual encoder has 250,000 pieces. Logits for every position of 32 texts of 128 tokens would
take 4 GB; 15 % of the positions are predicted, so that is what the head is given.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import starting_point
from mrs_suggest.models.checkpoint_loading import drawn, from_pretrained, without_report
from mrs_suggest.models.generation.padding import IGNORED, padded
from mrs_suggest.models.pretraining.noising import DrawsByEpoch, seeded_by
from mrs_suggest.models.starting_points import PRETRAINING, require_start

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast


SHARE = 0.15  # BERT, section 3.1; XGLUE, section 3.1
MASKED, RANDOM = 0.8, 0.1  # the same; the rest stays
# Scripts without spaces between words, by the beginning of Unicode's names of their letters.
UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN", "JAVANESE", "BALINESE")
SENTENCEPIECE, BYTES = "▁", "Ġ"  # at the beginning of a word's first piece, in SentencePiece's and GPT-2's vocabularies


@dataclass(frozen=True)
class Vocabulary:
    """The facts about a tokenizer that masking needs.

    Attributes:
        random_ids: (n) ids that a random token is drawn from: all but the special ones.
        special: (vocabulary) whether an id is special ([CLS], padding, [UNK] ...), and so neither hidden nor predicted.
        starts: (vocabulary) whether a piece begins a word.
        bare: id of the mark of a word's beginning where that is a separate piece, else -1: the next one belongs to it.
        has_words: whether the pieces show where words begin; else each is a word.
    """

    mask_id: int
    random_ids: NDArray[np.int64]
    special: NDArray[np.bool_]
    starts: NDArray[np.bool_]
    bare: int
    has_words: bool


def vocabulary_of(tokenizer: PreTrainedTokenizerFast, name: str) -> Vocabulary:
    """Read a tokenizer's vocabulary.

    A word's first piece is one without the prefix of WordPiece (`##`), or with the mark of SentencePiece (▁) or of
    byte-level pieces (Ġ). In vocabularies with such a mark a piece of punctuation alone is a word too, and so is every
    piece that begins with a letter of a script without spaces between words, such as Japanese or Thai: up to the next
    space, it would be a whole sentence. A mark that is a separate piece belongs to the next one. Where pieces have
    neither prefix nor mark, each is a word.
    """
    if tokenizer.mask_token_id is None:
        raise InputError(
            f"--model_name_or_path {name}: its tokenizer has no mask token, so it was not made for masked language "
            "modelling; choose an encoder such as FacebookAI/xlm-roberta-base."
        )
    pieces: list[str | None] = [None] * len(tokenizer)
    for piece, number in tokenizer.get_vocab().items():
        if number < len(pieces):
            pieces[number] = piece
    special = np.array([piece is None for piece in pieces])
    special[[number for number in tokenizer.all_special_ids if number < len(pieces)]] = True
    random_ids = np.flatnonzero(~special)
    if not len(random_ids):
        raise InputError(f"--model_name_or_path {name}: its tokenizer has only special tokens; choose another encoder.")
    mark, prefix = _marks(tokenizer)
    starts = np.array([piece is None or _starts(piece, mark, prefix) for piece in pieces])
    bare = tokenizer.get_vocab().get(mark, -1) if mark else -1
    return Vocabulary(int(tokenizer.mask_token_id), random_ids, special, starts, bare, bool(mark or prefix))


def _marks(tokenizer: PreTrainedTokenizerFast) -> tuple[str, str]:
    """The mark of a word's first piece, and the prefix of all others; empty if not used."""
    backend = json.loads(tokenizer.backend_tokenizer.to_str())
    model, around = backend["model"], json.dumps([backend["pre_tokenizer"], backend["decoder"]])
    if model["type"] == "WordPiece":
        return "", str(model["continuing_subword_prefix"])
    if '"Metaspace"' in around:
        return SENTENCEPIECE, ""
    return (BYTES, "") if '"ByteLevel"' in around else ("", "")


def _starts(piece: str, mark: str, prefix: str) -> bool:
    if not mark:
        return not prefix or not piece.startswith(prefix)
    unspaced = bool(piece) and unicodedata.name(piece[0], "").startswith(UNSPACED)
    return piece.startswith(mark) or (not any(map(str.isalnum, piece)) and mark != BYTES) or unspaced


def units(ids: Sequence[int], vocabulary: Vocabulary, whole_words: bool) -> NDArray[np.int64]:
    """The number of the unit of each of n tokens, (n), from 0 on; -1 for special tokens. Units are words or tokens."""
    tokens = np.asarray(ids, dtype=np.int64)
    special = vocabulary.special[tokens]
    begins = np.ones(len(tokens), dtype=bool)
    if whole_words:
        begins = vocabulary.starts[tokens].copy()
        begins[1:] &= tokens[:-1] != vocabulary.bare
        begins[1:] |= special[:-1]
        begins[:1] = True
    begins &= ~special
    numbers = np.cumsum(begins) - 1
    numbers[special] = -1
    return numbers


def choose(unit: NDArray[np.int64], rng: Generator, share: float = SHARE) -> NDArray[np.bool_]:
    """Choose a share of the units: `unit` (n) of `units` -> (n) whether a token is in a chosen one.

    `share * units` is rounded up or down at random, so that the share holds on the average over short texts; but one
    unit is chosen at least, as in BERT's code: a text without one would teach nothing.

    Example:
        >>> choose(np.array([-1, 0, 1, 1, 2, -1]), np.random.default_rng(1), share=0.5).tolist()
        [False, False, True, True, True, False]
    """
    count = int(unit.max(initial=-1)) + 1
    if not count:
        return np.zeros(len(unit), dtype=bool)
    wanted = min(count, max(1, int(share * count + rng.random())))
    chosen = np.zeros(count + 1, dtype=bool)  # the last one stands for -1
    chosen[rng.choice(count, wanted, replace=False)] = True
    return chosen[unit]


def corrupt(ids: Sequence[int], chosen: NDArray[np.bool_], rng: Generator, vocabulary: Vocabulary) -> NDArray[np.int64]:
    """The text that the model reads: each chosen token is [MASK] (80 %), a random token (10 %) or itself."""
    tokens = np.array(ids, dtype=np.int64)
    chance = rng.random(len(tokens))
    random = rng.choice(vocabulary.random_ids, len(tokens))
    tokens[chosen & (chance < MASKED)] = vocabulary.mask_id
    other = chosen & (chance >= MASKED) & (chance < MASKED + RANDOM)
    tokens[other] = random[other]
    return tokens


@dataclass
class MaskingCollator(DrawsByEpoch):
    """Texts -> a batch for masked language modelling.

    Args:
        share: of the units, to be predicted; above 0 and at most 1.
    """

    pad_id: int
    vocabulary: Vocabulary
    share: float = SHARE
    whole_words: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:  # refuses NaN too
            raise InputError(f"--masked_share {self.share:g}: expected more than 0 and at most 1 (BERT: {SHARE}).")

    def masked(self, ids: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The text as the model reads it, and the tokens to predict, -100 elsewhere; (n) both."""
        rng = seeded_by(self.seed, int(self._epoch), ids)
        chosen = choose(units(ids, self.vocabulary, self.whole_words), rng, self.share)
        labels = np.where(chosen, np.asarray(ids, dtype=np.int64), IGNORED)
        return corrupt(ids, chosen, rng, self.vocabulary), labels

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> dict[str, Tensor]:
        """Collate texts (`input_ids`, with their special tokens).

        Returns:
            int64 tensors (batch, longest), padded on the right: `input_ids`, `attention_mask`, and `labels`, which are
            -100 where nothing is predicted.
        """
        rows = [feature["input_ids"] for feature in features]
        both = [self.masked(row) for row in rows]
        return {
            "input_ids": padded([ids.tolist() for ids, _ in both], self.pad_id),
            "attention_mask": padded([[1] * len(row) for row in rows], 0),
            "labels": padded([labels.tolist() for _, labels in both], IGNORED),
        }


def load_masked_lm(name: str, revision: str | None, seed: int) -> tuple[PreTrainedModel, list[str]]:
    """An encoder with a language-model head, by `AutoModelForMaskedLM`, in float32.

    Args:
        name: a baseline, a hub id or a folder: an encoder, with or without such a head.
        seed: of the head, where the checkpoint lacks it; it shares the embeddings where the architecture does so.

    Returns:
        The model, and the names of its fresh weights, sorted.

    Raises:
        InputError: it cannot be loaded, its architecture has no such head, it is a retriever, a generator or adapters,
            or the encoder itself lacks weights.
    """
    require_start(name, PRETRAINING, revision)
    with drawn(seed), without_report():
        place = starting_point(name)
        model, found = from_pretrained("AutoModelForMaskedLM", place, revision, output_loading_info=True)
    if model.config.is_encoder_decoder:
        raise InputError(f"--model_name_or_path {name}: is a sequence-to-sequence model; pass an encoder.")
    fresh = sorted(found["missing_keys"])
    own = f"{model.base_model_prefix}."
    lacking = [key for key in fresh if key.startswith(own)]
    if lacking:
        raise InputError(
            f"--model_name_or_path {name}: lacks weights of the encoder ({lacking[0]}); pass a whole checkpoint."
        )
    return model, fresh


def freeze_encoder(model: PreTrainedModel) -> int:
    """Let the head alone train, in place: not the encoder, nor embeddings that the head shares; how many train."""
    model.base_model.requires_grad_(False)
    trained = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    if not trained:
        raise InputError(
            f"--frozen_encoder: the head of {type(model).__name__} shares all its weights; leave the option out."
        )
    return trained


class HeadAt:
    """Gives the head of a masked language model some positions only.

    The encoder's last hidden states are gathered before the head reads them, so that the model's own `forward` gives
    logits (1, positions, vocabulary). Heads read each position by itself in every architecture of
    `AutoModelForMaskedLM`.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self._positions: Tensor | None = None
        model.base_model.register_forward_hook(self._gather)

    @contextmanager
    def __call__(self, positions: Tensor) -> Iterator[None]:
        """In the block, the model gives logits for these positions of its batch, (batch, length) bool."""
        self._positions = positions
        try:
            yield
        finally:
            self._positions = None

    def _gather(self, module: nn.Module, args: Any, output: Any) -> Any:
        if self._positions is not None:
            output.last_hidden_state = output.last_hidden_state[self._positions].unsqueeze(0)
        return output


def token_losses(logits: Tensor, labels: Tensor) -> Tensor:
    """Cross-entropy of each predicted token in nats, (positions).

    Args:
        logits: (1, positions, vocabulary), of a model in the block of `HeadAt`.
        labels: (batch, length), -100 where nothing is predicted.
    """
    targets = labels[labels != IGNORED]
    rows = logits.reshape(-1, logits.shape[-1])
    if len(rows) != len(targets):
        raise InputError("--model_name_or_path: its head does not read positions one by one; choose another encoder.")
    return functional.cross_entropy(rows.float(), targets, reduction="none")


def masked_loss(outputs: Any, labels: Tensor, num_items_in_batch: Tensor | int | None = None) -> Tensor:
    """Cross-entropy averaged over the predicted tokens of the whole step, of all ranks and accumulated batches, so that
    the gradient does not depend on how a step is cut into batches; logits as for `token_losses`."""
    losses = token_losses(outputs["logits"], labels)
    return losses.sum() / (len(losses) if num_items_in_batch is None else num_items_in_batch)
