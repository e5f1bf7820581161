"""A generator from a pre-trained encoder (Rothe et al. 2020, "Leveraging Pre-trained Checkpoints for Sequence
Generation Tasks").

BERT and XLM-R compute what Bart's encoder computes, with its layer norms behind the blocks, so their weights fit
`BartForConditionalGeneration`, which the rest of this package can train, search, save and publish. The decoder reads
and writes with the same embeddings. Its layers are copied from the encoder's, self-attention and feed-forward block,
or fresh; the attention to the message is always fresh.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import OPTION, drawn, from_pretrained
from mrs_suggest.models.generation.language_tokens import ENCODER_TYPES, ROWS
from mrs_suggest.models.generation.tiny_generator import TIED
from mrs_suggest.models.retrieval.pruned_vocabulary import cut_vocabulary, kept_pieces
from mrs_suggest.models.retrieval.tiny import write_checkpoint

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

COPIED, FRESH = "copied", "fresh"
DECODERS = (COPIED, FRESH)
# Kasai et al. 2021, "Deep Encoder, Shallow Decoder": one layer writes several times faster and nearly as well. Ours is
# one more, so that a layer of each end of the encoder is copied.
DECODER_LAYERS = 2


class Target(NamedTuple):
    """A seq2seq architecture that an encoder's weights fit.

    Attributes:
        body: the attribute of the model that holds encoder and decoder.
        layer: its names of a layer's parts -> BERT's.
        tied: see `write_checkpoint`.
        make: (encoder, tokenizer, layers of the decoder) -> a fresh model.
        tables: its names of the vectors of words and positions, and of the norm of their sum.
        before: rows of the table of positions before that of a text's first token.
        finish: (body) -> None: what else is changed.
    """

    body: str
    layer: Mapping[str, str]
    last_norm: str
    tied: tuple[str, ...]
    make: Callable[[Any, PreTrainedTokenizerFast, int], Any]
    tables: tuple[str, str, str]
    before: int
    finish: Callable[[Any], None] = lambda _: None


def is_encoder(name: str, revision: str | None = None) -> bool:
    """Whether a hub id or folder holds an encoder that a generator can start from; False if it cannot be read."""
    try:
        return from_pretrained("AutoConfig", name, revision).model_type in ENCODER_TYPES
    except InputError:
        return False


def build_from_encoder(
    name: str, revision: str | None, languages: Sequence[str], folder: Path, seed: int, decoder: str = COPIED,
    layers: int = DECODER_LAYERS, texts: Iterable[str] = (), pieces: int | None = None, target: Target | None = None,
) -> Path:  # fmt: skip
    """Write a seq2seq checkpoint (config, weights, tokenizer) with an encoder's weights to `folder` and return it.

    Args:
        name, revision: of the encoder: a hub id or a folder.
        languages: each gets its token, `<2es>`, which begins as that of a text's start with a little noise: Rothe et
            al. start their decoders with it.
        decoder: `copied` or `fresh`.
        layers: of the decoder; if they are copied, the encoder's at equal distances, the first and the last among
            them (as Shleifer and Rush 2020, "Pre-trained Summarization Distillation").
        texts, pieces: keep so many pieces of the vocabulary, by these texts (see `kept_pieces`); None: all.
        target: the architecture; None: Bart.

    Raises:
        InputError: the encoder cannot be loaded, its tokenizer has no token for a text's start or end, it has fewer
            layers than are to be copied, or its vocabulary cannot be cut.
    """
    target = target or BART
    encoder = from_pretrained("AutoModel", name, revision, add_pooling_layer=False)
    if decoder == COPIED and layers > encoder.config.num_hidden_layers:
        raise InputError(
            f"--decoder_layers {layers}: {name} has {encoder.config.num_hidden_layers} layers to copy; pass at most as "
            f"many, or --decoder {FRESH}."
        )
    tokenizer = from_pretrained("AutoTokenizer", name, revision)
    if pieces is not None:
        cut_vocabulary(encoder, tokenizer, kept_pieces(tokenizer, texts, (), pieces))
    _add_language_tokens(tokenizer, languages, name)
    with drawn(seed):
        model = target.make(encoder, tokenizer, layers)
        body = getattr(model, target.body)
        for parameter in body.decoder.layers.parameters():
            if parameter.dim() == 2:  # as `tiny`: with transformers' own initialization the message is ignored for long
                nn.init.xavier_uniform_(parameter)
        _embed(encoder, body, tokenizer, target)
    known = list(encoder.encoder.layer)
    pairs = list(zip(known, body.encoder.layers, strict=True))
    if decoder == COPIED:
        numbers = copied_layers(len(known), layers)
        pairs += [(known[number], made) for number, made in zip(numbers, body.decoder.layers, strict=True)]
    for source, made in pairs:
        for ours, theirs in target.layer.items():
            made.get_submodule(ours).load_state_dict(source.get_submodule(theirs).state_dict())
    # Ours: an encoder's last norm may be small (e5-small: .23), and then all replies stay nearly equally probable for
    # long. Sixty steps of 16 English pairs of the sample: 3.6 nats a token on validation, and 7.8 with the copied one.
    body.decoder.layers[-1].get_submodule(target.last_norm).reset_parameters()
    target.finish(body)
    return write_checkpoint(model, tokenizer, folder, target.tied)


def copied_layers(have: int, wanted: int) -> list[int]:
    """The numbers of `wanted` of `have` layers at equal distances, with the first and, from two on, the last.

    >>> copied_layers(12, 1), copied_layers(12, 2), copied_layers(12, 3), copied_layers(3, 3)
    ([0], [0, 11], [0, 6, 11], [0, 1, 2])
    """
    return [-(-number * (have - 1) // max(1, wanted - 1)) for number in range(wanted)]


def _add_language_tokens(tokenizer: PreTrainedTokenizerFast, languages: Sequence[str], name: str) -> None:
    """Add a token for each language, and let texts end with the separator."""
    for place in ("cls_token", "sep_token", "pad_token"):
        if getattr(tokenizer, place) is None:
            raise InputError(f"{OPTION} {name}: its tokenizer has no {place}; use another encoder.")
    tag = ROWS["encoder"].tag
    assert tag is not None
    tags = [tag(code) for code in languages]
    tokenizer.add_special_tokens({"eos_token": tokenizer.sep_token, "additional_special_tokens": tags})


def positions_of(encoder: Any) -> Tensor:
    """(tokens, width): the vectors that an encoder adds to a text's first, second ... token, with its only segment."""
    embeddings = encoder.embeddings
    # XLM-R counts from the padding's id on.
    begin = 0 if encoder.config.model_type == "bert" else encoder.config.pad_token_id + 1
    positions: Tensor = embeddings.position_embeddings.weight[begin:]
    return positions + embeddings.token_type_embeddings.weight[0]


