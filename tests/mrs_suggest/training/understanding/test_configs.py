"""The committed configurations have the values of section 6.1."""

from __future__ import annotations

from pathlib import Path

import pytest
from mrs_trainers.understanding import make_parser

from mrs_suggest.common.arguments import parse_with_config
from mrs_suggest.training.understanding.options import sound_understanding

# learning rate, batch, epochs: section 6.1
PAPER = dict.fromkeys(("nc", "xnli", "pawsx", "qadsm", "qam", "wpr", "multitask", "multilanguage"), (5e-6, 32, 10))
PAPER |= {"ner": (5e-6, 32, 20), "pos": (2e-5, 32, 20), "mlqa": (3e-5, 12, 2)}


@pytest.mark.parametrize("name", PAPER)
def test_a_file_has_the_values_of_the_paper(repository: Path, name: str) -> None:
    path = repository / "trainers" / "configs" / "understanding" / f"{name}.yaml"
    options, training = parse_with_config(make_parser(), ["--config", str(path), "--data", "x", "--use_cpu", "true"])
    sound_understanding(options, training)
    found = training.learning_rate, training.per_device_train_batch_size, training.num_train_epochs
    assert found == PAPER[name]
    assert (options.max_tokens, training.eval_strategy, training.save_strategy) == (512, "epoch", "epoch")
    if name in ("multitask", "multilanguage"):
        assert options.mode == name
    else:
        assert (options.mode, options.task) == ("pivot", name)
