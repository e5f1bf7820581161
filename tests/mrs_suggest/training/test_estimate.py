"""The parts of `--estimate`: saved tensors and counted tokens."""

from __future__ import annotations

import pytest
import torch

from mrs_suggest.training.estimate import SavedTensors, tokens_of


def test_activations_of_a_network_are_those_that_its_backward_pass_reads() -> None:
    layers = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 4), torch.nn.Tanh())
    saved = SavedTensors(layers.parameters())
    for _ in range(2):  # what the first pass kept is gone in the second
        with saved.counted():
            layers(torch.randn(5, 8)).sum().backward()
    assert saved.peak == 4 * 5 * (8 + 16 + 4)


def test_activations_that_are_computed_again_do_not_count() -> None:
    from torch.utils.checkpoint import checkpoint

    layers = [torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh()) for _ in range(6)]
    peaks = []
    for again in (False, True):
        saved = SavedTensors(parameter for layer in layers for parameter in layer.parameters())
        with saved.counted():
            value = torch.randn(4, 32, requires_grad=True)
            for layer in layers:
                value = checkpoint(layer, value, use_reentrant=False) if again else layer(value)
            value.sum().backward()
        peaks.append(saved.peak)
    assert peaks[1] <= peaks[0]


@pytest.mark.parametrize(("writes", "expected"), [(False, 4), (True, 6)])
def test_tokens_are_counted_without_padding(writes: bool, expected: int) -> None:
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    batch = {"input_ids": mask, "attention_mask": mask, "labels": torch.tensor([[7, -100], [5, -100]])}
    assert tokens_of({**batch, "decoder_input_ids": mask, "return_loss": True}, writes) == expected
    assert tokens_of({"message_input_ids": torch.ones(2, 3)}, False) == 6
