"""The committed configurations of XCOPA's setups."""

from __future__ import annotations

from pathlib import Path

import pytest
from mrs_trainers.multiple_choice import make_parser

from mrs_suggest.common.arguments import parse_with_config
from mrs_suggest.training.choice.options import sound_choice

NAMES = {"co_zs": "CO-ZS", "co_tlv": "CO-TLV", "si_zs": "SI-ZS", "si_co_zs": "SI+CO-ZS", "si_co_tlv": "SI+CO-TLV"}


@pytest.mark.parametrize("name", [*NAMES, "frozen_co_zs"])
def test_a_file_has_the_values_of_appendix_c(repository: Path, name: str) -> None:
    path = repository / "trainers" / "configs" / "multiple_choice" / f"{name}.yaml"
    options, training = parse_with_config(make_parser(), ["--config", str(path), "--data", "x", "--use_cpu", "true"])
    sound_choice(options, training)
    assert options.setup == NAMES.get(name, "CO-ZS")
    assert training.eval_steps == training.save_steps == (500 if name == "si_zs" else 10)
    assert (options.patience, training.max_grad_norm, training.adam_epsilon) == (10, 1, 1e-8)
    assert (training.lr_scheduler_type, training.warmup_steps, training.weight_decay) == ("constant", 0, 0)
    frozen = name == "frozen_co_zs"
    assert training.learning_rate in ((1e-3, 1e-4, 1e-5) if frozen else (5e-6, 1e-5, 3e-5))
    assert options.frozen_encoder == frozen
