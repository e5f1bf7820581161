"""Rows of token ids side by side in one tensor."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

IGNORED = -100  # the label that torch's cross entropy passes over


def padded(rows: Sequence[Sequence[int]], value: int) -> Tensor:
    """Rows of any length -> (rows, longest) int64, filled up with `value` on the right."""
    longest = max(map(len, rows), default=0)
    return torch.tensor([[*row, *[value] * (longest - len(row))] for row in rows], dtype=torch.int64)


def seq2seq_batch(
    sources: Sequence[Sequence[int]], prompts: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], pad: int
) -> dict[str, Tensor]:
    """A batch of a sequence-to-sequence model.

    The decoder reads its prompt and the target except the last token. It does not choose the prompt: if that is longer
    than one token, the labels of its inner tokens are ignored. Without `decoder_input_ids`, Bart would make them from
    the source.

    Args:
        sources, prompts, targets: ids of each row, special tokens included; no prompt is empty.

    Returns:
        int64 tensors, padded on the right: `input_ids` and `attention_mask` (batch, source length),
        `decoder_input_ids` and `labels` (batch, target length), with -100 for labels that are ignored.
    """
    both = list(zip(prompts, targets, strict=True))
    return {
        "input_ids": padded(sources, pad),
        # By length, not by value: an id of the text may equal the padding's.
        "attention_mask": padded([[1] * len(ids) for ids in sources], 0),
        "decoder_input_ids": padded([[*prompt, *target[:-1]] for prompt, target in both], pad),
        "labels": padded([[*[IGNORED] * (len(prompt) - 1), *target] for prompt, target in both], IGNORED),
    }
