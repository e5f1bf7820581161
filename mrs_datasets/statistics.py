"""Table 1 of the paper for a prepared folder: examples, tokens and response-set size, per language and split."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from mrs_core.errors import InputError
from mrs_core.languages import LANGUAGES
from mrs_datasets.prepared import PreparedData
from mrs_datasets.schema import SPLITS, responses_config

Tokenize = Callable[[str], list[str]]


@dataclass(frozen=True)
class SplitStatistics:
    """One row: `tokens` are those of messages and replies together; `responses` is that of the whole language."""

    language: str
    split: str
    examples: int
    tokens: int
    responses: int


def split_statistics(
    data: PreparedData, tokenizer_of: Callable[[str], Tokenize], languages: list[str] | None = None
) -> Iterator[SplitStatistics]:
    """Yield the rows of Table 1, one a language and split.

    Args:
        tokenizer_of: language code -> function from a text to its tokens (the metric's tokenizer of that language).
        languages: the languages to count, default all that the data have.
    """
    for code in [code for code in LANGUAGES if code in (languages or data.languages())]:
        tokenize = tokenizer_of(code)
        responses = _response_count(data, code)
        for split in SPLITS:
            pairs = data.load(code, split)
            tokens = sum(
                len(tokenize(text))
                for batch in pairs.iter(batch_size=10_000)
                for column in ("message", "reply")
                for text in batch[column]
            )
            yield SplitStatistics(code, split, len(pairs), tokens, responses)


def _response_count(data: PreparedData, language: str) -> int:
    try:
        return len(data.load(responses_config(language), "train"))
    except InputError:
        return 0
