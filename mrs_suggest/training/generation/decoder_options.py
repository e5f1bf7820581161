"""The options of a decoder for an encoder's checkpoint, of every trainer of seq2seq models."""

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.generation.encoder_decoder import COPIED, DECODER_LAYERS, DECODERS, is_encoder
from mrs_suggest.models.starting_points import FROM_SCRATCH
from mrs_suggest.training.options import LoraArguments, option, require_one_of, trains_lora


@dataclass
class DecoderArguments(LoraArguments):
    """Options of the decoder that an encoder gets."""

    advanced: ClassVar[tuple[str, ...]] = ("decoder_layers",)
    least: ClassVar[dict[str, int]] = {"decoder_layers": 1}
    decoder: str | None = option(
        None,
        f"of an encoder's checkpoint: {COPIED} from its layers (default; Rothe et al. 2020; XGLUE, "
        "section 6.1), or fresh",
    )
    decoder_layers: int | None = option(
        None, f"of an encoder's checkpoint: the decoder's layers (default {DECODER_LAYERS})"
    )


Options = TypeVar("Options", bound=DecoderArguments)


def with_decoder(options: Options) -> Options:
    """The options with a decoder if the checkpoint is an encoder.

    Raises:
        InputError: they do not fit the kind of the checkpoint.
    """
    name = options.model_name_or_path
    if name in FROM_SCRATCH or not is_encoder(name, options.model_revision):
        for option in ("decoder", "decoder_layers"):
            if getattr(options, option) is not None:
                raise InputError(
                    f"--{option}: {name} is not an encoder (BERT, XLM-R) and has its own decoder; leave it out."
                )
        return options
    if trains_lora(options):
        raise InputError(f"--peft lora adapts a trained model, and {name} has no decoder yet; leave it out.")
    decoder, layers = options.decoder or COPIED, options.decoder_layers or DECODER_LAYERS
    require_one_of("decoder", decoder, DECODERS)
    return replace(options, decoder=decoder, decoder_layers=layers)
