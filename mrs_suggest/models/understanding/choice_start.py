"""Starts of a multiple-choice model: an encoder, a trained retriever's encoder, or a multiple-choice model."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from transformers import AutoModelForMultipleChoice, PreTrainedModel

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import starting_point
from mrs_suggest.models.checkpoint_loading import drawn, encoder_config, from_pretrained, set_dropout, set_length
from mrs_suggest.models.starting_points import MULTIPLE_CHOICE, RETRIEVER, require_start, start_kind
from mrs_suggest.models.understanding.choice_inputs import ChoiceCoder, ChoiceCollator
from mrs_suggest.models.understanding.multiple_choice import INPUTS, MODEL_TYPE, POOLINGS, ChoiceConfig, ChoiceModel
from mrs_suggest.models.understanding.shared_body import Parts

PAPER, LIBRARY = "paper", "library"
HEADS = (PAPER, LIBRARY)
MAX_TOKENS, LEAST_TOKENS = 128, 4  # ours: the longest input of XCOPA has 85 tokens of XLM-R
# The shape of a model if nothing else is asked for (Ponti et al. 2020, section 4.1).
DEFAULTS: Mapping[str, str] = {"head": PAPER, "pooling": POOLINGS[0], "input": INPUTS[0]}


class ChoiceParts(Parts):
    @property
    def coder(self) -> ChoiceCoder:
        """Questions to token ids, as this model reads them."""
        config: Any = self.model.config
        return ChoiceCoder(
            self.tokenizer, getattr(config, "input", INPUTS[0]), getattr(config, "max_tokens", MAX_TOKENS)
        )

    @property
    def collator(self) -> ChoiceCollator:
        return ChoiceCollator(self.tokenizer)


def load_choice_model(name: str | Path) -> ChoiceParts:
    """A trained multiple-choice model, in evaluation mode."""
    config = from_pretrained("AutoConfig", name)
    if not _has_head(config):
        raise InputError(f"{name}: not a multiple-choice model ({config.model_type}); train one from it first.")
    parts = build_choice_model(str(name))
    parts.model.eval()
    return parts


def build_choice_model(
    name: str,
    revision: str | None = None,
    *,
    head: str | None = None,
    pooling: str | None = None,
    input: str | None = None,
    dropout: float | None = None,
    encoder_dropout: float | None = None,
    max_tokens: int | None = None,
    seed: int = 0,
) -> ChoiceParts:
    """A model to train. Arguments that are None are those of a multiple-choice checkpoint, or the paper's.

    Args:
        name: a hub id, a folder or a baseline: an encoder (of transformers or sentence-transformers), a retriever,
            whose encoder of messages is taken, or a multiple-choice model, whose head is kept.
        head: `paper`, or `library`: the one that transformers has for the architecture.
        pooling: the encoder's vector: of the first token (`cls`), or the `mean`.
        input: premise and choice as a `pair`, or as a `single` text.
        dropout: on that vector and on the head's hidden layer; by default .1.
        encoder_dropout: inside the encoder; None keeps the checkpoint's.
        seed: of the head's fresh weights.

    Raises:
        InputError: the checkpoint cannot be loaded, is not an encoder, or its head or shape is not the one asked for.
    """
    for option, value, allowed in (("head", head, HEADS), ("pooling", pooling, POOLINGS), ("input", input, INPUTS)):
        if value is not None and value not in allowed:
            raise InputError(f"--{option}: expected one of {', '.join(allowed)}, found {value!r}.")
    for option, share in (("dropout", dropout), ("encoder_dropout", encoder_dropout)):
        if share is not None and not 0 <= share < 1:
            raise InputError(f"--{option}: expected 0 or more and less than 1, found {share:g}.")
    require_start(name, MULTIPLE_CHOICE, revision)
    asked = {"head": head, "pooling": pooling, "input": input}
    with drawn(seed):
        if start_kind(name, revision) == RETRIEVER:
            parts = _of_retriever(name, revision, asked)
        else:
            parts = _loaded(starting_point(name), revision, asked)
    if encoder_dropout is not None:
        set_dropout(getattr(parts.model, "encoder", parts.model), encoder_dropout)
    model: Any = parts.model
    own = isinstance(model, ChoiceModel)
    if dropout is not None:
        (model.drop if own else model.dropout).p = dropout
        setattr(model.config, "dropout" if own else "classifier_dropout", dropout)
    encoder = model.config.encoder if own else model.config
    set_length(model.config, encoder, parts.tokenizer, max_tokens, LEAST_TOKENS, MAX_TOKENS)
    return parts


def _loaded(name: str, revision: str | None, asked: Mapping[str, str | None]) -> ChoiceParts:
    config = encoder_config(name, revision)
    tokenizer = from_pretrained("AutoTokenizer", name, revision)
    if _has_head(config):
        where, have = name, _shape(config)
    elif asked["head"] == LIBRARY:
        if type(config) not in AutoModelForMultipleChoice._model_mapping:
            raise InputError(
                f"--head library: transformers does not have one for {config.model_type} ({name}); leave it out."
            )
        where, have = f"--head {LIBRARY}", {"pooling": POOLINGS[0], "input": INPUTS[0]}
    else:
        return _with_our_head(from_pretrained("AutoModel", name, revision), tokenizer, asked)
    for option, value in have.items():
        if asked.get(option) not in (None, value):
            raise InputError(
                f"--{option} {asked[option]}: does not fit {where}, which has {value}; leave the option out."
            )
    model = from_pretrained("AutoModelForMultipleChoice", name, revision)
    if not isinstance(model, ChoiceModel):
        heads = [f"{model.base_model_prefix}.pooler", "pre_classifier", "classifier", "sequence_summary", "logits_proj"]
        state = model.state_dict()
        model.trained_in_full = tuple(part for part in heads if any(key.startswith(part + ".") for key in state))
    return ChoiceParts(model, tokenizer)


def _of_retriever(name: str, revision: str | None, asked: Mapping[str, str | None]) -> ChoiceParts:
    """The encoder of messages of a trained retriever."""
    from mrs_suggest.models.retrieval.dual_encoder import build_dual_encoder
    from mrs_suggest.models.retrieval.routes import transformers_of

    if asked["head"] == LIBRARY:
        raise InputError(f"--head library: {name} is a retriever, for which only our head fits; leave the option out.")
    modules = transformers_of(build_dual_encoder(name, revision=revision))
    if not modules:
        raise InputError(f"--model_name_or_path {name}: has a table of token vectors and no encoder; use an encoder.")
    encoder: Any = modules[0].auto_model
    return _with_our_head(encoder.float(), modules[0].tokenizer, asked)


def _with_our_head(encoder: PreTrainedModel, tokenizer: Any, asked: Mapping[str, str | None]) -> ChoiceParts:
    shape: dict[str, Any] = {key: asked[key] or DEFAULTS[key] for key in ("pooling", "input")}
    # Without the place that the encoder was loaded from, which may be a folder.
    settings = {key: value for key, value in encoder.config.to_dict().items() if key != "_name_or_path"}
    return ChoiceParts(ChoiceModel(ChoiceConfig(settings, **shape), encoder), tokenizer)


def _has_head(config: Any) -> bool:
    return config.model_type == MODEL_TYPE or any(
        name.endswith("ForMultipleChoice") for name in config.architectures or []
    )


def shape_of(model: Any) -> dict[str, Any]:
    """The arguments of `build_choice_model` that give a model of this shape from the same encoder."""
    return _shape(model.config)


def built_as(record: dict[str, Any], name: str) -> PreTrainedModel:
    """The base of an adapter, by the keys of its record."""
    return build_choice_model(name, **record).model


def _shape(config: Any) -> dict[str, Any]:
    own = config.model_type == MODEL_TYPE
    shape = (PAPER, config.pooling, config.input) if own else (LIBRARY, POOLINGS[0], INPUTS[0])
    most: int | None = getattr(config, "max_tokens", None)
    return dict(zip(("head", "pooling", "input"), shape, strict=True)) | ({"max_tokens": most} if most else {})