@torch.no_grad()
def _embed(encoder: Any, body: Any, tokenizer: PreTrainedTokenizerFast, target: Target) -> None:
    """Copy an encoder's vectors of words, with those of added tokens as that of a text's start with noise, and of
    positions, with the last one for rows behind it."""
    words, positions = encoder.embeddings.word_embeddings.weight, positions_of(encoder)
    table = body.get_submodule(target.tables[0]).weight
    nn.init.normal_(table, std=encoder.config.initializer_range)
    table += words[tokenizer.cls_token_id]
    table[: len(words)] = words
    for side in (body.encoder, body.decoder):
        places = side.get_submodule(target.tables[1]).weight
        places[: target.before] = 0
        places[target.before :] = positions[-1]
        places[target.before : target.before + len(positions)] = positions
        side.get_submodule(target.tables[2]).load_state_dict(encoder.embeddings.LayerNorm.state_dict())


def _bart(encoder: Any, tokenizer: PreTrainedTokenizerFast, layers: int) -> Any:
    from transformers import BartConfig, BartForConditionalGeneration

    config = encoder.config
    return BartForConditionalGeneration(
        BartConfig(
            vocab_size=max(config.vocab_size, len(tokenizer)), d_model=config.hidden_size,
            max_position_embeddings=len(positions_of(encoder)), scale_embedding=False,
            encoder_layers=config.num_hidden_layers, decoder_layers=layers,
            encoder_attention_heads=config.num_attention_heads, decoder_attention_heads=config.num_attention_heads,
            encoder_ffn_dim=config.intermediate_size, decoder_ffn_dim=config.intermediate_size,
            activation_function=config.hidden_act, init_std=config.initializer_range,
            dropout=config.hidden_dropout_prob, attention_dropout=config.attention_probs_dropout_prob,
            bos_token_id=tokenizer.cls_token_id, pad_token_id=tokenizer.pad_token_id,
            eos_token_id=tokenizer.eos_token_id, forced_eos_token_id=tokenizer.eos_token_id,
            decoder_start_token_id=None,
        )
    )  # fmt: skip


@torch.no_grad()
def _even_out(body: Any) -> None:
    """Let the fresh attention to the message read vectors of any size as if each entry were about 1, in place.

    Ours, too: e5-small's last norm gives entries of .26 in the root mean square, and an attention that is initialised
    for 1 hardly distinguishes messages. A hundred steps of 64 coffee orders: perplexity 14.7 on validation, 15.6
    without.
    """
    scale = body.encoder.layers[-1].final_layer_norm.weight.square().mean().rsqrt()
    for layer in body.decoder.layers:
        for read in (layer.encoder_attn.k_proj, layer.encoder_attn.v_proj):
            read.weight *= scale


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
TABLES = ("shared", "embed_positions", "layernorm_embedding")
BART = Target("model", LAYER, "final_layer_norm", TIED, _bart, TABLES, before=2, finish=_even_out)
