"""Table 1 of the paper for a prepared folder: examples, tokens and response-set size, per language and split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mrs_core.errors import InputError
from mrs_datasets.prepared import PreparedData
from mrs_datasets.schema import SPLITS, responses_config

Tokenize = Callable[[str], list[str]]


@dataclass(frozen=True)
class SplitStatistics:
    """One row: `tokens` are those of messages and replies together, by `tokenizer`; `responses` is that of the whole
    language."""

    language: str
    split: str
    examples: int
    tokens: int
    responses: int
    tokenizer: str


def split_statistics(
    data: PreparedData, tokenizer_of: Callable[[str], tuple[str, Tokenize]], languages: list[str] | None = None
) -> Iterator[SplitStatistics]:
    """Yield the rows of Table 1, one a language and split.

    Args:
        tokenizer_of: language code -> (name, function from a text to its tokens).
        languages: the languages to count, default all that the data have.
    """
    wanted = languages or data.languages()
    order = [code for code in data.record().languages if code in wanted]
    for code in [*order, *(code for code in wanted if code not in order)]:  # of the latter the data have nothing
        name, tokenize = tokenizer_of(code)
        responses = _response_count(data, code)
        for split in SPLITS:
            pairs = data.load(code, split)
            tokens = sum(
                len(tokenize(text))
                for batch in pairs.iter(batch_size=10_000)
                for column in ("message", "reply")
                for text in batch[column]
            )
            yield SplitStatistics(code, split, len(pairs), tokens, responses, name)


def _response_count(data: PreparedData, language: str) -> int:
    try:
        return len(data.load(responses_config(language), "train"))
    except InputError:
        return 0
