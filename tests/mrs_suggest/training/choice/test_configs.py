"""The committed configurations of XCOPA's setups."""

from __future__ import annotations

from pathlib import Path

import pytest

from mrs_suggest.common.arguments import parse_with_config
from mrs_suggest.training.choice.options import sound_choice
from mrs_suggest.training.choice.setups import SETUPS
from mrs_trainers.multiple_choice import make_parser

NAMES = {"co_zs": "CO-ZS", "co_tlv": "CO-TLV", "si_zs": "SI-ZS", "si_co_zs": "SI+CO-ZS", "si_co_tlv": "SI+CO-TLV"}


def configs(repository: Path) -> Path:
    return repository / "trainers" / "configs" / "multiple_choice"


def test_every_setup_has_its_file(repository: Path) -> None:
    assert {path.stem for path in configs(repository).glob("*.yaml")} == {*NAMES, "frozen_co_zs", "sweep", "synthetic"}
    assert set(NAMES.values()) == set(SETUPS)


@pytest.mark.parametrize("name", [*NAMES, "frozen_co_zs"])
def test_a_file_has_the_values_of_appendix_c(repository: Path, name: str) -> None:
    path = configs(repository) / f"{name}.yaml"
    options, training = parse_with_config(make_parser(), ["--config", str(path), "--data", "x", "--use_cpu", "true"])
    sound_choice(options, training)
    assert options.setup == NAMES.get(name, "CO-ZS")
    assert training.eval_steps == training.save_steps == (500 if name == "si_zs" else 10)
    assert (options.patience, training.max_grad_norm, training.adam_epsilon) == (10, 1, 1e-8)
    assert (training.lr_scheduler_type, training.warmup_steps, training.weight_decay) == ("constant", 0, 0)
    frozen = name == "frozen_co_zs"
    assert training.learning_rate in ((1e-3, 1e-4, 1e-5) if frozen else (5e-6, 1e-5, 3e-5))
    assert options.frozen_encoder == frozen
    values = [line for line in path.read_text(encoding="utf-8").splitlines() if ": " in line and line[0] != "#"]
    known = ("setup", "seed", "output_dir", "model_name_or_path", "save_steps")
    assert [line for line in values if "#" not in line and not line.startswith(known)] == [], "a value without a source"


def test_the_defaults_are_those_of_co_zs(repository: Path) -> None:
    path = configs(repository) / "co_zs.yaml"
    _, given = parse_with_config(make_parser(), ["--config", str(path), "--use_cpu", "true"])
    _, default = parse_with_config(make_parser(), ["--use_cpu", "true"])
    for name in ("learning_rate", "per_device_train_batch_size", "lr_scheduler_type", "adam_epsilon", "eval_steps"):
        assert getattr(given, name) == getattr(default, name), name
