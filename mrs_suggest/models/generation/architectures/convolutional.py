"""A convolutional sequence-to-sequence model (Gehring et al. 2017, "Convolutional Sequence to Sequence Learning").

The baseline of the STAPLE task has this architecture (Mayhew et al. 2020, section 3.1). Both sides have embeddings of
tokens and positions, and blocks of one convolution with a gated linear unit (sections 3.1 and 3.2); each block of the
decoder attends to the encoder (section 3.3); weights are normalised, and sums scaled so that variances stay (3.4, 3.5).

transformers has no such model. Importing this module registers it with its Auto classes under `TYPE`, so that
`AutoModelForSeq2SeqLM` loads a checkpoint of it; no code of a checkpoint is ever run.
"""

import math
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    Cache,
    DynamicCache,
    EncoderDecoderCache,
    GenerationMixin,
    PreTrainedConfig,
    PreTrainedModel,
    initialization,
)
from transformers.modeling_outputs import BaseModelOutput, Seq2SeqLMOutput

from mrs_suggest.models.generation.padding import IGNORED

TYPE = "mrs_convolutional_seq2seq"
HALF = math.sqrt(0.5)  # a sum of two terms keeps their variance (section 3.4)


class ConvolutionalConfig(PreTrainedConfig):
    """Sizes of the model; the defaults are those of the authors' smallest configuration (fairseq, IWSLT'14 de-en).

    Args:
        vocab_size: of both sides.
        kernel_size: tokens that a convolution reads; odd.
        dropout: of embeddings, of what a block reads and before the output (section 4.2: .2 there).
        max_position_embeddings: tokens that each side can have.
    """

    model_type = TYPE
    attribute_map = {"hidden_size": "d_model", "num_hidden_layers": "decoder_layers"}  # noqa: RUF012

    vocab_size: int = 20_000
    d_model: int = 256
    encoder_layers: int = 4
    decoder_layers: int = 3
    kernel_size: int = 3
    dropout: float = 0.2
    max_position_embeddings: int = 1024
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = False
    pad_token_id: int | None = 0
    eos_token_id: int | list[int] | None = None
    decoder_start_token_id: int | None = None


class NormalisedLinear(nn.Module):
    """A linear layer whose weight is a direction and a length for each output (weight normalisation, section 3.5).

    Args:
        kept: share of inputs that dropout leaves, for the initial variance.
        kernel: width of a convolution over (batch, inputs, length) instead; 0 for none.
        gain: of the initial variance: 4 in front of a gated linear unit, which quarters it.
    """

    def __init__(self, inputs: int, outputs: int, kept: float = 1.0, kernel: int = 0, gain: float = 1.0) -> None:
        super().__init__()
        shape = (outputs, inputs, kernel) if kernel else (outputs, inputs)
        self.direction = nn.Parameter(torch.empty(shape))
        self.length = nn.Parameter(torch.empty(outputs, *[1] * (len(shape) - 1)))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.std = math.sqrt(gain * kept / (inputs * max(kernel, 1)))

    def weight(self) -> Tensor:
        """Each output's direction with its length."""
        return self.direction * (self.length / _norms(self.direction))

    def forward(self, hidden: Tensor, padding: int = 0) -> Tensor:
        """(..., inputs) -> (..., outputs), or the convolution, with zeros at both ends."""
        if self.direction.dim() == 2:
            return functional.linear(hidden, self.weight(), self.bias)
        return functional.conv1d(hidden, self.weight(), self.bias, padding=padding)


class Embedding(nn.Module):
    """Embeddings of tokens and of their positions, summed (section 3.1)."""

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        self.tokens = nn.Embedding(config.vocab_size, config.d_model, padding_idx=config.pad_token_id)
        self.positions = nn.Embedding(config.max_position_embeddings, config.d_model)
        self.dropout = config.dropout

    def forward(self, ids: Tensor, positions: Tensor) -> Tensor:
        """(batch, length) ids and their positions -> (batch, length, width)."""
        return functional.dropout(self.tokens(ids) + self.positions(positions), self.dropout, self.training)


