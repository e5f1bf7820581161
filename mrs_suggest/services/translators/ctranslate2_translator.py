"""Translation with CTranslate2: converted checkpoints, and folders of `ct2-transformers-converter`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.common.io.files import atomic_folder
from mrs_suggest.common.text.language_id import default_model_path
from mrs_suggest.models.exports import CTRANSLATE2, require_packages
from mrs_suggest.models.generation.ctranslate2_writer import ARCHITECTURES, MARIAN, converter
from mrs_suggest.models.generation.decoding.beam_search import ends_and_pad
from mrs_suggest.models.generation.text_coder import TextCoder
from mrs_suggest.services.checkpoints import CTRANSLATE2_MODEL, OPTION, Checkpoint
from mrs_suggest.services.translators.seq2seq import CheckpointTranslator, Search, config_of, load_weights, tokenizer_of

if TYPE_CHECKING:
    from ctranslate2 import Translator

CONVERTED = {*ARCHITECTURES, MARIAN}


class ConvertedTranslator(CheckpointTranslator):
    """Translates with a checkpoint of transformers that is converted once into the user's cache.

    Raises:
        InputError: it cannot be loaded, or CTranslate2 does not support its architecture.
        MissingExtraError: an extra is not installed.
    """

    def __init__(self, checkpoint: Checkpoint, search: Search, quantization: str) -> None:
        require_packages(CTRANSLATE2)
        self._quantization = quantization
        config, tokenizer = config_of(checkpoint), tokenizer_of(checkpoint)
        if config.model_type not in CONVERTED or getattr(tokenizer, "separate_vocabs", False):
            raise InputError(
                f"{OPTION} {checkpoint.name}: is of type {config.model_type!r}, but CTranslate2 runs only Marian with "
                f"one vocabulary, {', '.join(ARCHITECTURES.values())}; leave out --ctranslate2."
            )
        runtime = f"{CTRANSLATE2} {quantization}"
        super().__init__(checkpoint, search, tokenizer, config, config.model_type, runtime)

    def __reduce__(self) -> tuple[type[ConvertedTranslator], tuple[Checkpoint, Search, str]]:
        return ConvertedTranslator, (self._checkpoint, self._search, self._quantization)

    @cached_property
    def model(self) -> Translator:
        name = f"{self._checkpoint.name.replace('/', '--')}-{self._checkpoint.version}-{self._quantization}"
        folder = default_model_path().parent / CTRANSLATE2 / name
        if not (folder / CTRANSLATE2_MODEL).is_file():
            self._convert(folder)
        return _load(folder, self._checkpoint.name)

    def _convert(self, folder: Path) -> None:
        model = load_weights(self._checkpoint)
        (end, *_), pad = ends_and_pad(model)
        weights: Any = model.get_input_embeddings().weight
        if self._config.model_type == MARIAN and (pad != len(weights) - 1 or bool(weights[pad].any())):
            raise InputError(
                f"{OPTION} {self._checkpoint.name}: its decoder does not start from zeros, as CTranslate2 assumes for "
                "Marian; leave out --ctranslate2."
            )
        found = converter(model, self._checkpoint.folder, end, pad, self._tokenizer.unk_token_id)
        with atomic_folder(folder, overwrite=True) as partial:
            try:
                found.convert(str(partial), quantization=self._quantization, force=True)
            except Exception as error:  # conversion fails in many ways
                raise InputError(
                    f"{OPTION} {self._checkpoint.name}: CTranslate2 cannot convert it ({first_line(error)}); leave out "
                    "--ctranslate2."
                ) from error

    def _write(self, inputs: Sequence[Sequence[int]], coder: TextCoder, prompt: Sequence[int]) -> list[list[int]]:
        names = [[str(number) for number in ids] for ids in inputs]
        start = [] if self._config.model_type == MARIAN else [str(number) for number in prompt]
        found = _search(self.model, names, start, self._search, max(len(start) - 1, 0))
        return [[int(name) for name in row] for row in found]


class FolderTranslator(CheckpointTranslator):
    """Translates with a folder that `ct2-transformers-converter --copy_files` wrote, with the tokenizer's files.

    Raises:
        InputError: it cannot be loaded, lacks a tokenizer, or its family is unknown.
        MissingExtraError: an extra is not installed.
    """

    def __init__(self, checkpoint: Checkpoint, search: Search) -> None:
        require_packages(CTRANSLATE2)
        if not (checkpoint.folder / "tokenizer_config.json").is_file():
            raise InputError(
                f"{OPTION} {checkpoint.name}: has no tokenizer; convert again with --copy_files tokenizer_config.json "
                "and the tokenizer's other files (tokenizer.json, or vocab.json and *.spm)."
            )
        tokenizer = tokenizer_of(checkpoint)
        try:
            facts = json.loads((checkpoint.folder / "config.json").read_text(encoding="utf-8"))
            self._starts = facts.get("decoder_start_token") is not None
        except (OSError, ValueError, AttributeError):
            raise InputError(f"{OPTION} {checkpoint.name}: its config.json is damaged; convert again.") from None
        start = SimpleNamespace(decoder_start_token_id=tokenizer.pad_token_id)  # a placeholder that `_write` drops
        super().__init__(checkpoint, search, tokenizer, start, "", CTRANSLATE2)

    @cached_property
    def model(self) -> Translator:
        return _load(self._checkpoint.folder, self._checkpoint.name)

    def _write(self, inputs: Sequence[Sequence[int]], coder: TextCoder, prompt: Sequence[int]) -> list[list[int]]:
        tokens = self._tokenizer.convert_ids_to_tokens
        start = tokens(list(prompt))
        if self._starts:
            start = start[1:]
        found = _search(self.model, [tokens(list(ids)) for ids in inputs], start, self._search, len(start))
        return [self._tokenizer.convert_tokens_to_ids(row) for row in found]


def _load(folder: Path, name: str) -> Translator:
    import torch
    from ctranslate2 import Translator

    try:
        # As many threads as torch, so that limits for torch apply.
        return Translator(str(folder), device="cpu", intra_threads=torch.get_num_threads())
    except (RuntimeError, ValueError) as error:
        raise InputError(
            f"{OPTION} {name}: CTranslate2 cannot load {folder} ({first_line(error)}); remove it to convert again."
        ) from None


def _search(
    model: Translator, inputs: Sequence[Sequence[str]], start: Sequence[str], search: Search, skipped: int
) -> list[list[str]]:
    """The best translation of each source; `skipped` tokens at its start are dropped."""
    try:
        results: Any = model.translate_batch(
            [list(row) for row in inputs],
            [list(start)] * len(inputs) if start else None,
            max_batch_size=0,
            beam_size=search.beams,
            max_input_length=0,
            max_decoding_length=search.max_tokens + skipped,
            length_penalty=1.0,
        )
    except RuntimeError as error:  # fewer positions than the tokenizer states
        raise InputError(f"{OPTION}: CTranslate2 cannot translate ({first_line(error)}).") from None
    return [result.hypotheses[0][skipped:] if result.hypotheses else [] for result in results]
