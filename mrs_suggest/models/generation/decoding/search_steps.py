"""What each step of a search allows and records, whoever chooses the tokens: beams or a draw."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor

from mrs_suggest.models.generation.decoding.settings import Decoding

Processor = Callable[[Tensor, Tensor], Tensor]


class Allowed(NamedTuple):
    """The set of replies that a search may find (De Cao et al. 2021, "Autoregressive Entity Retrieval").

    Attributes:
        texts: the tokens of each reply -> its text.
        following: the beginning of a reply -> the tokens that continue it, or the end token.
    """

    texts: Mapping[tuple[int, ...], str]
    following: Mapping[tuple[int, ...], list[int]]

    @classmethod
    def of(cls, replies: Sequence[str], ids: Sequence[Sequence[int]], most: int, end: int) -> Self:
        """The replies of at most `most` tokens, by their ids; of two with the same, the first."""
        texts: dict[tuple[int, ...], str] = {}
        for tokens, reply in zip(map(tuple, ids), replies, strict=True):
            if 0 < len(tokens) <= most:
                texts.setdefault(tokens, reply)
        following: dict[tuple[int, ...], dict[int, None]] = {}
        for tokens in texts:
            for place, token in enumerate((*tokens, end)):
                following.setdefault(tokens[:place], {})[token] = None
        return cls(texts, {beginning: list(found) for beginning, found in following.items()})

    def restrict(self, tokens: Tensor, scores: Tensor, ends: Sequence[int]) -> Tensor:
        """The scores (rows, vocabulary) of what may follow the tokens (rows, length); others are -inf.

        Only an end follows what is no beginning of a reply: beams that have ended, or that nothing continues.
        """
        kept = torch.full_like(scores, -torch.inf)
        for row, beginning in enumerate(map(tuple, tokens.tolist())):
            allowed = self.following.get(beginning, list(ends))
            kept[row, allowed] = scores[row, allowed]
        return kept


class Rules(NamedTuple):
    """State that all batches share; `prompt` is the prompts' length."""

    settings: Decoding
    n: int
    prompt: int
    ends: list[int]
    pad: int
    bad_words: list[list[int]]
    allowed: Allowed | None = None

    @property
    def width(self) -> int:
        """Beams of a group."""
        return self.settings.beams // self.settings.groups


@contextmanager
def no_defaults(model: Any) -> Iterator[None]:
    """Hide the checkpoint's generation config: generate takes from it what a given config leaves unset."""
    from transformers import GenerationConfig

    own = model.generation_config
    model.generation_config = GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = own


def processors_of(rules: Rules) -> list[Processor]:
    """The processors of log-probabilities that enforce the rules."""
    from transformers import NoBadWordsLogitsProcessor, NoRepeatNGramLogitsProcessor

    settings = rules.settings
    # With one beam generate hands over logits, with more log-probabilities.
    processors: list[Processor] = [lambda _, scores: scores.log_softmax(-1)] if rules.width == 1 else []
    # The prompt is not part of the reply: its start token may well be the end token, which must not count as repeated.
    if settings.no_repeat_ngram:
        processors.append(_after_prompt(NoRepeatNGramLogitsProcessor(settings.no_repeat_ngram), rules.prompt))
    if rules.bad_words:
        processors.append(_after_prompt(NoBadWordsLogitsProcessor(rules.bad_words, rules.ends), rules.prompt))
    if rules.allowed is not None:
        processors.append(_after_prompt(partial(rules.allowed.restrict, ends=rules.ends), rules.prompt))
    processors.append(_limits(rules))
    return processors


def _after_prompt(processor: Processor, prompt: int) -> Processor:
    """A processor that sees the reply without the prompt."""
    return lambda input_ids, scores: processor(input_ids[:, prompt:], scores)


def _limits(rules: Rules) -> Processor:
    """No padding in a reply, no end before `min_tokens`, nothing but an end after `max_tokens`."""

    def limit(input_ids: Tensor, scores: Tensor) -> Tensor:
        length = input_ids.shape[1] - rules.prompt
        if length >= rules.settings.max_tokens:
            last = torch.full_like(scores, -torch.inf)
            last[:, rules.ends] = scores[:, rules.ends]
            return last
        scores = scores.clone()
        if rules.pad not in rules.ends:
            scores[:, rules.pad] = -torch.inf
        if length < rules.settings.min_tokens:
            scores[:, rules.ends] = -torch.inf
        return scores

    return limit


class Record:
    """Records what scores and later groups need of each step; the scores pass unchanged.

    Generate's own record (`output_scores`) holds the scores of the whole vocabulary at every step: gigabytes for a
    vocabulary of 250,000, or for beams of hundreds. Here only the last step's are kept. The beam that a sequence
    continues is found at the next step, by the tokens that both have; if several beams have them, their scores agree.
    """

    def __init__(self, prompt: int, width: int, ends: Sequence[int]) -> None:
        self._prompt, self._width, self._ends = prompt, width, list(ends)
        self._before: Tensor | None = None  # (messages, width, tokens so far)
        self._scores: Tensor | None = None  # (messages, width, vocabulary) of the last step
        self._totals: list[Tensor] = []  # of each step: (rows,) of the tokens before it
        self._of_ends: list[Tensor] = []  # of each step: (rows, end tokens)
        self._chosen: list[Tensor] = []  # of each step: (messages, width) tokens that lead to it

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        rows, length = input_ids.shape
        tokens = input_ids[:, self._prompt :].reshape(rows // self._width, self._width, length - self._prompt)
        if self._before is None or self._scores is None:
            totals = torch.zeros(rows, dtype=torch.float64, device=scores.device)
        else:
            parents = (tokens[:, :, None, :-1] == self._before[:, None]).all(-1).int().argmax(-1)
            messages = torch.arange(len(tokens), device=scores.device)[:, None]
            gained = self._scores[messages, parents, tokens[..., -1]].double()
            self._chosen.append(tokens[..., -1])
            totals = (self._totals[-1].view(-1, self._width).gather(1, parents) + gained).flatten()
        self._before, self._scores = tokens, scores.view(*tokens.shape[:2], -1)
        self._totals.append(totals)
        self._of_ends.append(scores[:, self._ends])
        return scores

    def ended(self, steps: Tensor, rows: Tensor, tokens: Tensor) -> Tensor:
        """(n,) float64: the summed score of the reply in each of `rows`, whose end is `tokens` at `steps`."""
        ends = torch.tensor(self._ends, device=tokens.device)
        columns = (tokens[:, None] == ends).int().argmax(1)
        last = torch.stack(self._of_ends)[steps, rows, columns].double()
        return torch.stack(self._totals)[steps, rows] + last

    def counted(self, lengths: Tensor, never: Sequence[int]) -> Tensor:
        """(messages, steps, width) tokens that the beams chose, -1 from a message's `lengths` on and for `never`."""
        if not self._chosen:
            return torch.empty(len(lengths), 0, self._width, dtype=torch.long, device=lengths.device)
        chosen = torch.stack(self._chosen, 1)
        over = torch.arange(chosen.shape[1], device=lengths.device) >= lengths[:, None]
        return chosen.masked_fill(over[..., None] | torch.isin(chosen, torch.tensor(never, device=chosen.device)), -1)