class ConvolutionalEncoder(nn.Module):
    """The encoder; its states are what each block of the decoder attends to."""

    main_input_name = "input_ids"

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        width, kept = config.d_model, 1 - config.dropout
        self.embedding = Embedding(config)
        self.first = NormalisedLinear(width, width, kept)
        self.blocks = nn.ModuleList(
            NormalisedLinear(width, 2 * width, kept, config.kernel_size, 4.0) for _ in range(config.encoder_layers)
        )
        self.last = NormalisedLinear(width, width)
        self.dropout, self.kernel, self.readers = config.dropout, config.kernel_size, config.decoder_layers

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None, **_: Any) -> BaseModelOutput:
        """(batch, length) -> states (batch, length, 2 width): keys, then values.

        The decoder reads the output with the embeddings added, which describe the token itself (section 3.3). Padding
        on either side changes nothing: its states are 0, as beyond the ends of a convolution.
        """
        real = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        embedded = self.embedding(input_ids, (real.cumsum(1) - 1).clamp(min=0))
        mask = real[..., None].to(embedded.dtype)
        hidden = self.first(embedded)
        for block in self.blocks:
            read = functional.dropout(hidden * mask, self.dropout, self.training).transpose(1, 2)
            gated = functional.glu(block(read, self.kernel // 2), 1).transpose(1, 2)
            hidden = (gated + hidden) * HALF
        hidden = self.last(hidden)
        if hidden.requires_grad:  # section 3.4: of the encoder's layers, for each block that attends to them
            hidden.register_hook(lambda gradient: gradient / self.readers)
        return BaseModelOutput(last_hidden_state=torch.cat([hidden, (hidden + embedded) * HALF], -1) * mask)


class DecoderBlock(nn.Module):
    """A convolution over the token and those before it, and attention to the encoder."""

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        width = config.d_model
        self.convolution = NormalisedLinear(width, 2 * width, 1 - config.dropout, config.kernel_size, 4.0)
        self.query, self.context = NormalisedLinear(width, width), NormalisedLinear(width, width)
        self.dropout, self.before = config.dropout, config.kernel_size - 1

    def forward(
        self, hidden: Tensor, embedded: Tensor, states: Tensor, mask: Tensor, cache: Cache | None, number: int
    ) -> Tensor:
        """(batch, length, width) -> the same.

        Args:
            embedded: the embeddings of the same tokens.
            mask: (batch, encoder's length), True for its tokens.
            cache: the inputs of this block, the `number`-th, for earlier tokens. They take the place of keys.
        """
        read = functional.dropout(hidden, self.dropout, self.training)
        if cache is not None:
            read = cache.update(read[:, None], read[:, None, :, :0], number)[0][:, 0]
            read = read[:, -(hidden.shape[1] + self.before) :]
        missing = hidden.shape[1] + self.before - read.shape[1]
        read = functional.pad(read.transpose(1, 2), (missing, 0))
        gated = functional.glu(self.convolution(read), 1).transpose(1, 2)
        return (self._attend(gated, embedded, states, mask) + hidden) * HALF

    def _attend(self, hidden: Tensor, embedded: Tensor, states: Tensor, mask: Tensor) -> Tensor:
        keys, values = states.chunk(2, -1)
        query = (self.query(hidden) + embedded) * HALF  # equation 1
        scores = (query @ keys.transpose(1, 2)).masked_fill(~mask[:, None], -torch.inf)
        # Section 3.4: a mean of m states has 1/m of their variance.
        found = scores.softmax(-1) @ values * mask.sum(1)[:, None, None].to(values.dtype).sqrt()
        return (hidden + self.context(found)) * HALF


class ConvolutionalDecoder(nn.Module):
    """The decoder without its output layer."""

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__()
        width, kept = config.d_model, 1 - config.dropout
        self.embedding = Embedding(config)
        self.first = NormalisedLinear(width, width, kept)
        self.blocks = nn.ModuleList(DecoderBlock(config) for _ in range(config.decoder_layers))
        self.last = NormalisedLinear(width, width)
        self.dropout = config.dropout

    def forward(self, ids: Tensor, states: Tensor, mask: Tensor, cache: Cache | None) -> Tensor:
        """(batch, length) -> (batch, length, width); with a cache, of the tokens after those that it holds."""
        start = 0 if cache is None else cache.get_seq_length()
        positions = torch.arange(start, start + ids.shape[1], device=ids.device)
        embedded = self.embedding(ids, positions)
        hidden = self.first(embedded)
        for number, block in enumerate(self.blocks):
            hidden = block(hidden, embedded, states, mask, cache, number)
        return functional.dropout(self.last(hidden), self.dropout, self.training)


class ConvolutionalForConditionalGeneration(PreTrainedModel, GenerationMixin):
    """The whole model, as `AutoModelForSeq2SeqLM` makes it."""

    config_class = ConvolutionalConfig
    base_model_prefix = "model"
    main_input_name = "input_ids"

    def __init__(self, config: ConvolutionalConfig) -> None:
        super().__init__(config)
        if config.kernel_size % 2 == 0:
            raise ValueError(f"kernel_size must be odd, not {config.kernel_size}.")
        self.encoder = ConvolutionalEncoder(config)
        self.decoder = ConvolutionalDecoder(config)
        self.lm_head = NormalisedLinear(config.d_model, config.vocab_size, 1 - config.dropout)
        self.post_init()

    def get_encoder(self, modality: str | None = None) -> ConvolutionalEncoder:
        return self.encoder

    def get_decoder(self) -> ConvolutionalDecoder:
        return self.decoder

    def get_input_embeddings(self) -> nn.Embedding:
        """Those of the source's tokens; the target's are others, as in the paper."""
        return self.encoder.embedding.tokens

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        encoder_outputs: BaseModelOutput | None = None,
        past_key_values: Cache | None = None,
        labels: Tensor | None = None,
        use_cache: bool | None = None,
        **_: Any,
    ) -> Seq2SeqLMOutput:
        """The logits of each next token, (batch, length, vocabulary).

        Args:
            input_ids, attention_mask: (batch, source's length); the ids may be left out with `encoder_outputs`.
            decoder_input_ids: (batch, length), padded on the right; required.
            decoder_attention_mask: ignored: a token does not see padding on its right.
            past_key_values: of the tokens before `decoder_input_ids`.
            labels: (batch, length), -100 where they do not count; for the loss.
        """
        if decoder_input_ids is None:
            raise ValueError("decoder_input_ids are needed: the tokens before each label.")
        if encoder_outputs is None:
            encoder_outputs = self.encoder(input_ids, attention_mask)
        states = encoder_outputs[0]
        mask = states.new_ones(states.shape[:2]) if attention_mask is None else attention_mask
        if use_cache and past_key_values is None:
            past_key_values = EncoderDecoderCache(DynamicCache(), DynamicCache())
        cache = past_key_values
        if isinstance(cache, EncoderDecoderCache):
            cache = cache.self_attention_cache
        logits = self.lm_head(self.decoder(decoder_input_ids, states, mask.bool(), cache))
        loss = None
        if labels is not None:
            loss = functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED)
        return Seq2SeqLMOutput(
            loss=loss,
            logits=logits,
            past_key_values=cast("EncoderDecoderCache", past_key_values) if use_cache else None,
            encoder_last_hidden_state=states,
        )

    def _init_weights(self, module: nn.Module) -> None:
        """As section 3.5: embeddings by .1; layers so that variances stay through dropout and gates."""
        if isinstance(module, nn.Embedding):
            initialization.normal_(module.weight, std=0.1)
            if module.padding_idx is not None:
                initialization.zeros_(module.weight[module.padding_idx])
        elif isinstance(module, NormalisedLinear):
            initialization.normal_(module.direction, std=module.std)
            initialization.copy_(module.length, _norms(module.direction))
            initialization.zeros_(module.bias)


def _norms(direction: Tensor) -> Tensor:
    """(outputs, 1 ...) lengths of the rows."""
    return torch.linalg.vector_norm(direction.flatten(1), dim=1).reshape(-1, *[1] * (direction.dim() - 1))


AutoConfig.register(TYPE, ConvolutionalConfig, exist_ok=True)
AutoModelForSeq2SeqLM.register(ConvolutionalConfig, ConvolutionalForConditionalGeneration, exist_ok=True)
