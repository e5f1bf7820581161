"""The committed configurations of the families are sound and have the papers' values."""

from __future__ import annotations

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


SETUPS = {"co_zs": "CO-ZS", "co_tlv": "CO-TLV", "si_zs": "SI-ZS", "si_co_zs": "SI+CO-ZS", "si_co_tlv": "SI+CO-TLV"}


@pytest.mark.parametrize("name", [*SETUPS, "frozen_co_zs"])
def test_multiple_choice_has_the_values_of_xcopas_appendix_c(name: str) -> None:
    options, training = read("multiple_choice", name)
    assert options.setup == SETUPS.get(name, "CO-ZS")
    assert training.eval_steps == training.save_steps == (500 if name == "si_zs" else 10)
    assert (options.patience, training.max_grad_norm, training.adam_epsilon) == (10, 1, 1e-8)
    assert (training.lr_scheduler_type, training.warmup_steps, training.weight_decay) == ("constant", 0, 0)
    frozen = name == "frozen_co_zs"
    assert training.learning_rate in ((1e-3, 1e-4, 1e-5) if frozen else (5e-6, 1e-5, 3e-5))
    assert options.frozen_encoder == frozen


# learning rate, batch, epochs: section 6.1
XGLUE = dict.fromkeys(("nc", "xnli", "pawsx", "qadsm", "qam", "wpr", "multitask", "multilanguage"), (5e-6, 32, 10))
XGLUE |= {"ner": (5e-6, 32, 20), "pos": (2e-5, 32, 20), "mlqa": (3e-5, 12, 2)}


@pytest.mark.parametrize("name", XGLUE)
def test_understanding_has_the_values_of_xglue(name: str) -> None:
    options, training = read("understanding", name)
    found = training.learning_rate, training.per_device_train_batch_size, training.num_train_epochs
    assert found == XGLUE[name]
    assert (options.max_tokens, training.eval_strategy, training.save_strategy) == (512, "epoch", "epoch")
    if name in ("multitask", "multilanguage"):
        assert options.mode == name
    else:
        assert (options.mode, options.task) == ("pivot", name)


@pytest.mark.parametrize("name", ["d", "s_t", "s_t_d", "t", "t_rep", "unicoder"])
def test_encoders_are_pretrained_as_in_xcopa_and_xglue(name: str) -> None:
    options, _ = read("pretraining", name)
    assert options.objective == (["mlm", "tlm"] if name == "unicoder" else ["mlm"])
    assert (options.model_name_or_path, options.patience) == ("FacebookAI/xlm-roberta-base", 10)


@pytest.mark.parametrize(("name", "rate", "steps"), [("xdae", 2e-4, 60_000), ("xfnp", 1e-4, 350_000)])
def test_seq2seq_models_are_pretrained_as_in_xglue(name: str, rate: float, steps: int) -> None:
    options, training = read("pretraining", name)
    assert (options.objective, options.model_name_or_path) == ([name], "FacebookAI/xlm-roberta-base")
    assert (options.decoder_layers, options.max_tokens, options.sampling_alpha) == (12, 512, 0.3)
    assert (training.learning_rate, training.max_steps) == (rate, steps)
    assert training.per_device_train_batch_size * training.gradient_accumulation_steps * 8 == 1024


@pytest.mark.parametrize("name", ["hu", "ja", "ko", "pt", "vi", "synthetic"])
def test_staple_has_a_configuration_for_each_track(name: str) -> None:
    options, _ = read("generation/staple", name)
    assert (options.task, options.languages) == ("staple", ["qaa"] if name == "synthetic" else [name])


@pytest.mark.parametrize("name", ["xdae", "xfnp", "encoder"])
def test_generation_tasks_have_the_values_of_xglue(name: str) -> None:
    options, training = read("generation/xglue", name)
    step = training.per_device_train_batch_size * training.gradient_accumulation_steps * (1 if name == "xfnp" else 8)
    warm_up = (step, training.learning_rate, training.warmup_steps)
    assert warm_up == ((64, 1e-4, 1000) if name == "xfnp" else (1024, 1e-5, 2000)), "section 6.1"
    assert options.message_tokens == 512


def test_the_small_language_model_has_the_languages_token_in_its_prompt() -> None:
    options, training = read("causal", "tiny")
    assert (options.model_name_or_path, options.prompt) == ("tiny", "[{code}]{message}</s>")
    assert (training.max_steps, training.eval_steps, training.save_steps) == (300, 0.5, 0.5)
