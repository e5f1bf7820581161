"""The options against forgetting: what is refused, steps of two kinds, limits, interpolation."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from transformers import MT5Config, MT5ForConditionalGeneration, TrainingArguments

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.retrieval.tiny import train_tokenizer
from mrs_suggest.training.generation.model import build_generator
from mrs_suggest.training.generation.options import GenerationArguments, resolved_search
from mrs_suggest.training.generation.remedies import Watch, WatchesLanguages, make_watch, noising_of
from mrs_suggest.training.generation.training import copied_weights, interpolate, set_between
from mrs_suggest.training.sampling import MixedSampler, PairSampler
from tests.cases import cases

BAD: dict[str, tuple[dict[str, Any], str]] = cases(__file__, "BAD")


@pytest.mark.parametrize("case", BAD)
def test_what_cannot_be_is_refused_in_a_sentence(case: str) -> None:
    options, expected = BAD[case]
    with pytest.raises(InputError) as refused:
        resolved_search(GenerationArguments(**options), 3)
    assert str(refused.value).startswith(expected)
    assert str(refused.value).endswith(".")


def test_adapters_do_not_learn_added_tokens(tmp_path: Path) -> None:
    tokenizer = train_tokenizer(["how are you?", "fine"] * 4, 120)
    tokenizer.add_special_tokens({"eos_token": "</s>"})
    ids = {"pad_token_id": 0, "eos_token_id": tokenizer.eos_token_id, "decoder_start_token_id": 0}
    config = MT5Config(vocab_size=len(tokenizer), d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, **ids)
    MT5ForConditionalGeneration(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    training: Any = SimpleNamespace(seed=1)
    options = GenerationArguments(model_name_or_path=str(tmp_path), force_language_token=True, peft="lora")
    with pytest.raises(InputError, match=r"has no token of a language, and adapters do not learn added ones; leave"):
        build_generator(options, training, [], ["en"])
    frozen = build_generator(replace(options, peft="none", freeze_embeddings=True), training, [], ["en"])
    assert not frozen.model.get_input_embeddings().weight.requires_grad
    assert frozen.coder.row.name == "told"
    with pytest.raises(InputError, match=r"^--denoising_share: the tokenizer has no mask token"):
        noising_of(frozen.coder, "en", 1)


# --- steps of denoising


@given(st.integers(1, 60), st.integers(1, 200), st.sampled_from([0.1, 0.25, 0.5, 0.9]), st.integers(0, 3))
def test_pairs_alone_decide_how_long_an_epoch_is(pairs: int, texts: int, share: float, epoch: int) -> None:
    samplers = [PairSampler([size], 4, seed=1) for size in (pairs, texts)]
    mixed = MixedSampler(samplers, [pairs, texts], [1 - share, share], 1, epoch_of=0)
    steps = np.stack(list(mixed.drawn(epoch)))
    of_text = (steps >= pairs).all(1)
    assert (of_text | (steps < pairs).all(1)).all(), "a step has one kind"
    assert len(steps) == max(2, int(np.ceil(samplers[0].steps / (1 - share) - 1e-9)))
    assert abs(of_text.sum() - share * len(steps)) <= 1
    assert np.array_equal(steps, list(mixed.drawn(epoch))), "a resumed epoch is the same"


# --- the limit


def watched(folder: Path, limit: float) -> WatchesLanguages:
    arguments = TrainingArguments(
        output_dir=str(folder), use_cpu=True, report_to="none", metric_for_best_model="loss", greater_is_better=False
    )
    trainer = WatchesLanguages(nn.Linear(1, 1), arguments)
    trainer.watch = Watch({"es": ["hola"]}, limit, None)  # type: ignore[arg-type]
    trainer.state.global_step = 2
    return trainer


def test_a_run_stops_above_its_limit_and_keeps_what_was_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trainer = watched(tmp_path, 0.1)
    best = [
        trainer._determine_best_metric(trainer.log_figures({"loss": loss, **share}, "eval"), None)
        for loss, share in ((3.0, {}), (2.0, {"wrong_language": 0.1}), (1.0, {"wrong_language": 0.11}))
    ]
    assert best == [True, True, False], "the last one has the lowest loss"
    assert trainer.control.should_training_stop
    assert trainer.state.best_metric == 2.0
    told = capsys.readouterr().out
    assert "stopped at step 2: 0.110 of the replies to es are in another language" in told
    assert "first checkpoint" not in told
    trainer = watched(tmp_path, 0.0)
    assert trainer._determine_best_metric(trainer.log_figures({"loss": 3.0, "wrong_language": 1.0}, "eval"), None)
    assert trainer.control.should_training_stop
    assert "it is the first checkpoint, and is kept: evaluate more often" in capsys.readouterr().out


def test_a_language_that_the_model_does_not_know_is_refused(lid_model: Path) -> None:
    """Every reply in it would be in a wrong language."""
    assert make_watch({"pt-BR": ["oi"], "es": ["hola"]}, 0.1, str(lid_model)).limit == 0.1
    with pytest.raises(InputError, match=r"^--watch_languages qaa: .*lid\.bin does not know this language"):
        make_watch({"es": ["hola"], "qaa": ["ba"]}, 0.1, str(lid_model))


# --- interpolation


class Interpolated:
    """A trainer whose loss is the distance of the one weight from `target`, and whose share of wrong replies grows."""

    def __init__(self, target: float, limit: float = 1.0) -> None:
        model = nn.Linear(1, 1, bias=False)
        nn.init.constant_(model.weight, 1.0)
        self.generator = SimpleNamespace(model=model)
        self.args = SimpleNamespace(metric_for_best_model="loss", greater_is_better=False)
        self._target, self._limit = target, limit

    def measured(self) -> dict[str, float]:
        weight = self.generator.model.weight.item()
        return {"loss": abs(weight - self._target), "wrong_language": weight}

    def is_above(self, figures: dict[str, float]) -> bool:
        return figures["wrong_language"] > self._limit

    def is_world_process_zero(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("target", "limit", "kept"), [(0.4, 1.0, 0.5), (1.0, 1.0, 1.0), (1.0, 0.3, 0.25), (1.0, -1.0, 1.0)]
)
def test_the_best_share_on_validation_is_kept(target: float, limit: float, kept: float) -> None:
    """Among those within the limit on wrong replies, if there are any."""
    trainer: Any = Interpolated(target, limit)
    record = interpolate(trainer, {"weight": torch.zeros(1, 1)}, [0.0, 0.25, 0.5, 1.0, 0.5])
    assert [row["share"] for row in record["shares"]] == [0.0, 0.25, 0.5, 1.0]
    assert record["kept"] == kept == trainer.generator.model.weight.item()


def test_both_ends_are_exact_and_shared_weights_stay_shared() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    model[1].weight = model[0].weight
    start = copied_weights(model)
    assert len(start) == 3
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.7)
    trained = copied_weights(model)
    for share, expected in ((0.0, start), (1.0, trained), (0.5, {n: (start[n] + trained[n]) / 2 for n in start})):
        set_between(model, start, trained, share)
        for name, value in model.named_parameters():
            torch.testing.assert_close(value.data, expected[name], rtol=0, atol=0 if share in (0, 1) else 1e-6)
    assert model[1].weight is model[0].weight
