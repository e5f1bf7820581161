"""The options that all trainers share: what is refused, before anything is replaced or trained."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

from mrs_suggest.common.errors import InputError
from mrs_suggest.training.options import require_integrations, with_model_revision
from mrs_suggest.training.reply.options import ReplyArguments, sound_reply
from mrs_suggest.training.retrieval.options import RetrievalTrainingArguments
from tests.cases import cases

METRICS = ("weighted_rouge", "mrr")


@dataclass
class Training:
    """What is read of the library's arguments."""

    world_size: int = 1
    n_gpu: int = 0
    seed: int = 42
    eval_steps: float | None = 0.1
    save_steps: float = 0.1
    predict_with_generate: bool = False
    per_device_train_batch_size: int = 8
    gradient_accumulation_steps: int = 1
    metric_for_best_model: str = "weighted_rouge"
    load_best_model_at_end: bool = True
    eval_strategy: str = "steps"
    label_smoothing_factor: float = 0.0
    batch_sampler: str = "batch_sampler"
    report_to: tuple[str, ...] = ()
    logging_nan_inf_filter: bool = True
    ddp_find_unused_parameters: bool | None = None
    fp16: bool = False
    device: torch.device = field(default_factory=lambda: torch.device("cpu"))


def check(training: Training | None = None, **options: Any) -> None:
    sound_reply(ReplyArguments(**options), training or Training(), METRICS)  # type: ignore[arg-type]


def test_the_defaults_are_sound() -> None:
    check()
    check(patience=2, peft="lora", model_name_or_path="org/base", batches="mixed", length_window=0)
    check(Training(metric_for_best_model="mrr", load_best_model_at_end=False))
    check(Training(eval_strategy="epoch", eval_steps=3))
    check(Training(fp16=True, device=torch.device("cuda")))


@pytest.mark.parametrize(
    ("training", "options", "named"), cases(__file__, "test_what_would_fail_later_or_have_no_effect_is_refused")
)
def test_what_would_fail_later_or_have_no_effect_is_refused(
    training: dict[str, Any], options: dict[str, Any], named: str
) -> None:
    with pytest.raises(InputError, match=named):
        check(Training(**training), **options)


def test_a_retriever_on_several_ranks_must_look_for_unused_parameters() -> None:
    """DDP else ends in a stack trace at the second pass of a step."""
    from mrs_suggest.training.retrieval.options import WITHOUT_EFFECT

    training: Any = Training(ddp_find_unused_parameters=False)
    with pytest.raises(InputError, match="--ddp_find_unused_parameters: has no effect here: a pass uses one"):
        sound_reply(ReplyArguments(), training, METRICS, WITHOUT_EFFECT)


def test_an_integration_without_its_package_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Before training, not by a stack trace of the library's trainer once data and model are loaded."""
    from transformers.integrations import integration_utils

    for package in ("wandb", "trackio"):
        monkeypatch.setattr(integration_utils, f"is_{package}_available", lambda: False)
        with pytest.raises(InputError, match=rf"^--report_to {package}: .* requires {package} to be installed.*\.$"):
            require_integrations((package,))
    with pytest.raises(InputError, match="^--report_to wanbd: wanbd is not supported, only azure_ml, "):
        require_integrations(("wanbd",))
    assert capsys.readouterr() == ("", "")


def test_processes_that_each_believe_they_are_alone_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each would train a model of its own and write it over the others'."""
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(InputError, match="on CPUs pass --use_cpu true"):
        check()
    check(Training(world_size=2))


def test_a_model_may_be_named_with_its_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolved(name: str, revision: str | None = None) -> tuple[str, str | None]:
        found = with_model_revision(ReplyArguments(model_name_or_path=name, model_revision=revision))
        return found.model_name_or_path, found.model_revision

    assert resolved("org/m@v1") == resolved("org/m@v1", "v1") == resolved("org/m", "v1") == ("org/m", "v1")
    assert (resolved("org/m"), resolved("tiny")) == (("org/m", None), ("tiny", None))
    with pytest.raises(InputError, match="pass only one"):
        resolved("org/m@v1", "v2")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my@model").mkdir()
    assert resolved("my@model") == ("my@model", None)
    for name, what in (("my@model", "is a folder"), ("tiny", "is built here")):
        with pytest.raises(InputError, match=f"--model_name_or_path {name}: {what}"):
            resolved(name, "v1")


@pytest.mark.parametrize("accelerator", [False, True])
def test_bfloat16_needs_no_word_of_the_cpu_where_there_is_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, accelerator: bool
) -> None:
    """The library refuses it there: "You need to assign use_cpu"."""
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: accelerator)
    make = RetrievalTrainingArguments
    given = {"output_dir": str(tmp_path), "logging_steps": 1, "eval_steps": 1, "save_steps": 1}
    assert not make(**given).use_cpu
    if not accelerator:
        training = make(**given, bf16=True)
        assert training.use_cpu
        assert training.device.type == "cpu"
