"""A run ends at the first loss or gradient that is no finite number, on every rank, before the weights are spoiled."""

import multiprocessing
import os
import socket
from contextlib import redirect_stderr
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader
from transformers import TrainingArguments

from mrs_suggest.common.errors import InputError, run_with_sentence
from mrs_suggest.training.trainer import OurTrainer, require_finite_weights

NAN, INF = float("nan"), float("inf")


class Root(nn.Module):
    """loss = sum of sqrt(w * x): not a number for one, finite with a gradient that is none for 0, else both finite."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, x: Tensor) -> dict[str, Tensor]:
        return {"loss": (self.weight * x).sqrt().sum()}


class Stopping(OurTrainer):
    def get_train_dataloader(self) -> DataLoader[Any]:
        return DataLoader(self.train_dataset, batch_size=1, collate_fn=self.data_collator)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def _state() -> Any:
    from accelerate.state import AcceleratorState

    yield
    AcceleratorState._reset_state(reset_partial_state=True)


def trainer(folder: Path, batches: list[float], **options: Any) -> Stopping:
    """One batch a number."""
    arguments = TrainingArguments(
        output_dir=str(folder), use_cpu=True, report_to="none", disable_tqdm=True, learning_rate=1e-3,
        num_train_epochs=1, **options,
    )  # fmt: skip
    rows: Any = [{"x": value} for value in batches]
    return Stopping(model=Root(), args=arguments, train_dataset=rows)


@pytest.mark.parametrize("options", [{}, {"max_grad_norm": 0.0}, {"bf16": True}], ids=str)
@pytest.mark.parametrize("bad", [NAN, INF])
def test_a_loss_that_is_no_number_ends_the_run_at_its_step(tmp_path: Path, bad: float, options: dict[str, Any]) -> None:
    run = trainer(tmp_path, [1.0, 2.0, bad, 1.0], **options)
    with pytest.raises(
        InputError, match=rf"diverged \(at step 3 the loss is {bad:g}\); lower --learning_rate"
    ) as found:
        run.train()
    assert "fp16" not in str(found.value)
    assert run.state.global_step == 2
    assert torch.isfinite(run.model.weight).all()  # type: ignore[union-attr,arg-type]
    assert not list(tmp_path.glob("checkpoint-*"))


@pytest.mark.parametrize("place", [2, 3])
def test_any_of_the_accumulated_batches_counts(tmp_path: Path, place: int) -> None:
    batches = [1.0] * 6
    batches[place] = NAN
    run = trainer(tmp_path, batches, gradient_accumulation_steps=2)
    with pytest.raises(InputError, match="at step 2 the loss is nan"):
        run.train()
    assert run.state.global_step == 1
    assert torch.isfinite(run.model.weight).all()  # type: ignore[union-attr,arg-type]


@pytest.mark.parametrize("clip", [0.0, 1.0])
def test_a_finite_loss_with_a_gradient_that_is_none(tmp_path: Path, clip: float) -> None:
    run = trainer(tmp_path, [1.0, 0.0, 1.0], max_grad_norm=clip)
    with pytest.raises(InputError, match="at step 2 the gradient's norm is nan"):
        run.train()
    assert torch.isfinite(run.model.weight).all()  # type: ignore[union-attr,arg-type]


def test_a_gradient_scaler_may_find_its_scale_by_overflowing(tmp_path: Path) -> None:
    run = trainer(tmp_path, [1.0])
    run.accelerator.scaler = object()
    run._losses, run._norm = torch.tensor(1.0), torch.tensor(INF)
    run.stop_if_diverged()
    run.args.fp16 = True
    run._losses, run._norm = torch.tensor(NAN), torch.tensor(INF)
    with pytest.raises(InputError, match=r"at step 1 the loss is nan\).*, or leave --fp16 out\.$"):
        run.stop_if_diverged()


def test_a_model_with_spoiled_weights_is_not_kept() -> None:
    require_finite_weights({"a": torch.ones(2), "count": torch.tensor(3)})
    with pytest.raises(InputError, match="the weights b are not finite at the end; nothing was saved"):
        require_finite_weights({"a": torch.ones(2), "b": torch.tensor([1.0, INF])})


def _rank(rank: int, folder: Path, port: int) -> None:
    torch.set_num_threads(1)
    place = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in place.items()})
    with (folder / f"rank{rank}").open("w", encoding="utf-8") as out, redirect_stderr(out):
        run = trainer(folder, [1.0, 2.0, NAN if rank == 1 else 1.0, 1.0])
        code = run_with_sentence(f"rank {rank}", run.train)
        print(f"exit code {code} after {run.state.global_step} steps", file=out)


def test_all_ranks_stop_where_one_has_such_a_loss(tmp_path: Path) -> None:
    """Without a word between them, the other ranks would wait for the gradient of the one that stopped."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    context = multiprocessing.get_context("fork")  # the libraries are loaded already
    ranks = [context.Process(target=_rank, args=(rank, tmp_path, port)) for rank in range(2)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(100)
        if process.is_alive():
            process.kill()
    for rank in range(2):
        said = (tmp_path / f"rank{rank}").read_text(encoding="utf-8")
        assert f"rank {rank}: the training has diverged (at step 3 the loss is nan)" in said
        assert "exit code 2 after 2 steps" in said
