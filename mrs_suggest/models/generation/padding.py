"""Rows of token ids side by side in one tensor."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

Rows = Sequence[Sequence[int]]
Batch = Callable[[Rows, Rows, Rows, int], dict[str, Any]]  # of sources, prompts, targets, and what pads them
IGNORED = -100  # the label that torch's cross entropy passes over


def padded(rows: Rows, value: int, left: bool = False) -> Tensor:
    """Rows of any length -> (rows, longest) int64, filled up with `value` on the right, or on the left."""
    longest = max(map(len, rows), default=0)
    fill = [[value] * (longest - len(row)) for row in rows]
    both = zip(fill, rows, strict=True) if left else zip(rows, fill, strict=True)
    return torch.tensor([[*first, *second] for first, second in both], dtype=torch.int64)


def seq2seq_batch(sources: Rows, prompts: Rows, targets: Rows, pad: int) -> dict[str, Tensor]:
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


def causal_batch(sources: Rows, prompts: Rows, targets: Rows, pad: int) -> dict[str, Tensor]:
    """A batch of a language model, which reads source, prompt and target as one text and learns the target alone.

    Arguments are those of `seq2seq_batch`. Each of the `labels` is at the place whose logits predict it.
    """
    before = [[*source, *prompt] for source, prompt in zip(sources, prompts, strict=True)]
    rows = [[*ids, *target[:-1]] for ids, target in zip(before, targets, strict=True)]
    labels = [[*[IGNORED] * (len(ids) - 1), *target] for ids, target in zip(before, targets, strict=True)]
    return {
        "input_ids": padded(rows, pad),
        "attention_mask": padded([[1] * len(row) for row in rows], 0),
        "labels": padded(labels, IGNORED),
    }


def packed_batch(sources: Rows, prompts: Rows, targets: Rows, pad: int) -> dict[str, Any]:
    """As `causal_batch`, in one row without padding.

    Positions begin anew with each example, from which transformers sees, without a cache, that it is read by itself.
    """
    rows = zip(sources, prompts, targets, strict=True)
    parts = [causal_batch([source], [prompt], [target], pad) for source, prompt, target in rows]
    for part in parts:
        part["position_ids"] = part.pop("attention_mask").cumsum(1) - 1
    return {"use_cache": False, **{name: torch.cat([part[name] for part in parts], 1) for name in parts[0]}}
