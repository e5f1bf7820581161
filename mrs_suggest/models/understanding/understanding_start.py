"""Models for understanding tasks: an encoder with the head of one task, or with a head for each of several.

With one task the model is transformers' own (`AutoModelForSequenceClassification`, `...ForTokenClassification` or
`...ForQuestionAnswering`), so that its pipelines load it; with several it is a `SharedBodyModel`. Either way the
configuration names the tasks (`understanding`), the labels in their order, and how many tokens are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import transformers
from transformers import PreTrainedModel

from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import starting_point
from mrs_suggest.models.checkpoint_loading import drawn, encoder_config, from_pretrained, set_length, without_report
from mrs_suggest.models.starting_points import UNDERSTANDING, require_start
from mrs_suggest.models.understanding.shared_body import MODEL_TYPE, Parts, SharedBodyConfig, SharedBodyModel, draw
from mrs_suggest.models.understanding.text_rows import ANSWER, LABEL, PAGE, TAGS

# The end of the names of transformers' classes.
CLASSES = {
    LABEL: "SequenceClassification", PAGE: "SequenceClassification", TAGS: "TokenClassification",
    ANSWER: "QuestionAnswering",
}  # fmt: skip
MAX_TOKENS, LEAST_TOKENS = 512, 16  # XGLUE, section 6.1; room for a question and a piece of text


@dataclass(frozen=True)
class Head:
    """The predictions for a task.

    Attributes:
        kind: one of `mrs_suggest.models.understanding.text_rows.KINDS`.
        labels: in the order of the model's scores; none for an answer.
    """

    kind: str
    labels: tuple[str, ...] = ()


class UnderstandingParts(Parts):
    @property
    def heads(self) -> dict[str, Head]:
        """The tasks that the model is for, and their labels in the order of its scores."""
        return heads_of(self.model.config)

    @property
    def shared(self) -> bool:
        """Whether the model takes the task's name with each batch."""
        return isinstance(self.model, SharedBodyModel)

    @property
    def max_tokens(self) -> int:
        return int(cast(Any, self.model.config).max_tokens)


def heads_of(config: Any) -> dict[str, Head]:
    """The tasks and heads that a configuration names; empty for a model that was not trained here."""
    found = getattr(config, "understanding", None) or {}
    return {task: Head(one["kind"], tuple(one["labels"])) for task, one in found.items()}


def load_understanding(name: str | Path) -> UnderstandingParts:
    """A trained model, in evaluation mode."""
    config = from_pretrained("AutoConfig", name)
    heads = heads_of(config)
    if not heads:
        raise InputError(f"{name}: not a model for understanding tasks ({config.model_type}); train one from it first.")
    parts = build_understanding(str(name), heads=heads, shared=config.model_type == MODEL_TYPE)
    parts.model.eval()
    return parts


def build_understanding(
    name: str,
    revision: str | None = None,
    *,
    heads: Mapping[str, Head],
    shared: bool = False,
    max_tokens: int | None = None,
    seed: int = 0,
) -> UnderstandingParts:
    """A model to train.

    A checkpoint's own head is kept where it was trained for the same task, or, if it does not say for which, has the
    same labels, whose order it keeps; any other head is fresh.

    Args:
        name: a hub id, a folder or a baseline: an encoder, or a model for understanding tasks.
        heads: task -> its kind and labels; one, or several with `shared`.
        shared: one encoder with a head for each task, instead of transformers' own class.
        max_tokens: the most of a row; None: 512, or what the encoder reads.

    Raises:
        InputError: the checkpoint cannot be loaded, is not an encoder, or transformers has no such head for it.
    """
    require_start(name, UNDERSTANDING, revision)
    place = starting_point(name)
    config = encoder_config(place, revision)
    tokenizer = from_pretrained("AutoTokenizer", place, revision)
    if not tokenizer.is_fast or tokenizer.pad_token_id is None:
        lacks = "a padding token" if tokenizer.is_fast else "a fast version, which gives the place of each token"
        raise InputError(f"--model_name_or_path {place}: its tokenizer lacks {lacks}; use BERT, XLM-R or such.")
    tokenizer.padding_side = tokenizer.truncation_side = "right"
    with drawn(seed), without_report():  # a missing head is fresh, and another one is left out
        if shared:
            model: Any = _shared(place, revision, config, heads)
        else:
            ((task, head),) = heads.items()
            model = _single(place, revision, config, task, head)
    encoder = getattr(model.config, "encoder", model.config)
    set_length(model.config, encoder, tokenizer, max_tokens, LEAST_TOKENS, MAX_TOKENS)
    return UnderstandingParts(model, tokenizer)


