"""What is frozen of a generator: tied and untied embeddings, positions, the lowest layers of the decoder."""

from typing import Any

import pytest
from transformers import BartConfig, BartForConditionalGeneration, MT5Config, MT5ForConditionalGeneration

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.architectures.convolutional import (
    ConvolutionalConfig,
    ConvolutionalForConditionalGeneration,
)
from mrs_suggest.models.generation.decoder_freezing import freeze_decoder_layers, freeze_embeddings


def bart(tied: bool = True) -> Any:
    return BartForConditionalGeneration(
        BartConfig(
            vocab_size=30, d_model=8, encoder_layers=1, decoder_layers=3, encoder_attention_heads=2,
            decoder_attention_heads=2, encoder_ffn_dim=8, decoder_ffn_dim=8, max_position_embeddings=16,
            tie_word_embeddings=tied,
        )
    )  # fmt: skip


def mt5() -> Any:
    config = MT5Config(
        vocab_size=30, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_decoder_layers=2, num_heads=2
    )  # fmt: skip
    return MT5ForConditionalGeneration(config)


def frozen(model: Any) -> set[str]:
    return {name for name, value in model.named_parameters() if not value.requires_grad}


def test_an_output_of_its_own_is_frozen_too() -> None:
    model = bart(tied=False)
    assert model.lm_head.weight is not model.model.shared.weight
    freeze_embeddings(model)
    assert {"lm_head.weight", "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"} <= frozen(model)


@pytest.mark.parametrize("lowest", [0, 1, 3])
def test_the_lowest_layers_of_the_decoder_stay(lowest: int) -> None:
    model = bart()
    freeze_decoder_layers(model, lowest)
    prefixes = tuple(f"model.decoder.layers.{number}." for number in range(lowest))
    assert frozen(model) == {name for name, _ in model.named_parameters() if name.startswith(prefixes)}


def test_other_architectures_keep_their_layers_elsewhere() -> None:
    model = mt5()
    freeze_decoder_layers(model, 1)
    assert {name[:16] for name in frozen(model)} == {"decoder.block.0."}
    convolutional: Any = ConvolutionalForConditionalGeneration(
        ConvolutionalConfig(vocab_size=30, d_model=8, decoder_layers=2)
    )
    freeze_decoder_layers(convolutional, 2)
    assert {name[:15] for name in frozen(convolutional)} == {"decoder.blocks."}


def test_more_layers_than_there_are_is_refused_in_a_sentence() -> None:
    with pytest.raises(
        InputError, match=r"^--freeze_decoder_layers 4: expected at most 3, the decoder's number of layers\.$"
    ):
        freeze_decoder_layers(bart(), 4)
    model = bart()
    del model.model.decoder.layers
    with pytest.raises(InputError, match=r"BartDecoder does not keep its layers as BART and T5 do; leave it out\.$"):
        freeze_decoder_layers(model, 1)
