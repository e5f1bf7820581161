"""ProphetNets to pretrain: a small one, and one with an encoder's weights.

ProphetNet's encoder computes what BERT's and XLM-R's compute, with its layer norms behind the blocks, so their weights
fit, as they fit Bart (`mrs_suggest.models.generation.encoder_decoder`). Its decoder's self-attention has terms for
relative positions, and its predicting streams begin at separate vectors: these are always fresh, as is the attention to
the source.

The padding's id is 0 in the configuration, whatever it is in the tokenizer: the library's search with a cache needs it
(see `mrs_suggest.models.generation.architectures.prophetnet.may_cache`). Batches mark padding by attention masks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import nn

from mrs_suggest.models.generation.encoder_decoder import (
    COPIED,
    DECODER_LAYERS,
    Target,
    build_from_encoder,
    positions_of,
)
from mrs_suggest.models.generation.tiny_generator import (
    DROPOUT,
    HEADS,
    LAYERS,
    POSITIONS,
    WIDTH,
    initialize,
    tiny_tokenizer,
)
from mrs_suggest.models.pretraining.future_ngrams import STREAMS
from mrs_suggest.models.retrieval.tiny import VOCABULARY, write_untrained

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

PAD = 0
AROUND = 2  # rows of the table of positions that no token of a text has: the padding's, and the last stream's next one
TABLES = ("word_embeddings", "position_embeddings", "embeddings_layer_norm")
TIED = ("prophetnet.encoder.word_embeddings", "prophetnet.decoder.word_embeddings", "lm_head.")
# ProphetNet's names of a layer's parts -> BERT's.
LAYER = {
    "self_attn.query_proj": "attention.self.query",
    "self_attn.key_proj": "attention.self.key",
    "self_attn.value_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "feed_forward.intermediate": "intermediate.dense",
    "feed_forward.output": "output.dense",
    "feed_forward_layer_norm": "output.LayerNorm",
}


def build_tiny_prophetnet(
    texts: Iterable[str], languages: Sequence[str], folder: Path, seed: int, vocabulary: int = VOCABULARY,
    streams: int = STREAMS,
) -> Path:  # fmt: skip
    """A ProphetNet with the size, the tokenizer and the initialization of `build_tiny_generator`.

    Args:
        streams: how many future tokens are predicted at a time.
    """
    tokenizer = tiny_tokenizer(texts, languages, vocabulary)

    def make() -> Any:
        model = _prophetnet(
            tokenizer, len(tokenizer), streams, POSITIONS, hidden_size=WIDTH, encoder_layers=LAYERS,
            decoder_layers=LAYERS, heads=HEADS, ffn=4 * WIDTH, dropout=DROPOUT, attention_dropout=DROPOUT,
        )  # fmt: skip
        initialize(model, "prophetnet.word_embeddings")
        for side in (model.prophetnet.encoder, model.prophetnet.decoder):  # words and positions count alike
            nn.init.normal_(side.position_embeddings.weight, std=WIDTH**-0.5)
        nn.init.normal_(model.prophetnet.decoder.ngram_embeddings.weight, std=WIDTH**-0.5)
        return model

    return write_untrained(make, tokenizer, folder, seed, TIED)


def build_prophetnet_from_encoder(
    name: str, revision: str | None, languages: Sequence[str], folder: Path, seed: int, decoder: str = COPIED,
    layers: int = DECODER_LAYERS, streams: int = STREAMS,
) -> Path:  # fmt: skip
    """Write a ProphetNet with an encoder's weights to `folder` and return it; arguments as `build_from_encoder` and
    `build_tiny_prophetnet`."""

    def make(encoder: Any, tokenizer: Any, layers: int) -> Any:
        given = encoder.config
        return _prophetnet(
            tokenizer, max(given.vocab_size, len(tokenizer)), streams, len(positions_of(encoder)),
            hidden_size=given.hidden_size, encoder_layers=given.num_hidden_layers, decoder_layers=layers,
            heads=given.num_attention_heads, ffn=given.intermediate_size, dropout=given.hidden_dropout_prob,
            attention_dropout=given.attention_probs_dropout_prob, activation=given.hidden_act,
            init_std=given.initializer_range,
        )  # fmt: skip

    target = Target("prophetnet", LAYER, "feed_forward_layer_norm", TIED, make, TABLES, before=1)
    return build_from_encoder(name, revision, languages, folder, seed, decoder, layers, target=target)


def _prophetnet(
    tokenizer: PreTrainedTokenizerBase, vocabulary: int, streams: int, positions: int, *, encoder_layers: int,
    decoder_layers: int, heads: int, ffn: int, activation: str = "gelu", **more: Any,
) -> Any:  # fmt: skip
    from transformers import ProphetNetConfig, ProphetNetForConditionalGeneration

    config = ProphetNetConfig(
        vocab_size=vocabulary, max_position_embeddings=positions + AROUND, ngram=streams,
        num_encoder_layers=encoder_layers, num_decoder_layers=decoder_layers, num_encoder_attention_heads=heads,
        num_decoder_attention_heads=heads, encoder_ffn_dim=ffn, decoder_ffn_dim=ffn, activation_function=activation,
        activation_dropout=0.0, pad_token_id=PAD, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=None, decoder_start_token_id=None, **more,
    )  # fmt: skip
    return ProphetNetForConditionalGeneration(config)