def shape_of(model: PreTrainedModel) -> dict[str, Any]:
    """The keys of an adapter's record, in addition to revision and seed."""
    config: Any = model.config
    shared = isinstance(model, SharedBodyModel)
    return {"heads": config.understanding, "shared": shared, "max_tokens": config.max_tokens}


def built_as(record: Mapping[str, Any], name: str) -> PreTrainedModel:
    """The base of an adapter, by the keys of its record."""
    try:
        heads = {task: Head(one["kind"], tuple(one["labels"])) for task, one in record["heads"].items()}
        known = all(head.kind in CLASSES for head in heads.values())
    except (KeyError, TypeError):
        known = False
    if not known or not heads or (len(heads) > 1 and not record["shared"]):
        raise InputError(f"expected heads with a kind and labels, found {record['heads']!r:.80}.")
    return build_understanding(name, **{**record, "heads": heads}).model


def has_head(name: str, task: str, head: Head, revision: str | None = None) -> bool:
    """Whether a checkpoint has a trained head for the task, which `build_understanding` would keep."""
    config = from_pretrained("AutoConfig", starting_point(name), revision)
    return task in heads_of(config) or _fits(config, task, head)


def _fits(config: Any, task: str, head: Head) -> bool:
    """Whether the head of a checkpoint of transformers' own class is one for the task."""
    if not any(name.endswith(f"For{CLASSES[head.kind]}") for name in config.architectures or []):
        return False
    if known := heads_of(config):
        return task in known
    return head.kind == ANSWER or set(config.id2label.values()) == set(head.labels)


def _single(name: str, revision: str | None, config: Any, task: str, head: Head) -> PreTrainedModel:
    what = CLASSES[head.kind]
    kind: Any = getattr(transformers, f"AutoModelFor{what}")
    if config.model_type == MODEL_TYPE:
        raise InputError(
            f"--model_name_or_path {name}: has a head for each of {', '.join(heads_of(config))}; pass --mode multitask."
        )
    if type(config) not in kind._model_mapping:
        raise InputError(
            f"--model_name_or_path {name}: transformers has no head of the kind {what} for {config.model_type}, which "
            f"{task} needs; use BERT, XLM-R or such."
        )
    own = _fits(config, task, head)
    labels = tuple(config.id2label[number] for number in range(len(head.labels))) if own else head.labels
    given: dict[str, Any] = {"num_labels": 2}  # first and last token
    if labels:
        given = {"id2label": dict(enumerate(labels)), "label2id": {label: n for n, label in enumerate(labels)}}
    model: Any = from_pretrained(kind, name, revision, ignore_mismatched_sizes=not own, **given)
    heads = [part for part, _ in model.named_children() if part != model.base_model_prefix]
    if not own:  # also where another task's head happens to have the same shape
        for part in heads:
            getattr(model, part).apply(draw)
    state = model.state_dict()
    named = [*heads, f"{model.base_model_prefix}.pooler"]
    model.trained_in_full = tuple(part for part in named if any(key.startswith(f"{part}.") for key in state))
    model.config.understanding = {task: {"kind": head.kind, "labels": list(labels)}}
    return cast(PreTrainedModel, model)


def _shared(name: str, revision: str | None, config: Any, heads: Mapping[str, Head]) -> SharedBodyModel:
    wanted = {task: {"kind": head.kind, "labels": list(head.labels)} for task, head in heads.items()}
    before: Any = from_pretrained("AutoModel", name, revision)
    if config.model_type != MODEL_TYPE:
        settings = {key: value for key, value in before.config.to_dict().items() if key != "_name_or_path"}
        return SharedBodyModel(SharedBodyConfig(settings, wanted), before)
    if before.config.understanding == wanted:
        return cast(SharedBodyModel, before)
    model = SharedBodyModel(SharedBodyConfig(before.config.encoder.to_dict(), wanted), before.encoder)
    for task, one in before.config.understanding.items():
        if wanted.get(task) == one:
            model.heads[task] = before.heads[task]
    return model
