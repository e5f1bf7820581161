"""Checkpoints of adapters within the trainer of a generator: small, resumable, and the best one is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from datasets import Dataset
from safetensors.torch import load_file

from mrs_suggest.common.errors import InputError
from mrs_suggest.models.adapters import Lora, add_lora, has_lora, lora_state, read_lora_state
from mrs_suggest.models.generation.decoding.settings import Decoding
from mrs_suggest.models.generation.generator import Generator, PairCollator
from mrs_suggest.models.generation.tiny_generator import build_tiny_generator
from mrs_suggest.training.generation.training import GenerationTrainer
from mrs_suggest.training.trainer import OurTrainer

TEXTS = [f"{word} {number}" for number in range(8) for word in ("how", "fine", "thanks")]
ADAPTERS = "adapter_state.safetensors"
STEPS = 4


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.set_num_threads(1)
    return build_tiny_generator(TEXTS, ["en"], tmp_path_factory.mktemp("base"), 1, 120)


class Trainer(GenerationTrainer):
    """Ours, with an evaluation that knows what it finds."""

    scores: tuple[float, ...] = (0.2, 0.9, 0.1, 0.3)  # after each step

    def get_train_dataloader(self) -> Any:
        return super(OurTrainer, self).get_train_dataloader()

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        metrics = {"eval_score": self.scores[self.state.global_step - 1]}
        self.log(metrics)
        return metrics


def run(base: Path, folder: Path, rank: int, resume: Path | None = None, load_best: bool = True) -> Trainer:
    """Train; rank 0: without adapters."""
    from transformers import Seq2SeqTrainingArguments

    generator = Generator.build(str(base), ["en"], 12, 9, Decoding(max_tokens=6))
    if rank:
        add_lora(generator.model, Lora(rank=rank, alpha=8, dropout=0.1), seed=3)
    coder = generator.coder
    rows = [
        {"input_ids": source, "labels": target, "prompt": coder.prompt("en")}
        for source, target in zip(coder.messages(TEXTS, "en"), coder.replies(TEXTS[::-1]), strict=True)
    ]
    arguments = Seq2SeqTrainingArguments(
        output_dir=str(folder), max_steps=STEPS, save_strategy="steps", save_steps=1, eval_strategy="steps",
        eval_steps=1, per_device_train_batch_size=4, learning_rate=0.05, use_cpu=True, report_to="none",
        disable_tqdm=True, load_best_model_at_end=load_best, metric_for_best_model="score", greater_is_better=True,
        remove_unused_columns=False, seed=5,
    )  # fmt: skip
    trainer = Trainer(
        model=generator.model, args=arguments, train_dataset=Dataset.from_list(rows),
        eval_dataset=Dataset.from_list([]), data_collator=PairCollator(generator.pad),
    )  # fmt: skip
    trainer.train(resume_from_checkpoint=str(resume) if resume else None)
    return trainer


@pytest.fixture(scope="module")
def whole(base: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Trainer]:
    folder = tmp_path_factory.mktemp("whole")
    return folder, run(base, folder, rank=2)


def test_checkpoints_hold_the_adapters_and_no_model(whole: tuple[Path, Trainer], base: Path) -> None:
    folder, _ = whole
    own = (base / "model.safetensors").stat().st_size
    for step in range(1, STEPS + 1):
        files = {path.name: path.stat().st_size for path in (folder / f"checkpoint-{step}").iterdir()}
        assert ADAPTERS in files
        assert not [name for name in files if name.startswith(("model", "pytorch_model", "adapter_model"))]
        assert sum(size for name, size in files.items() if name.endswith(("safetensors", "optimizer.pt"))) < own / 4
    one, two = (read_lora_state(folder / f"checkpoint-{step}") for step in (1, 2))
    assert all(".lora_" in name for name in one)
    assert any(not torch.equal(one[name], two[name]) for name in one)


def test_the_kept_adapters_are_those_of_the_best_checkpoint(whole: tuple[Path, Trainer]) -> None:
    folder, trainer = whole
    assert trainer.state.best_model_checkpoint == str(folder / "checkpoint-2")
    kept, best, last = lora_state(trainer.model), *(read_lora_state(folder / f"checkpoint-{n}") for n in (2, STEPS))
    assert all(torch.equal(kept[name], best[name]) for name in best)
    assert any(not torch.equal(kept[name], last[name]) for name in last)


def test_only_the_adapters_changed(whole: tuple[Path, Trainer], base: Path) -> None:
    before = Generator.build(str(base), ["en"], 12, 9, Decoding(max_tokens=6)).model
    now = {name.replace(".base_layer.", "."): value for name, value in whole[1].model.named_parameters()}
    for name, value in before.named_parameters():
        assert torch.equal(now[name], value), name


def test_resumed_adapters_equal_uninterrupted_ones(whole: tuple[Path, Trainer], base: Path, tmp_path: Path) -> None:
    """With dropout before the adapters: the random state comes back, too."""
    folder, _ = whole
    run(base, tmp_path, rank=2, resume=folder / "checkpoint-1", load_best=False)
    expected, found = (read_lora_state(place / f"checkpoint-{STEPS}") for place in (folder, tmp_path))
    assert expected.keys() == found.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, rtol=0, atol=1e-6)


def test_a_checkpoint_of_other_adapters_is_refused(whole: tuple[Path, Trainer], base: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pass the LoRA options that they were trained with"):
        run(base, tmp_path, rank=3, resume=whole[0] / "checkpoint-1")


def test_without_adapters_it_is_the_librarys_own_way(base: Path, tmp_path: Path) -> None:
    trainer = run(base, tmp_path / "whole", rank=0)
    assert not has_lora(trainer.model)
    first = tmp_path / "whole" / "checkpoint-1"
    assert (first / "model.safetensors").is_file()
    assert not (first / ADAPTERS).exists()
    with pytest.raises(InputError, match=f"no {ADAPTERS}"):
        read_lora_state(first)
    resumed = run(base, tmp_path / "resumed", rank=0, resume=first, load_best=False)
    expected = load_file(tmp_path / "whole" / f"checkpoint-{STEPS}" / "model.safetensors")
    found = dict(resumed.model.state_dict())
    assert max(float((found[name] - value).abs().max()) for name, value in expected.items()) < 1e-6
