"""The committed configurations of the families are accepted by their trainers."""

from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import yaml

from mrs_suggest.common.arguments import parse_with_config
from mrs_suggest.common.errors import InputError
from mrs_suggest.training.generation.training import METRICS
from tests.cases import cases

CONFIGS = Path(__file__).resolve().parents[3] / "trainers" / "configs"
SOUND = cases(__file__, "SOUND")


def read(folder: str, name: str) -> tuple[Any, Any]:
    """The options of a configuration, once the family has accepted them."""
    parser = import_module(f"mrs_trainers.{folder.partition('/')[0]}").make_parser()
    data = [] if folder == "pretraining" else ["--data", "data"]
    words = ["--config", str(CONFIGS / folder / f"{name}.yaml"), "--use_cpu", "true", "--fp16", "false", *data]
    options, training = parse_with_config(parser, words)
    module, _, function = SOUND[folder].partition(":")
    sound = getattr(import_module(f"mrs_suggest.training.{module}"), function)
    if folder == "generation/xglue":
        from mrs_suggest.training.text_generation.tasks import task_of

        sound(task_of(options.task), options, training)
    elif function == "sound_reply":
        sound(options, training, METRICS)
    else:
        sound(options, training)
    return options, training


OFFICIAL = cases(__file__, "OFFICIAL")


def parsed(names: list[str], *words: str) -> tuple[Any, Any]:
    """The options and the library's of several files, the first of which names the trainer."""
    configs = [word for name in names for word in ("--config", str(CONFIGS / f"{name}.yaml"))]
    parser = import_module(f"mrs_trainers.{names[0].partition('/')[0]}").make_parser()
    options, training = parse_with_config(parser, [*configs, "--fp16", "false", "--bf16", "false", *words])
    return options, training


@pytest.mark.parametrize("name", OFFICIAL)
def test_an_official_file_changes_what_it_names_and_nothing_else(name: str) -> None:
    own = yaml.safe_load((CONFIGS / "official" / f"{name}.yaml").read_text(encoding="utf-8"))
    papers, official = parsed([OFFICIAL[name]]), parsed([OFFICIAL[name], f"official/{name}"])
    different = {key for one, other in zip(papers, official, strict=True) for key in changed(one, other)}
    assert different - {"gradient_accumulation_steps", "logging_dir"} <= own.keys(), "the former follows from the batch"
    assert different
    for key, value in own.items():
        found = next(getattr(one, key) for one in official if hasattr(one, key))
        assert found == (float(value) if isinstance(found, float) else value)


def changed(one: Any, other: Any) -> set[str]:
    return {field.name for field in fields(one) if getattr(one, field.name) != getattr(other, field.name)}


BATCHES = cases(__file__, "BATCHES")


@pytest.mark.parametrize("processes", [1, 2, 8])
@pytest.mark.parametrize("name", BATCHES)
def test_the_batch_of_a_step_is_that_of_all_processes(
    name: str, processes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    _, training = parsed([name])
    batch, accumulated = training.per_device_train_batch_size, training.gradient_accumulation_steps
    assert [batch, accumulated] == BATCHES[name][processes]
    assert batch * accumulated * processes == training.global_batch_size


@pytest.mark.parametrize(
    ("name", "processes", "words", "sentence"), cases(__file__, "test_what_the_processes_cannot_share_is_refused")
)
def test_what_the_processes_cannot_share_is_refused(
    name: str, processes: int, words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", str(processes))
    with pytest.raises(InputError, match=sentence):
        parsed([name], *words)


def test_a_retriever_never_accumulates_the_pairs_of_a_step() -> None:
    from mrs_suggest.training.retrieval.options import sound_retrieval

    words = ["--skip_test", "true", "--output_dir", "x"]
    sound_retrieval(*parsed(["retrieval/mbert/mt_es"], *words))
    with pytest.raises(InputError, match="--per_device_train_batch_size: too small for --global_batch_size"):
        sound_retrieval(*parsed(["retrieval/mbert/mt_es"], *words, "--per_device_train_batch_size", "64"))
    for more in (["--rate_decay", "0"], ["--rate_decay", "1.5"], ["--lr_scheduler_type", "linear"]):
        with pytest.raises(InputError, match="--rate_decay: expected"):
            sound_retrieval(*parsed(["retrieval/mbert/mt_es"], *words, *more))


def test_the_rate_of_the_retriever_decays_as_in_the_official_script() -> None:
    """pytorch_transformers/optimization.py of microsoft/MRS: decay_rate ** ((step - warm-up) / decay_steps)."""
    from torch import nn, optim

    from mrs_suggest.training.retrieval.model import RetrievalTrainer

    _, training = parsed(["retrieval/mbert/mt_es", "official/retrieval"])
    trainer = RetrievalTrainer.__new__(RetrievalTrainer)
    trainer.args, trainer.lr_scheduler = training, None
    trainer.optimizer = optim.SGD([nn.Parameter()], lr=1e-6)
    [rate] = trainer.create_scheduler(100_000).lr_lambdas
    found = [rate(step) for step in (0, 500, 1000, 6000, 11_000, 101_000)]
    assert found == pytest.approx([0, 0.5, 1, 0.999, 0.999**2, 0.999**20])


FILES = [(folder, path.stem) for folder in SOUND for path in sorted((CONFIGS / folder).glob("*.yaml"))]


@pytest.mark.parametrize(("folder", "name"), [file for file in FILES if not file[1].startswith("sweep")])
def test_every_configuration_is_accepted_by_its_family(folder: str, name: str) -> None:
    """That their values are the papers', `tests/papers` checks."""
    read(folder, name)


@pytest.mark.parametrize("name", ["d", "s_t", "s_t_d", "t", "t_rep", "unicoder"])
def test_encoders_are_pretrained_as_in_xcopa_and_xglue(name: str) -> None:
    options, _ = read("pretraining", name)
    assert options.objective == (["mlm", "tlm"] if name == "unicoder" else ["mlm"])
    assert (options.model_name_or_path, options.patience) == ("FacebookAI/xlm-roberta-base", 10)
