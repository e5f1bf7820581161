"""Unicoder-xDAE for transformers: the generation baseline of MRS (Zhang et al. 2021, section 4.2), from its checkpoint.

Unicoder-xDAE (Liang et al. 2020, XGLUE, section 4.1) was trained with fairseq and is published as one fairseq
checkpoint. Its graph is that of BART with scaled embeddings (fairseq's `mbart_base` has its layer norms behind the
blocks, not before them as `MBartForConditionalGeneration`): the weights fit `BartForConditionalGeneration`.

The embedding has XLM-R's 250,002 rows, one for the end tag [EOS], one for each of 100 languages, and 200 unused ones.
The encoder reads `x </s> [EOS]`, the decoder starts at the language's tag and writes `y </s> [EOS]`. Pad on the right,
as tokenizers do: fairseq counts positions from the first token, BART from the left edge.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, processors
from torch import Tensor
from transformers import BartConfig, BartForConditionalGeneration, GenerationConfig, PreTrainedTokenizerFast

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.hub import split_revision
from mrs_suggest.common.io.lines import read_lines
from mrs_suggest.models.checkpoint_loading import from_pretrained
from mrs_suggest.models.generation.architectures.fairseq import conversion, fitted, heads_of, matrix, read_fairseq

XLMR_VOCABULARY = 250_002  # <s> <pad> </s> <unk>, the pieces, <mask>
# In the order of their ids: `langs` of generation_rs/train.sh (microsoft/MRS: "pretraining languages; do not change").
_LANGS = (
    "af als am an ang ar arz ast az bar be bg bn br bs ca ceb ckb cs cy da de el en eo es et eu fa fi fr fy ga gan gl "
    "gu he hi hr hu hy ia id is it ja jv ka kk kn ko ku la lb lt lv mk ml mn mr ms my nds ne nl nn no oc pl pt ro ru "
    "scn sco sh si simple sk sl sq sr sv sw ta te th tl tr tt uk ur uz vi war wuu yi zh zh_classical zh_min_nan "
    "zh_yue"
)
LANGUAGE_TAGS = tuple(_LANGS.split())
END, PLACEHOLDERS = "EOS", 200  # --common_eos, --placeholder of the same script
VOCABULARY = XLMR_VOCABULARY + 1 + len(LANGUAGE_TAGS) + PLACEHOLDERS
POSITIONS = 512  # --max-source-positions, --max-target-positions; XGLUE, section 6.1
HEAD_WIDTH = 64  # 768 / 12
BEAMS = 5  # official test.sh; fairseq's own default for the length is 200
REPLY_TOKENS = 200
BOS, PAD, SEP, UNK = range(4)  # fairseq's dictionary begins <s> <pad> </s> <unk>, and so does XLM-R's
MODEL = "Unicoder-xDAE"
TABLE = "encoder.embed_tokens.weight"
TIED = ("decoder.embed_tokens.weight", "decoder.output_projection.weight")  # the latter since fairseq 0.10


@dataclass(frozen=True)
class Tags:
    """The tokens after XLM-R's vocabulary, in the order of their ids: the end tag, the languages, the unused."""

    languages: tuple[str, ...] = LANGUAGE_TAGS
    end: str = END
    placeholders: int = PLACEHOLDERS

    def tokens(self) -> list[str]:
        unused = [f"placeholder_{number}" for number in range(self.placeholders)]
        return [f"[{name}]" for name in (self.end, *self.languages, *unused)]

    def first_id(self, vocab_size: int) -> int:
        """The id of the end tag; what is before it is the tokenizer's."""
        return vocab_size - 1 - len(self.languages) - self.placeholders


def unicoder_config(
    vocab_size: int = VOCABULARY,
    d_model: int = 768,
    layers: int = 12,
    heads: int = 12,
    ffn: int = 3072,
    positions: int = POSITIONS,
    dropout: float = 0.1,
) -> BartConfig:
    """The configuration of Unicoder-xDAE (MRS, section 4.2; XGLUE, section 6.1); smaller numbers make small versions.

    Without a `decoder_start_token_id`: the language's tag is passed with each example, and a call that omits it fails
    instead of writing in some language. `dropout` is also that of the attention weights (official train.sh).
    """
    tags = read_tags({}, vocab_size)
    eos = tags.first_id(vocab_size) if tags else SEP
    config = BartConfig(
        vocab_size=vocab_size, d_model=d_model, max_position_embeddings=positions,
        encoder_layers=layers, encoder_attention_heads=heads, encoder_ffn_dim=ffn,
        decoder_layers=layers, decoder_attention_heads=heads, decoder_ffn_dim=ffn,
        dropout=dropout, attention_dropout=dropout, activation_function="gelu", scale_embedding=True,
        bos_token_id=BOS, pad_token_id=PAD, eos_token_id=eos, forced_eos_token_id=eos, decoder_start_token_id=None,
    )  # fmt: skip
    config.architectures = ["BartForConditionalGeneration"]
    return config


