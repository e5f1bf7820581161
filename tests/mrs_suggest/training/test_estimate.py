"""The tokens that `--estimate` counts."""

from __future__ import annotations

import pytest
import torch

from mrs_suggest.training.estimate import tokens_of


@pytest.mark.parametrize(("writes", "expected"), [(False, 4), (True, 6)])
def test_tokens_are_counted_without_padding(writes: bool, expected: int) -> None:
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    batch = {"input_ids": mask, "attention_mask": mask, "labels": torch.tensor([[7, -100], [5, -100]])}
    assert tokens_of({**batch, "decoder_input_ids": mask, "return_loss": True}, writes) == expected
    assert tokens_of({"message_input_ids": torch.ones(2, 3)}, False) == 6
