"""Table 1 of the paper for a prepared folder: examples, tokens and response-set size, per language and split."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from mrs_datasets.prepared.prepared import PreparedData
from mrs_datasets.prepared.schema import SPLITS, responses_config
from mrs_suggest.common.errors import InputError, first_line

Tokenize = Callable[[str], list[str]]


@dataclass(frozen=True)
class SplitStatistics:
    """One row; `tokens` counts messages and replies together, `responses` is the language's response set."""

    language: str
    split: str
    examples: int
    tokens: int
    responses: int
    tokenizer: str


def metric_tokenizer(language: str) -> tuple[str, Tokenize]:
    """The metrics' tokenizer of a language (MeCab for Japanese, else Treebank rules), with its name and version.

    Without an installed tokenizer it splits into characters other than white space, and the name says why.
    """
    from mrs_metrics.tokenize import get_tokenizer

    try:
        tokenizer = get_tokenizer(language)
    except (ImportError, ValueError) as error:
        return f"characters ({first_line(error)})", lambda text: list("".join(text.split()))
    return f"{tokenizer.name} {tokenizer.version}", tokenizer


def split_statistics(
    data: PreparedData,
    tokenizer_of: Callable[[str], tuple[str, Tokenize]] = metric_tokenizer,
    languages: list[str] | None = None,
) -> Iterator[SplitStatistics]:
    """Yield the rows of Table 1, one per language and split.

    Args:
        tokenizer_of: language code -> (name, function from a text to its tokens).
        languages: the languages to count, default all in the data.
    """
    wanted = languages or data.languages()
    order = list(data.record().languages)
    for code in sorted(wanted, key=lambda code: order.index(code) if code in order else len(order)):
        name, tokenize = tokenizer_of(code)
        try:
            responses = len(data.load(responses_config(code), "train"))
        except InputError:
            responses = 0
        for split in SPLITS:
            pairs = data.load(code, split)
            tokens = sum(
                len(tokenize(text))
                for batch in pairs.iter(batch_size=10_000)
                for column in ("message", "reply")
                for text in batch[column]
            )
            yield SplitStatistics(code, split, len(pairs), tokens, responses, name)


def languages_by_tokenizer(rows: Iterable[SplitStatistics]) -> dict[str, list[str]]:
    """The languages that each tokenizer counted, in the order of the rows."""
    found: dict[str, dict[str, None]] = {}
    for row in rows:
        found.setdefault(row.tokenizer, {})[row.language] = None
    return {tokenizer: list(codes) for tokenizer, codes in found.items()}