def read_tags(arguments: Mapping[str, Any], vocab_size: int) -> Tags | None:
    """The tags that a checkpoint's arguments name; else the official ones, if its vocabulary has the official size, or
    None. `langs` gives the languages in the order of their ids; by default they are the official ones."""
    end, languages = arguments.get("common_eos"), arguments.get("langs")
    if not isinstance(end, str) or not end:
        return Tags() if vocab_size == VOCABULARY else None
    count = arguments.get("placeholder", arguments.get("add_placeholder", PLACEHOLDERS))
    return Tags(
        languages=tuple(languages.split(",")) if isinstance(languages, str) and languages else LANGUAGE_TAGS,
        end=end,
        placeholders=max(count, 0) if isinstance(count, int) else PLACEHOLDERS,
    )


def read_language_tags(path: Path) -> tuple[str, ...]:
    """The languages of a file, one per line (`en` or `[en]`), in the order of their ids."""
    names: list[str] = []
    for number, line in read_lines(path, any_line_end=True):
        tag = re.fullmatch(r"\[?([\w-]+)\]?", line.strip())
        if not tag or tag[1] in names:
            what = "is repeated" if tag else "is not a tag such as en or [en]"
            raise InputError(f"--language-tags {path}, line {number}: {line.strip()!r} {what}; correct the file.")
        names.append(tag[1])
    if not names:
        raise InputError(f"--language-tags {path}: expected one tag per line, found an empty file.")
    return tuple(names)


def convert_state(
    state: Mapping[str, Tensor], arguments: Mapping[str, Any], name: str = "the checkpoint"
) -> tuple[BartConfig, dict[str, Tensor]]:
    """fairseq's weights under transformers' names, with the configuration that their shapes give.

    Args:
        state: fairseq's names without `model.`; keys that end with `.version` are ignored. See also `fitted`.
        arguments: of the training, for the facts that shapes do not show: the heads (by default, one for 64 of the
            width), dropout, activation, whether embeddings are scaled, the end tag.
    """
    weights = {key: tensor for key, tensor in state.items() if not key.endswith(".version")}
    config = _config(weights, arguments, name)
    with torch.device("meta"):  # without memory for the weights
        model = BartForConditionalGeneration(config).model
    shapes = {key: tuple(tensor.shape) for key, tensor in model.state_dict().items() if key != "shared.weight"}
    found = fitted(weights, shapes, TIED, TABLE, name, MODEL)
    converted = {"model.shared.weight" if key == TABLE else f"model.{key}": found[key] for key in found}
    converted["final_logits_bias"] = torch.zeros(1, config.vocab_size)  # BART's own; fairseq's graph lacks it
    return config, converted


def _config(weights: Mapping[str, Tensor], arguments: Mapping[str, Any], name: str) -> BartConfig:
    vocab_size, width = matrix(weights, TABLE, name, MODEL)
    rows = matrix(weights, "encoder.embed_positions.weight", name, MODEL)[0]
    if vocab_size <= UNK or rows <= PAD + 1:
        raise InputError(f"{name}: {vocab_size} tokens and {rows} positions leave no room for words.")
    if arguments.get("encoder_normalize_before") or arguments.get("decoder_normalize_before"):
        raise InputError(f"{name}: its layer norms stand before the blocks, Unicoder's behind; it is another model.")
    activation = arguments.get("activation_fn", "gelu")
    if activation not in ("gelu", "relu"):
        raise InputError(f"{name}: activation_fn is {activation!r}, expected gelu or relu; it is another model.")
    config = unicoder_config(vocab_size, width, positions=rows - PAD - 1)
    config.activation_function = activation
    config.scale_embedding = not arguments.get("no_scale_embedding", False)
    for key in ("dropout", "attention_dropout", "activation_dropout"):
        if isinstance(value := arguments.get(key), float) and 0 <= value < 1:
            setattr(config, key, value)
    for side in ("encoder", "decoder"):
        layers = {key.split(".")[2] for key in weights if key.startswith(f"{side}.layers.")}
        setattr(config, f"{side}_layers", len(layers))
        setattr(config, f"{side}_ffn_dim", matrix(weights, f"{side}.layers.0.fc1.weight", name, MODEL)[0])
        setattr(config, f"{side}_attention_heads", heads_of(arguments, side, width, HEAD_WIDTH, name))
    if tags := read_tags(arguments, vocab_size):
        config.eos_token_id = config.forced_eos_token_id = _first_id(tags, vocab_size, name)
    return config


def _first_id(tags: Tags, vocab_size: int, name: str) -> int:
    first = tags.first_id(vocab_size)
    if first <= UNK:
        raise InputError(
            f"{name}: {1 + len(tags.languages) + tags.placeholders} tags do not fit a vocabulary of {vocab_size}; "
            "check `langs` and `placeholder` of its arguments, or --language-tags."
        )
    return first


