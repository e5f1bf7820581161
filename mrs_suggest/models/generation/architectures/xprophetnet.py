"""xProphetNet (XLM-ProphetNet), the published Unicoder-xFNP of XGLUE, from the layouts of its checkpoints.

Its graph is ProphetNet's, which transformers has; `xlm-prophetnet`, its own type, was removed in transformers 5. The
weights in the old folders have ProphetNet's names, so importing this module registers the type as another name of
`prophetnet`. microsoft/ProphetNet publishes fairseq checkpoints (`ProphetNet_Multi`), which `convert_xprophetnet`
converts.

Both have XLM-R's sentencepiece model. Its pieces follow 15 special tokens. The encoder reads `x [SEP]`, the decoder
starts with [SEP] and writes `y [SEP]`, whatever the language.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from torch import Tensor
from transformers import AutoConfig, PreTrainedTokenizerFast, ProphetNetConfig
from transformers import ProphetNetForConditionalGeneration as ProphetNet

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.checkpoint_loading import from_pretrained, loading
from mrs_suggest.models.generation.architectures.fairseq import conversion, fitted, heads_of, matrix, read_fairseq
from mrs_suggest.models.generation.architectures.prophetnet import TYPE, most_tokens
from mrs_suggest.models.starting_points import checkpoint_file

OLD_TYPE = "xlm-prophetnet"
VOCABULARY_FILE = "prophetnet.tokenizer"  # of the old folders: a sentencepiece model
MODEL = "xProphetNet"
PAD, CLS, SEP, UNK = range(4)
SPECIAL = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]", *(f"[unused{number}]" for number in range(10)))
HEAD_WIDTH = 64  # 1024 / 16
TABLE = "prophetnet.word_embeddings.weight"
TIED = ("prophetnet.encoder.word_embeddings.weight", "prophetnet.decoder.word_embeddings.weight", "lm_head.weight")
# fairseq's names -> transformers', in this order.
NAMES = {
    "ngram_self_attn": "self_attn", "encoder_attn": "cross_attn", "final_layer_norm": "feed_forward_layer_norm",
    "emb_layer_norm": "embeddings_layer_norm", "embed_tokens": "word_embeddings",
    "embed_positions": "position_embeddings", "ngram_input_embed": "ngram_embeddings",
    "relative_linear": "relative_pos_embeddings", "fc1": "feed_forward.intermediate", "fc2": "feed_forward.output",
    "q_proj": "query_proj", "k_proj": "key_proj", "v_proj": "value_proj",
    "prophetnet.encoder.word_embeddings": "prophetnet.word_embeddings",
}  # fmt: skip


class XLMProphetNetConfig(ProphetNetConfig):
    """Reads the configuration of an old folder as ProphetNet's."""

    model_type = OLD_TYPE

    @classmethod
    def from_dict(cls, config_dict: dict[str, Any], **given: Any) -> Any:
        return ProphetNetConfig.from_dict(as_prophetnet(config_dict), **given)


def as_prophetnet(config: Mapping[str, Any]) -> dict[str, Any]:
    """The content of an old config.json for ProphetNet."""
    classes = [name.removeprefix("XLM") for name in config.get("architectures") or ()]
    return {**config, "model_type": TYPE, "architectures": classes}


def convert_state(
    state: Mapping[str, Tensor], arguments: Mapping[str, Any], name: str = "the checkpoint"
) -> tuple[ProphetNetConfig, dict[str, Tensor]]:
    """fairseq's weights in float32 under transformers' names, with the configuration that their shapes give, and the
    arguments of the training: heads (by default, one for 64 of the width), dropout, activation. See also `fitted`."""
    weights = _renamed(state)
    with loading("a model with its arguments", name, ""), torch.device("meta"):  # without memory for the weights
        config = _config(weights, arguments, name)
        model = ProphetNet(config)
    for side in ("encoder", "decoder"):  # the encoder's table lacks the last row, which no text reaches
        key = f"prophetnet.{side}.position_embeddings.weight"
        weights[key] = torch.cat([weights[key], weights[key][-1:]])[: config.max_position_embeddings]
    shapes = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items()}
    return config, fitted(weights, shapes, TIED, TABLE, name, MODEL)


def _renamed(state: Mapping[str, Tensor]) -> dict[str, Tensor]:
    weights: dict[str, Tensor] = {}
    for key, tensor in state.items():
        new = f"prophetnet.{key}"
        for old, name in NAMES.items():
            new = new.replace(old, name)
        before, packed, kind = new.partition("in_proj_")  # query, key and value in one
        if packed and tensor.dim():
            for part, one in zip(("query", "key", "value"), tensor.tensor_split(3), strict=True):
                weights[f"{before}{part}_proj.{kind}"] = one
        elif not key.endswith(".version"):
            weights[new] = tensor
    return weights


