"""Arrays come back from safetensors files as they were written, without being read into memory."""

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import save_file

from mrs_suggest.models.array_files import load_arrays, save_arrays


def test_arrays_come_back_with_types_and_shapes(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    made = {
        name: np.arange(6).reshape(2, 3).astype(name)
        for name in ("float64", "float32", "float16", "int64", "int32", "int8", "uint8", "bool")
    }
    made |= {"none": np.zeros((0, 4), np.float32), "one": np.array(7, np.int64), "turned": np.arange(6).reshape(2, 3).T}
    save_arrays(made, path)
    found = load_arrays(path)
    assert sorted(found) == sorted(made)
    for name, array in made.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert np.array_equal(found[name], array)
    found["int64"][0, 0] = 99  # stays in this process
    assert load_arrays(path)["int64"][0, 0] == 0


def test_floats_of_16_and_8_bits_are_read_as_float32(tmp_path: Path) -> None:
    for values in (
        torch.tensor([[1.0, -2.5], [3e38, 1e-38]], dtype=torch.bfloat16),
        torch.arange(256, dtype=torch.uint8).view(torch.float8_e4m3fn),  # all that there are
    ):
        save_file({"weight": values}, tmp_path / "x.safetensors")
        found = load_arrays(tmp_path / "x.safetensors")["weight"]
        assert found.dtype == np.float32
        assert np.array_equal(found, values.float().numpy(), equal_nan=True)


def test_what_is_cut_off_or_of_another_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    save_arrays({"a": np.arange(100)}, path)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(SafetensorError):
        load_arrays(path)
    save_file({"a": torch.zeros(4, dtype=torch.float8_e5m2)}, path)
    with pytest.raises(ValueError, match="'a' is of the type F8_E5M2"):
        load_arrays(path)