def make_tokenizer(source: str, tags: Tags, vocab_size: int) -> PreTrainedTokenizerFast:
    """XLM-R's tokenizer with the tags after its vocabulary.

    A text becomes `x </s> [EOS]`, also when it is cut. A tag that is written in a text is pieces like any other word
    (`split_special_tokens`), as it was for fairseq: a message cannot name a language or end itself. (XLM-R's own <s>
    and </s> are still read.)

    Raises:
        InputError: the tokenizer cannot be loaded, is not XLM-R's, or the tags would not get their ids.
    """
    name, revision = (source, None) if Path(source).exists() else split_revision(source)
    loaded = from_pretrained("AutoTokenizer", name, revision, option="--tokenizer")
    if getattr(loaded, "backend_tokenizer", None) is None:
        raise InputError(f"--tokenizer {source}: it has no fast tokenizer; pass FacebookAI/xlm-roberta-base.")
    first = tags.first_id(vocab_size)
    specials = [str(loaded.convert_ids_to_tokens(number)) for number in (BOS, PAD, SEP, UNK)]
    if len(loaded) != first or specials != ["<s>", "<pad>", "</s>", "<unk>"]:
        raise InputError(
            f"--tokenizer {source}: expected XLM-R's, with {first} tokens that begin <s> <pad> </s> <unk> (the "
            f"checkpoint has {vocab_size}, {vocab_size - first} of them tags), found {len(loaded)} that begin "
            f"{' '.join(specials)}; pass FacebookAI/xlm-roberta-base or its folder."
        )
    end, *others = tags.tokens()
    for tag in (end, *others):
        if not re.fullmatch(r"\[[\w-]+\]", tag) or (end, *others).count(tag) > 1:
            raise InputError(
                f"--language-tags: {tag!r} is not a tag such as [en], or is repeated; pass the right ones."
            )
    backend = Tokenizer.from_str(loaded.backend_tokenizer.to_str())
    # The class of XLM-R would put its own `<s> x </s>` back when it is loaded; the plain one keeps what the file says.
    backend.post_processor = processors.TemplateProcessing(
        single=f"$A </s> {end}", pair=f"$A </s> $B </s> {end}", special_tokens=[("</s>", SEP), (end, first)]
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token=end, sep_token="</s>", cls_token="<s>", pad_token="<pad>",
        unk_token="<unk>", mask_token="<mask>", extra_special_tokens=others, split_special_tokens=True,
        padding_side="right",
    )  # fmt: skip
    if tokenizer.convert_tokens_to_ids([end, *others]) != list(range(first, vocab_size)):
        raise InputError(f"--tokenizer {source}: it has some of the tags already; pass XLM-R's own.")
    return tokenizer


def convert_unicoder(
    checkpoint: Path,
    out: Path,
    tokenizer: str | None = None,
    overwrite: bool = False,
    language_tags: Sequence[str] | None = None,
) -> Path:
    """Write a fairseq checkpoint as a transformers folder: configurations, model.safetensors, tokenizer files.

    Args:
        tokenizer: the folder or hub id of XLM-R's; None: only the model is written.
        language_tags: the languages in the order of their ids; by default those of the checkpoint's arguments, then
            the official ones (`LANGUAGE_TAGS`).

    Returns:
        `out`, complete; after an error (see `read_fairseq`, `convert_state` and `make_tokenizer`) it is unchanged.
    """
    checkpoint, out = Path(checkpoint), Path(out)
    if language_tags and not tokenizer:
        raise InputError("--language-tags: the tags are written into a tokenizer; pass --tokenizer too.")
    with conversion(out, overwrite, checkpoint, *([Path(tokenizer)] if tokenizer else [])) as folder:
        state, arguments = read_fairseq(checkpoint, MODEL)
        config, weights = convert_state(state, arguments, str(checkpoint))
        if tokenizer:
            tags = read_tags(arguments, config.vocab_size) or Tags()
            if language_tags:
                tags = replace(tags, languages=tuple(language_tags))
                config.eos_token_id = config.forced_eos_token_id = _first_id(tags, config.vocab_size, str(checkpoint))
            made = make_tokenizer(tokenizer, tags, config.vocab_size)
            made.model_max_length = config.max_position_embeddings
            made.save_pretrained(folder)
        config.dtype = torch.float32
        config.save_pretrained(folder)
        GenerationConfig(
            pad_token_id=PAD,
            eos_token_id=config.eos_token_id,
            forced_eos_token_id=config.forced_eos_token_id,
            num_beams=BEAMS,
            max_new_tokens=min(REPLY_TOKENS, config.max_position_embeddings - 1),
            # No bos_token_id: generate would start from it where the language's tag is forgotten.
        ).save_pretrained(folder)
        save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return out