def _config(weights: Mapping[str, Tensor], arguments: Mapping[str, Any], name: str) -> ProphetNetConfig:
    def rows(key: str) -> int:
        return matrix(weights, f"prophetnet.{key}.weight", name, MODEL)[0]

    vocab_size, width = matrix(weights, TABLE, name, MODEL)
    heads = {side: heads_of(arguments, side, width, HEAD_WIDTH, name) for side in ("encoder", "decoder")}
    layers = {side: [key.split(".")[3] for key in weights if f".{side}.layers." in key] for side in heads}
    dropout = {key: arguments.get(key, 0.1) for key in ("dropout", "attention_dropout", "activation_dropout")}
    config = ProphetNetConfig(
        vocab_size=vocab_size, hidden_size=width, ngram=rows("decoder.ngram_embeddings"),
        num_encoder_layers=len(set(layers["encoder"])), num_decoder_layers=len(set(layers["decoder"])),
        num_encoder_attention_heads=heads["encoder"], num_decoder_attention_heads=heads["decoder"],
        encoder_ffn_dim=rows("encoder.layers.0.feed_forward.intermediate"),
        decoder_ffn_dim=rows("decoder.layers.0.feed_forward.intermediate"),
        num_buckets=rows("decoder.layers.0.self_attn.relative_pos_embeddings") // heads["decoder"],
        relative_max_distance=arguments.get("relative_max_distance", 128),
        max_position_embeddings=min(rows("encoder.position_embeddings") + 1, rows("decoder.position_embeddings")),
        activation_function=arguments.get("activation_fn", "gelu"), pad_token_id=PAD, bos_token_id=SEP,
        eos_token_id=SEP, decoder_start_token_id=SEP, **dropout,
    )  # fmt: skip
    config.architectures = ["ProphetNetForConditionalGeneration"]
    return config


def load_tokenizer(config: Any, name: str, revision: str | None = None, **given: str) -> Any:
    """The tokenizer of a seq2seq checkpoint; that of an old xProphetNet is made of its sentencepiece model."""
    path = checkpoint_file(name, VOCABULARY_FILE, revision) if config.model_type == TYPE else None
    return (
        make_tokenizer(path, most_tokens(config)) if path else from_pretrained("AutoTokenizer", name, revision, **given)
    )


def make_tokenizer(path: Path, positions: int | None = None) -> PreTrainedTokenizerFast:
    """The tokenizer of a sentencepiece model: `x [SEP]` around the pieces, after the special tokens; an InputError if
    the file is missing, damaged or not a Unigram model with XLM-R's first pieces."""
    try:
        pieces, charsmap = _sentencepiece(path.read_bytes())
        if [piece for piece, _ in pieces[:3]] != ["<unk>", "<s>", "</s>"]:
            raise ValueError("other pieces")
    except (OSError, LookupError, ValueError, TypeError, AttributeError) as error:
        raise InputError(
            f"{path}: expected the sentencepiece model of {MODEL}, whose pieces begin <unk> <s> </s> ({error}); fetch "
            "the file again."
        ) from None
    vocabulary = [*((token, 0.0) for token in SPECIAL), *pieces[3:]]
    with loading("its pieces", path, ""):
        backend = Tokenizer(models.Unigram(vocabulary, UNK, byte_fallback=False))
        if charsmap:
            backend.normalizer = normalizers.Precompiled(charsmap)
    backend.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    backend.decoder = decoders.Metaspace()
    backend.post_processor = processors.TemplateProcessing(
        single="$A [SEP]", pair="$A [SEP] $B [SEP]", special_tokens=[("[SEP]", SEP)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="[SEP]", eos_token="[SEP]", sep_token="[SEP]", cls_token="[CLS]",
        pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]", split_special_tokens=True, padding_side="right",
        **({"model_max_length": positions} if positions else {}),
    )  # fmt: skip


def _sentencepiece(data: bytes) -> tuple[list[tuple[str, float]], bytes]:
    """The pieces with their scores, and the compiled normalization, of a sentencepiece model (a protobuf message)."""
    pieces, charsmap = [], b""
    for number, value in _fields(data):
        if number == 1:
            piece = dict(_fields(value))
            pieces.append((piece[1].decode(), float(np.frombuffer(piece[2], "<f4")[0])))
        elif number == 2 and dict(_fields(value)).get(3, 1) != 1:
            raise ValueError("not Unigram")
        elif number == 3:
            charsmap = dict(_fields(value)).get(2, b"")
    return pieces, charsmap


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """(number, value) of each field of a protobuf message: a whole number, or the bytes of any other kind."""
    at = 0
    while at < len(data):
        key, at = _whole(data, at)
        if key & 7 == 0:
            value, at = _whole(data, at)
            yield key >> 3, value
        else:
            length, at = _whole(data, at) if key & 7 == 2 else ({1: 8, 5: 4}[key & 7], at)
            yield key >> 3, data[at : at + length]
            at += length


def _whole(data: bytes, at: int) -> tuple[int, int]:
    """A whole number in a protobuf message, and where the next one begins."""
    value = shift = 0
    while data[at] > 127:
        value, shift, at = value | (data[at] & 127) << shift, shift + 7, at + 1
    return value | data[at] << shift, at + 1


def convert_xprophetnet(checkpoint: Path, out: Path, tokenizer: Path, overwrite: bool = False) -> Path:
    """Write a fairseq checkpoint and its sentencepiece model as a transformers folder, and return it; after an error
    (see `read_fairseq`, `convert_state` and `make_tokenizer`), it is unchanged."""
    with conversion(out, overwrite, checkpoint, tokenizer) as folder:
        config, weights = convert_state(*read_fairseq(checkpoint, MODEL), str(checkpoint))
        made = make_tokenizer(tokenizer, most_tokens(config))
        if len(made) != config.vocab_size:
            raise InputError(
                f"{tokenizer}: gives {len(made)} tokens, but {checkpoint} has {config.vocab_size}; pass its own "
                "(prophetnet_multi_dict/sentencepiece.bpe.model of microsoft/ProphetNet)."
            )
        made.save_pretrained(folder)
        config.dtype = torch.float32
        config.save_pretrained(folder)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return out


AutoConfig.register(OLD_TYPE, XLMProphetNetConfig, exist_ok=True)
