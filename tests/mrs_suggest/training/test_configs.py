"""The committed configurations of the families are accepted by their trainers."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from mrs_suggest.common.arguments import parse_with_config

CONFIGS = Path(__file__).resolve().parents[3] / "trainers" / "configs"
SOUND = {
    "multiple_choice": "choice.options:sound_choice",
    "understanding": "understanding.options:sound_understanding",
    "pretraining": "pretraining.options:sound_pretraining",
    "causal": "causal.options:sound_causal",
    "generation/staple": "staple.run:sound_staple",
    "generation/xglue": "text_generation.run:sound_task",
}


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
    else:
        sound(options, training)
    return options, training


FILES = [(folder, path.stem) for folder in SOUND for path in sorted((CONFIGS / folder).glob("*.yaml"))]


@pytest.mark.parametrize(("folder", "name"), [file for file in FILES if file != ("multiple_choice", "sweep")])
def test_every_configuration_is_accepted_by_its_family(folder: str, name: str) -> None:
    """That their values are the papers', `tests/papers` checks."""
    read(folder, name)


@pytest.mark.parametrize("name", ["d", "s_t", "s_t_d", "t", "t_rep", "unicoder"])
def test_encoders_are_pretrained_as_in_xcopa_and_xglue(name: str) -> None:
    options, _ = read("pretraining", name)
    assert options.objective == (["mlm", "tlm"] if name == "unicoder" else ["mlm"])
    assert (options.model_name_or_path, options.patience) == ("FacebookAI/xlm-roberta-base", 10)
