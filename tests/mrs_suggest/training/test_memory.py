"""Errors for want of memory become a sentence that names what helps; others stay what they are."""

import errno
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from mrs_suggest.common.errors import InputError
from mrs_suggest.training.trainer import explain_out_of_memory


def told(error: BaseException) -> str:
    with pytest.raises(InputError) as found, explain_out_of_memory(lambda: "in training; use less"):
        raise error
    return str(found.value)


def test_a_real_failure_of_the_cpu_allocator() -> None:
    with (
        pytest.raises(InputError, match=r"^out of memory \(tried to allocate \d+ bytes\) here; use less\.$"),
        explain_out_of_memory(lambda: "here; use less"),
    ):
        torch.empty(1 << 48)


def test_what_the_libraries_raise() -> None:
    for error, tried in (
        (torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has ..."), "2.00 GiB"),
        (RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"), ""),
        (RuntimeError("MPS backend out of memory (MPS allocated: 1 GB)"), ""),
        (MemoryError("Unable to allocate 8.00 GiB for an array"), ""),
        (MemoryError(), ""),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), ""),
    ):
        amount = f" (tried to allocate {tried})" if tried else ""
        assert told(error) == f"out of memory{amount} in training; use less."


@pytest.mark.parametrize("error", [RuntimeError("shapes differ"), OSError(errno.ENOENT, "no such file"), ValueError()])
def test_other_errors_pass(error: Exception) -> None:
    with pytest.raises(type(error)) as found, explain_out_of_memory(lambda: "unused"):
        raise error
    assert found.value is error


def training(batch: int) -> Any:
    return SimpleNamespace(per_device_train_batch_size=batch, gradient_accumulation_steps=2, world_size=1)


def test_what_helps_a_retriever() -> None:
    from mrs_suggest.training.retrieval.options import RetrievalArguments
    from mrs_suggest.training.retrieval.run import advice

    options = RetrievalArguments()
    assert advice(options, training(256), True).startswith("lower --mini_batch_size to less than 64")
    assert advice(options, training(16), True).startswith("lower --mini_batch_size to less than 16")
    least = replace(options, mini_batch_size=1)
    assert "--per_device_train_batch_size (now 256)" in advice(least, training(256), True)
    static = replace(options, encoders="static")
    assert advice(static, training(8), True) == "lower --per_device_train_batch_size (now 8)"
    assert "--max_test_examples" in advice(options, training(256), False)
