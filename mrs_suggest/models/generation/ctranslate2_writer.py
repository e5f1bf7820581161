"""Writes a generator for CTranslate2, in fp32 or int8."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mrs_suggest.common.errors import InputError, first_line
from mrs_suggest.models.exports import CTRANSLATE2, SETTINGS, require_packages
from mrs_suggest.models.generation.ctranslate2_generator import as_json
from mrs_suggest.models.generation.decoding.beam_search import ends_and_pad
from mrs_suggest.models.generation.generator import Generator

if TYPE_CHECKING:
    from ctranslate2.converters import TransformersConverter

# Of the architectures that CTranslate2 converts, those that a generator of ours can have.
ARCHITECTURES = {
    "bart": "Bart", "mbart": "mBART", "m2m_100": "M2M100", "t5": "T5", "mt5": "mT5", "umt5": "UMT5"
}  # fmt: skip
MARIAN = "marian"
NORMS_BEFORE = {"bart": False, "mbart": True}  # the converter asks for it, and transformers no longer says it


def write_ctranslate2(generator: Generator, folder: Path, target: Path, int8: bool) -> None:
    """Write `ctranslate2/` with the model and its settings.

    The tokens of the converted model are the generator's ids, so that no two tokens have one name.

    Args:
        generator: the one that lies in `folder`; it is not usable afterwards.
        target: where to make `ctranslate2/`.
        int8: 8-bit weights, with one scale for each row, and activations, with one for each token.

    Raises:
        MissingExtraError: the extra `ctranslate2` is not installed.
        InputError: CTranslate2 cannot convert the model, or search as its settings say.
    """
    require_packages(CTRANSLATE2)
    kind, decoding = generator.model.config.model_type, generator.decoding
    if kind not in ARCHITECTURES:
        raise InputError(
            f"{folder}: the generator is of type {kind!r}, and CTranslate2 converts {', '.join(ARCHITECTURES.values())}"
            "; it keeps answering with torch."
        )
    if decoding.groups > 1:
        raise InputError(
            f"{folder}: it searches in {decoding.groups} diverse groups, which CTranslate2 does not have; it keeps "
            "answering with torch, or train with --groups 1."
        )
    ends, pad = ends_and_pad(generator.model)
    if len(ends) > 1:
        raise InputError(f"{folder}: its replies end with any of {len(ends)} tokens, and CTranslate2 scores only one.")
    place, end = target / CTRANSLATE2, ends[0]
    try:
        unknown = generator.coder.tokenizer.unk_token_id
        found = converter(generator.model, folder, end, pad, unknown)
        found.convert(str(place), quantization="int8" if int8 else "float32")
    except Exception as error:  # what cannot be converted fails in many ways
        raise InputError(f"{folder}: CTranslate2 cannot convert the generator ({first_line(error)}).") from error
    settings = {"int8": int8, "end": end, "pad": pad, "decoding": as_json(generator.decoding)}
    (place / SETTINGS).write_text(json.dumps(settings, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def converter(model: Any, folder: Path, end: int, pad: int, unknown: int | None) -> TransformersConverter:
    """What converts a loaded model, whose tokens are then its ids as texts; the model is not usable afterwards.

    Args:
        end, pad, unknown: ids of the model.
    """
    from ctranslate2.converters import TransformersConverter

    size = len(model.get_input_embeddings().weight)
    names = {str(number): number for number in range(size)}
    if model.config.model_type == MARIAN and pad == size - 1:  # the converter leaves it out by this name
        names = {**{name: number for name, number in names.items() if number != pad}, "<pad>": pad}
    tokenizer = SimpleNamespace(
        get_vocab=lambda: names,
        convert_ids_to_tokens=str,
        bos_token=str(end), eos_token=str(end), pad_token=str(pad), unk_token=str(end if unknown is None else unknown),
        special_tokens_map={}, num_madeup_words=0,
    )  # fmt: skip
    kind = model.config.model_type
    if kind in NORMS_BEFORE:
        model.config.normalize_before = NORMS_BEFORE[kind]
    if kind == "m2m_100":  # positions count from the padding's id on, which the converter takes for 1
        for side in (model.model.encoder, model.model.decoder):
            side.embed_positions.offset = side.embed_positions.padding_idx + 1

    if kind in ("t5", "mt5"):  # the converter takes tied embeddings for a sign of scaled outputs
        scaled = kind == "t5" and getattr(model.config, "scale_decoder_outputs", model.config.tie_word_embeddings)
        model.config.tie_word_embeddings = scaled

    class Converter(TransformersConverter):
        """Converts the loaded model, whose prompt gives the decoder's first token, too (but of Marian)."""

        def _load(self) -> Any:
            specification = super()._load()
            if kind != MARIAN:  # its decoder starts from zeros, whatever the token
                specification.config.decoder_start_token = None
            return specification

        def load_model(self, *_: Any, **__: Any) -> Any:
            return model

        def load_tokenizer(self, *_: Any, **__: Any) -> Any:
            return tokenizer

    return Converter(str(folder))
