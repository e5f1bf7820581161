"""Multiple-choice questions as an encoder's input: premise and prompt with each choice (Ponti et al. 2020, 4.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from mrs_suggest.common.batches import by_length
from mrs_suggest.common.errors import InputError
from mrs_suggest.models.understanding.multiple_choice import INPUTS

Encoded = dict[str, list[list[int]]]  # of one question: name of the input -> tokens of each choice


@dataclass(frozen=True)
class Question:
    """One example.

    Attributes:
        premise: what is known; empty where it is hidden (NoP, section 4.3).
        prompt: what is asked; empty where it is hidden (NoQ).
        choices: the alternatives, two or more.
        label: number of the right one.
    """

    premise: str
    prompt: str
    choices: tuple[str, ...]
    label: int

    @property
    def context(self) -> str:
        """Premise and prompt, a space between them."""
        return " ".join(part for part in (self.premise, self.prompt) if part)


class ChoiceCoder:
    """Questions to token ids.

    Args:
        input: `pair`, in which the tokenizer separates context and choice, or `single`, one text with a space between.
        max_tokens: longer inputs are cut, the longer part of a pair first.
    """

    def __init__(self, tokenizer: Any, input: str = INPUTS[0], max_tokens: int = 128) -> None:
        self.tokenizer, self._input, self._max_tokens = tokenizer, input, max_tokens

    def encode(self, questions: Sequence[Question]) -> list[Encoded]:
        """Token ids, and whatever else the encoder takes, for each question and choice."""
        if not questions:
            return []
        contexts = [question.context for question in questions for _ in question.choices]
        choices = [choice for question in questions for choice in question.choices]
        if self._input == "pair":
            texts: tuple[list[str], ...] = contexts, choices
        else:
            texts = ([f"{context} {choice}".strip() for context, choice in zip(contexts, choices, strict=True)],)
        flat = self.tokenizer(*texts, truncation=True, max_length=self._max_tokens)
        names = [name for name in self.tokenizer.model_input_names if name in flat]
        ends = np.cumsum([len(question.choices) for question in questions]).tolist()
        return [{name: flat[name][a:b] for name in names} for a, b in pairwise([0, *ends])]


class ChoiceCollator:
    """Questions with the same number of choices as one batch, which the tokenizer pads."""

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer

    def __call__(self, rows: Sequence[dict[str, Any]]) -> dict[str, Tensor]:
        """Rows of `ChoiceCoder.encode`, perhaps with `labels` -> (questions, choices, tokens) int64."""
        inputs = [{name: value for name, value in row.items() if name != "labels"} for row in rows]
        counts = {len(row["input_ids"]) for row in inputs}
        if len(counts) > 1:
            raise InputError(
                f"one batch has questions with {' and '.join(map(str, sorted(counts)))} choices; train on one kind at "
                "a time."
            )
        flat = {name: [tokens for row in inputs for tokens in row[name]] for name in inputs[0]}
        padded = self._tokenizer.pad(flat, return_tensors="pt")
        batch = {name: value.view(len(rows), *counts, -1) for name, value in padded.items()}
        if "labels" in rows[0]:
            batch["labels"] = torch.tensor([row["labels"] for row in rows], dtype=torch.int64)
        return batch


@torch.inference_mode()
def choice_scores(
    model: nn.Module, collate: ChoiceCollator, rows: Sequence[Encoded], batch_size: int
) -> list[list[float]]:
    """The scores of each question's choices, before the softmax.

    Questions of similar length are scored together; the order of the result is that of `rows`.
    """
    device = next(model.parameters()).device
    found: list[list[float]] = [[] for _ in rows]
    counts = [len(row["input_ids"]) for row in rows]
    for count in set(counts):
        some = [number for number, choices in enumerate(counts) if choices == count]
        for batch in by_length([-max(map(len, rows[number]["input_ids"])) for number in some], batch_size):
            numbers = [some[place] for place in batch]  # the shortest first
            inputs = {name: value.to(device) for name, value in collate([rows[one] for one in numbers]).items()}
            for one, scores in zip(numbers, model(**inputs).logits.float().tolist(), strict=True):
                found[one] = scores
    return found
