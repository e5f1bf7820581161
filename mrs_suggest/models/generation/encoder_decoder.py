"""A generator from a pre-trained encoder (Rothe et al. 2020, "Leveraging Pre-trained Checkpoints for Sequence
Generation Tasks").

BERT and XLM-R compute what Bart's encoder computes, with its layer norms behind the blocks, so their weights fit
`BartForConditionalGeneration`, which the rest of this package can train, search, save and publish. The decoder reads
and writes with the same embeddings. Its layers are copied from the encoder's, self-attention and feed-forward block,
or fresh; the attention to the message is always fresh.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import drawn, from_pretrained
from mrs_suggest.models.generation.language_tokens import ENCODER_TYPES, ROWS
from mrs_suggest.models.retrieval.pruned_vocabulary import prune_encoder
from mrs_suggest.models.retrieval.tiny import write_checkpoint

if TYPE_CHECKING:
    from transformers import BartConfig, PreTrainedTokenizerFast

COPIED, FRESH = "copied", "fresh"
DECODERS = (COPIED, FRESH)
# Kasai et al. 2021, "Deep Encoder, Shallow Decoder": one layer writes several times faster and nearly as well. Ours is
# one more, so that a layer of each end of the encoder is copied.
DECODER_LAYERS = 2
OFFSET = 2  # Bart's table of positions begins with two rows that no token has
TIED = ("model.encoder.embed_tokens", "model.decoder.embed_tokens", "lm_head.")
# Bart's names of a layer's parts -> BERT's.
LAYER = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}


def is_encoder(name: str, revision: str | None = None) -> bool:
    """Whether a hub id or folder holds an encoder that a generator can start from; what cannot be read is none."""
    try:
        return from_pretrained("AutoConfig", name, revision).model_type in ENCODER_TYPES
    except InputError:
        return False


def build_from_encoder(
    name: str,
    revision: str | None,
    languages: Sequence[str],
    folder: Path,
    seed: int,
    decoder: str = COPIED,
    layers: int = DECODER_LAYERS,
    texts: Iterable[str] = (),
    pieces: int | None = None,
) -> Path:
    """Write a seq2seq checkpoint (config, weights, tokenizer) with an encoder's weights to `folder` and return it.

    Args:
        name, revision: of the encoder: a hub id or a folder.
        languages: each gets its token, `<2es>`, which begins as that of a text's start with a little noise: Rothe et
            al. start their decoders with it.
        seed: of what is fresh.
        decoder: `copied` or `fresh`.
        layers: of the decoder; where they are copied, the encoder's at equal distances, the first and the last among
            them (as Shleifer and Rush 2020, "Pre-trained Summarization Distillation").
        texts, pieces: keep so many pieces of the vocabulary, by these texts (see `kept_pieces`); None: all.

    Raises:
        InputError: the encoder cannot be loaded, its tokenizer has no token for a text's start or end, it has fewer
            layers than are to be copied, or its vocabulary cannot be cut.
    """
    from transformers import BartForConditionalGeneration

    encoder, tokenizer = load_encoder(name, revision, decoder, layers)
    if pieces is not None:
        prune_encoder(encoder, tokenizer, texts, pieces)
    add_language_tokens(tokenizer, languages, name)
    with drawn(seed):
        model = BartForConditionalGeneration(_config(encoder, tokenizer, layers))
        for parameter in model.model.decoder.layers.parameters():
            if parameter.dim() == 2:  # as `tiny`: with transformers' own initialization the message is ignored for long
                nn.init.xavier_uniform_(parameter)
        _copy_embeddings(encoder, model, tokenizer)
    copy_layers(encoder, model.model, decoder, LAYER, LAYER)
    # Ours: an encoder's last norm may be small (e5-small: .23), and then all replies stay nearly equally probable for
    # long. Sixty steps of 16 English pairs of the sample: 3.6 nats a token on validation, and 7.8 with the copied one.
    model.model.decoder.layers[-1].final_layer_norm.reset_parameters()
    _even_out(model.model)
    return write_checkpoint(model, tokenizer, folder, TIED)


@torch.no_grad()
def _even_out(model: Any) -> None:
    """Let the fresh attention to the message read vectors of any size as if each entry were about 1, in place.

    Ours, too: what e5-small's last norm lets through is .26 in the root mean square, and an attention that is
    initialised for 1 hardly tells messages apart. A hundred steps of 64 coffee orders: perplexity 14.7 on validation,
    15.6 without.
    """
    scale = model.encoder.layers[-1].final_layer_norm.weight.square().mean().rsqrt()
    for layer in model.decoder.layers:
        for read in (layer.encoder_attn.k_proj, layer.encoder_attn.v_proj):
            read.weight *= scale


def copy_layers(
    encoder: Any, model: Any, decoder: str, encoder_names: Mapping[str, str], decoder_names: Mapping[str, str]
) -> None:
    """Write an encoder's layers to those of a seq2seq model's encoder, and copied ones to its decoder's, in place."""
    known, made = list(encoder.encoder.layer), model.decoder.layers
    for source, target in zip(known, model.encoder.layers, strict=True):
        copy_layer(source, target, encoder_names)
    if decoder == COPIED:
        for number, target in zip(copied_layers(len(known), len(made)), made, strict=True):
            copy_layer(known[number], target, decoder_names)


