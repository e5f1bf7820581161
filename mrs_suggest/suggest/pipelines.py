"""`pipeline("reply-suggestion", model=...)` of transformers after `import mrs_suggest`.

No code from a repository is executed: the pipeline is this class, and `Suggester.from_pretrained` loads the model.
"""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Self, cast

import torch
from transformers import Pipeline
from transformers.pipelines import PIPELINE_REGISTRY

from mrs_suggest.common.batches import in_batches
from mrs_suggest.common.errors import ArgumentError, InputError
from mrs_suggest.common.hub.baselines import SHIPPED, resolve_model
from mrs_suggest.suggest.conversation import read_conversations, read_single
from mrs_suggest.suggest.pipeline_config import register_config
from mrs_suggest.suggest.suggester import Suggester

TASK = "reply-suggestion"
BATCH = 64  # messages answered at a time, as many as the encoders take


class PipelineModel:
    """A suggester with the attributes that transformers' pipelines need."""

    device = torch.device("cpu")
    input_modalities = ("text",)

    def __init__(self, suggester: Suggester) -> None:
        self.suggester = suggester
        self.config = register_config()()

    @classmethod
    def from_pretrained(
        cls,
        name: str,
        revision: str | None = None,
        guard: bool | str | Path = True,
        precision: float | None = None,
        **_: object,
    ) -> Self:
        """Load a model as `Suggester.from_pretrained` does; transformers' other arguments are ignored."""
        return cls(Suggester.from_pretrained(name, revision, guard=guard, precision=precision))

    def can_generate(self) -> bool:
        """False: the pipeline does not call `generate`."""
        return False


class ReplySuggestionPipeline(Pipeline):
    """Suggests replies to messages, in the form of transformers' text pipelines.

    Args:
        model: the folder of a run, a hub id, or a `Suggester`. Default: the small retriever in the package.
        guard, precision: as for `Suggester`, in `model_kwargs={"guard": False}`.
        batch_size: messages answered at a time.

    Call it with a message, a list of messages, a column or torch data set, or any iterable of messages, and with the
    arguments `language`, `k`, `allow`, `deny` and `min_score` of `Suggester.suggest`. A conversation may stand for a
    message, as there.

    It returns for each message a list of `{"reply": ..., "score": ...}`, in display order, with `source` if there are
    several. A message without suggestions has one entry, `{"reply": None, "score": None, "reason": ...}`; the reasons
    are those of `Suggester.suggest`. A list gives a list of such lists, any other iterable a lazy iterator.

    Example:
        >>> from transformers import pipeline
        >>> import mrs_suggest
        >>> suggest = pipeline("reply-suggestion", model="build/first/retriever")  # doctest: +SKIP
        >>> suggest("¿Quedamos mañana?", k=1)  # doctest: +SKIP
        [{'reply': 'Sí, ¿a qué hora te viene bien?', 'score': 0.41, 'source': 'memory'}]
    """

    # The base is typed as if these were always None.
    _load_processor = _load_image_processor = _load_video_processor = False  # type: ignore[assignment]
    _load_feature_extractor = _load_tokenizer = False  # type: ignore[assignment]

    def __init__(self, model: PipelineModel | Suggester, device: Any = None, **kwargs: Any) -> None:
        if isinstance(model, Suggester):
            model = PipelineModel(model)
        if not isinstance(model, PipelineModel):
            raise ArgumentError(
                "model",
                f"{type(model).__name__} cannot suggest replies; pass the folder of a run, a hub id or a Suggester.",
            )
        if device is not None and torch.device("cpu" if device == -1 else device).type != "cpu":
            raise ArgumentError("device", "the suggester places its weights itself; leave the device out.", str(device))
        super().__init__(cast(Any, model), device=cast(Any, "cpu"), **kwargs)

    def __call__(
        self, inputs: Any, *args: Any, num_workers: int | None = None, batch_size: int | None = None, **kwargs: Any
    ) -> Any:
        """Suggest replies; see the class. `num_workers` is ignored, and errors are those of `Suggester.suggest`."""
        if args:
            raise ArgumentError("args", "name the arguments after the messages, such as k=3.", args)
        if (single := read_single(inputs)) is not None:
            return self._answered([single], **kwargs)[0]
        size = batch_size or self._batch_size or BATCH
        if isinstance(inputs, Sequence):
            return list(self._stream(read_conversations(inputs), size, kwargs))
        if not isinstance(inputs, Iterable | torch.utils.data.Dataset) or isinstance(inputs, bytes | dict):
            raise ArgumentError(
                "inputs", f"expected a message, or a list or an iterable of messages, found {type(inputs).__name__}."
            )
        return self._stream(inputs, size, kwargs)

    def _stream(self, texts: Any, size: int, arguments: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
        # A torch data set has indices and a length, but no finite iterator.
        messages = iter(texts) if isinstance(texts, Iterable) else (texts[number] for number in range(len(texts)))
        for batch in in_batches(messages, size):
            yield from self._answered(batch, **arguments)

    def _answered(self, messages: list[Any], **arguments: Any) -> list[list[dict[str, Any]]]:
        prepare, forward, finish = self._sanitize_parameters(**arguments)
        prepare, forward = {**self._preprocess_params, **prepare}, {**self._forward_params, **forward}
        # `forward` would convert the answers to plain lists, without their reasons.
        with self.get_inference_context()():
            found = self._forward(self.preprocess(messages, **prepare), **forward)
        return [self.postprocess(answer, **{**self._postprocess_params, **finish}) for answer in found["answers"]]

    def _sanitize_parameters(self, **parameters: Any) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
        known = {"language", "k", "allow", "deny", "min_score"}
        unknown = sorted(parameters.keys() - known)
        if unknown:
            raise ArgumentError(unknown[0], f"not an argument of {TASK}; it takes {', '.join(sorted(known))}.")
        return {}, parameters, {}

    def preprocess(self, input_: Any, **_: Any) -> dict[str, Any]:
        return {"messages": read_conversations(input_)}

    def _forward(self, input_tensors: dict[str, Any], **forward_parameters: Any) -> Any:
        suggester = cast(PipelineModel, self.model).suggester
        return {"answers": suggester.suggest(input_tensors["messages"], **forward_parameters)}

    def postprocess(self, model_outputs: Any, **_: Any) -> list[dict[str, Any]]:
        more = {"reason": model_outputs.reason} if model_outputs.reason is not None else {}
        if model_outputs.used is not None:
            more["used"] = model_outputs.used
        shown = [
            {"reply": one.reply, "score": one.score, **({"source": one.source} if one.source else {}), **more}
            for one in model_outputs
        ]
        return shown or [{"reply": None, "score": None, **more}]

    def save_pretrained(self, save_directory: Any, **_: Any) -> None:
        """Raise InputError: transformers would save the code of this class."""
        raise InputError(f"{save_directory}: a {TASK} pipeline is not saved; copy the model's folder, or publish it.")


def register() -> None:
    """Make the task known to `transformers.pipeline`; importing this module does."""
    register_config()
    if TASK not in PIPELINE_REGISTRY.supported_tasks:
        default = {"model": (str(resolve_model(SHIPPED)), None)}
        PIPELINE_REGISTRY.register_pipeline(TASK, ReplySuggestionPipeline, PipelineModel, default, "text")


register()