def copied_layers(have: int, wanted: int) -> list[int]:
    """The numbers of `wanted` of `have` layers at equal distances, with the first and, from two on, the last.

    >>> copied_layers(12, 1), copied_layers(12, 2), copied_layers(12, 3), copied_layers(3, 3)
    ([0], [0, 11], [0, 6, 11], [0, 1, 2])
    """
    return [-(-number * (have - 1) // max(1, wanted - 1)) for number in range(wanted)]


def add_language_tokens(tokenizer: PreTrainedTokenizerFast, languages: Sequence[str], name: str) -> None:
    """Add a token for each language, and let texts end with the separator.

    Raises:
        InputError: the tokenizer has no token for a text's start or end.
    """
    for place in ("cls_token", "sep_token", "pad_token"):
        if getattr(tokenizer, place) is None:
            raise InputError(f"--model_name_or_path {name}: its tokenizer has no {place}; use another encoder.")
    tag = ROWS["encoder"].tag
    assert tag is not None
    tags = [tag(code) for code in languages]
    tokenizer.add_special_tokens({"eos_token": tokenizer.sep_token, "additional_special_tokens": tags})


def load_encoder(name: str, revision: str | None, decoder: str, layers: int) -> tuple[Any, PreTrainedTokenizerFast]:
    """An encoder without a head, and its tokenizer.

    Raises:
        InputError: it cannot be loaded, or a decoder of so many layers cannot be copied from it.
    """
    model = from_pretrained("AutoModel", name, revision, add_pooling_layer=False)
    if decoder == COPIED and layers > model.config.num_hidden_layers:
        raise InputError(
            f"--decoder_layers {layers}: {name} has {model.config.num_hidden_layers} layers to copy; pass at most as "
            f"many, or --decoder {FRESH}."
        )
    return model, from_pretrained("AutoTokenizer", name, revision)


def positions_of(encoder: Any) -> Tensor:
    """(tokens, width): what an encoder adds to a text's first, second ... token, with its only segment."""
    embeddings = encoder.embeddings
    # XLM-R counts from the padding's id on.
    begin = 0 if encoder.config.model_type == "bert" else encoder.config.pad_token_id + 1
    positions: Tensor = embeddings.position_embeddings.weight[begin:]
    return positions + embeddings.token_type_embeddings.weight[0]


def _config(encoder: Any, tokenizer: PreTrainedTokenizerFast, layers: int) -> BartConfig:
    from transformers import BartConfig

    config = encoder.config
    return BartConfig(
        vocab_size=max(config.vocab_size, len(tokenizer)), d_model=config.hidden_size,
        max_position_embeddings=len(positions_of(encoder)), scale_embedding=False,
        encoder_layers=config.num_hidden_layers, decoder_layers=layers,
        encoder_attention_heads=config.num_attention_heads, decoder_attention_heads=config.num_attention_heads,
        encoder_ffn_dim=config.intermediate_size, decoder_ffn_dim=config.intermediate_size,
        activation_function=config.hidden_act, init_std=config.initializer_range,
        dropout=config.hidden_dropout_prob, attention_dropout=config.attention_probs_dropout_prob,
        bos_token_id=tokenizer.cls_token_id, pad_token_id=tokenizer.pad_token_id, eos_token_id=tokenizer.eos_token_id,
        forced_eos_token_id=tokenizer.eos_token_id, decoder_start_token_id=None,
    )  # fmt: skip


@torch.no_grad()
def _copy_embeddings(encoder: Any, model: Any, tokenizer: PreTrainedTokenizerFast) -> None:
    embeddings, positions = encoder.embeddings, positions_of(encoder)
    copy_words(encoder, model.model.shared.weight, tokenizer)
    for side in (model.model.encoder, model.model.decoder):
        side.embed_positions.weight.zero_()
        side.embed_positions.weight[OFFSET:] = positions
        side.layernorm_embedding.load_state_dict(embeddings.LayerNorm.state_dict())


@torch.no_grad()
def copy_words(encoder: Any, table: Tensor, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write an encoder's token vectors to `table`, in place; added tokens are as that of a text's start with noise."""
    words = encoder.embeddings.word_embeddings.weight
    nn.init.normal_(table, std=encoder.config.initializer_range)
    table += words[tokenizer.cls_token_id]
    table[: len(words)] = words


def copy_layer(source: nn.Module, target: nn.Module, names: Mapping[str, str] = LAYER) -> None:
    """Write the weights of a layer of BERT to another kind of layer, in place; `names`: its parts -> BERT's."""
    for ours, theirs in names.items():
        target.get_submodule(ours).load_state_dict(source.get_submodule(theirs).state_dict())
