"""Weighted ROUGE of a stream of examples, in one process or several; only numbers are kept.

The scores are those of `mrs_metrics.rouge.score_examples`, to the last bit. They come in blocks of examples, in order:
`aggregate_stream` sums them up in constant memory, `merge` concatenates them.
"""

from __future__ import annotations

import gc
import multiprocessing
import pickle
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from itertools import islice
from multiprocessing.context import BaseContext
from typing import NamedTuple

import numpy as np

from mrs_metrics.rouge import MAX_ORDER, RougeScorer, RougeScores, averages
from mrs_metrics.suggestions import Reference, check_suggestions, reference_counts
from mrs_metrics.tokenize import Tokenizer

BLOCK = 250  # examples: some 10 ms of work, so that all processes finish at about the same time
_WAITING = 2  # blocks queued at each of the other processes, so that none is ever idle
_KEPT = 32  # blocks per process that may be scored ahead of order; bounds the memory


class _Block(NamedTuple):
    """Examples to be scored together, from number `start` of the stream on; `nbest` and `nrefs` are the numbers of
    suggestions and references in the stream so far."""

    suggestions: list[Sequence[str]]
    references: list[Reference]
    start: int
    nbest: int
    nrefs: frozenset[int]


def score_stream(
    examples: Iterable[tuple[Sequence[str], Reference]],
    language: str = "en",
    rules: str = "official",
    tokenizer: Tokenizer | None = None,
    workers: int = 1,
    tokens: bool = False,
) -> Iterator[RougeScores]:
    """Score examples as they come, and yield their scores block by block, in order.

    Several processes pay off from some 10,000 examples on. If they cannot be forked (not on Linux, or with other
    threads running), they are spawned: a script then needs `if __name__ == "__main__"`.

    Args:
        examples: pairs of the suggestions, best first, and the reply that was really given, or a list of several; read
            only as far ahead as the processes need.
        language: BCP-47 code; selects the tokenizer.
        rules: `official` or `paper`, see `mrs_metrics.rouge`.
        tokenizer: used in place of the language's own.
        workers: processes that score, including this one.
        tokens: keep the chosen suggestions' tokens; without them the scores are numbers only.

    Returns:
        The scores, at least one block; `kept` counts from the start of the stream, and the last signature is the whole
        stream's.

    Raises:
        ValueError: language, rules or workers are out of range, the tokenizer cannot be sent to another process, or
            (while reading) an example is not a list of texts and a text.
        ImportError: Japanese is asked for without its tokenizer installed.

    >>> stream = score_stream([(["No.", "Yes!"], "yes!"), (["Bye!"], "...")])
    >>> [(scores.weighted.round(4).tolist(), scores.kept.tolist()) for scores in stream]
    [([0.5], [0])]
    """
    if workers < 1:
        raise ValueError(f"The number of workers must be 1 or more, not {workers}.")
    scorer = RougeScorer(language, rules, tokenizer)
    blocks = _blocks(examples)
    if workers == 1:
        return (_placed(scorer.score(block.suggestions, block.references, tokens), block, scorer) for block in blocks)
    context = _context()
    if context.get_start_method() != "fork" and not _can_be_sent(tokenizer):
        raise ValueError(
            f"The tokenizer {tokenizer.name if tokenizer else ''} cannot be sent to other processes; use 1 worker."
        )
    return _score_in_processes(blocks, scorer, (language, rules, tokenizer), workers, tokens, context)


def aggregate_stream(blocks: Iterable[RougeScores]) -> dict[str, object]:
    """Average the scores over the examples of all blocks; equal to `aggregate` of the merged blocks up to rounding.

    Returns:
        The figures of `mrs_metrics.rouge.aggregate`, `skipped` and `signature`.

    Raises:
        ValueError: there is no block, or every example was skipped.

    >>> figures = aggregate_stream(score_stream([(["Yes!"], "yes!"), (["Bye!"], "...")]))
    >>> round(figures["weighted"], 4), figures["skipped"]
    (0.5, {'reference_too_long': 0, 'reference_empty': 1})
    """
    sums = np.zeros((4, MAX_ORDER))
    n = empty_suggestions = 0
    skipped: dict[str, int] = {}
    signature = ""
    for scores in blocks:
        sums += [table.sum(axis=0) for table in (scores.rouge, scores.precision, scores.recall, scores.ceiling)]
        n += len(scores.kept)
        skipped = _added(skipped, scores.skipped)
        empty_suggestions += scores.empty_suggestions
        signature = scores.signature
    return {**averages(sums, n, skipped, empty_suggestions), "skipped": skipped, "signature": signature}


def merge(blocks: Iterable[RougeScores]) -> RougeScores:
    """Concatenate the blocks of a stream.

    `merge(score_stream(zip(predictions, references), workers=2, tokens=True))` is `score_examples` on two processes.

    Raises:
        ValueError: there is no block.

    >>> len(merge(score_stream((["yes"], "yes") for _ in range(1234))).weighted)
    1234
    """
    parts = list(blocks)
    if not parts:
        raise ValueError("There are no scores to merge.")
    skipped: dict[str, int] = {}
    for part in parts:
        skipped = _added(skipped, part.skipped)
    return RougeScores(
        rouge=np.concatenate([part.rouge for part in parts]),
        weighted=np.concatenate([part.weighted for part in parts]),
        chosen=np.concatenate([part.chosen for part in parts]),
        kept=np.concatenate([part.kept for part in parts]),
        skipped=skipped,
        chosen_tokens=[tokens for part in parts for tokens in part.chosen_tokens],
        signature=parts[-1].signature,
        precision=np.concatenate([part.precision for part in parts]),
        recall=np.concatenate([part.recall for part in parts]),
        ceiling=np.concatenate([part.ceiling for part in parts]),
        empty_suggestions=sum(part.empty_suggestions for part in parts),
    )


def _blocks(examples: Iterable[tuple[Sequence[str], Reference]]) -> Iterator[_Block]:
    numbered = enumerate(examples)
    start = nbest = 0
    nrefs: frozenset[int] = frozenset()
    while True:
        suggestions: list[Sequence[str]] = []
        references: list[Reference] = []
        for index, example in islice(numbered, BLOCK):
            texts, reference = _checked(index, example)
            suggestions.append(texts)
            references.append(reference)
            nbest = max(nbest, len(texts))
        nrefs |= reference_counts(references)
        if references or not start:
            yield _Block(suggestions, references, start, nbest, nrefs)
        if len(references) < BLOCK:
            return
        start += BLOCK


def _checked(index: int, example: tuple[Sequence[str], Reference]) -> tuple[Sequence[str], Reference]:
    try:
        suggestions, reference = example
        check_suggestions([suggestions], [reference])
    except (TypeError, ValueError):
        raise ValueError(
            f"Example {index} must be a list of suggestions and a reference (or a list of several), all of them texts, "
            f"not {example!r:.80}."
        ) from None
    return suggestions, reference


def _placed(scores: RougeScores, block: _Block, scorer: RougeScorer) -> RougeScores:
    return replace(scores, kept=scores.kept + block.start, signature=scorer.signature(block.nbest, block.nrefs))


def _added(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    return {reason: a.get(reason, 0) + b.get(reason, 0) for reason in {**a, **b}}


# --- Several processes ----------------------------------------------------------------------------------------------

_scorer: RougeScorer | None = None  # of a process that scores


def _start(language: str, rules: str, tokenizer: Tokenizer | None) -> None:
    global _scorer
    gc.freeze()  # garbage collection would copy every page that was inherited by a fork
    _scorer = RougeScorer(language, rules, tokenizer)


def _score(block: _Block, tokens: bool) -> RougeScores:
    assert _scorer is not None, "the process was started by _start"
    return _scorer.score(block.suggestions, block.references, tokens)


def _score_in_processes(
    blocks: Iterator[_Block],
    scorer: RougeScorer,
    setting: tuple[str, str, Tokenizer | None],
    workers: int,
    tokens: bool,
    context: BaseContext,
) -> Iterator[RougeScores]:
    """This process fills the others' queues, and scores the next block itself when they are full: a process that only
    distributes would take CPU time from one that scores."""
    pool = ProcessPoolExecutor(workers - 1, mp_context=context, initializer=_start, initargs=setting)
    handed: deque[Future[RougeScores]] = deque()
    found: deque[tuple[Future[RougeScores] | RougeScores, _Block]] = deque()
    try:
        for block in blocks:
            while handed and handed[0].done():
                handed.popleft()
            if len(handed) < (workers - 1) * _WAITING:
                handed.append(pool.submit(_score, block, tokens))
                found.append((handed[-1], block))
            else:
                found.append((scorer.score(block.suggestions, block.references, tokens), block))
            while found and (len(found) > workers * _KEPT or _is_ready(found[0][0])):
                yield _taken(*found.popleft(), scorer)
        while found:
            yield _taken(*found.popleft(), scorer)
    finally:
        pool.shutdown(cancel_futures=True)


def _is_ready(result: Future[RougeScores] | RougeScores) -> bool:
    return not isinstance(result, Future) or result.done()


def _taken(result: Future[RougeScores] | RougeScores, block: _Block, scorer: RougeScorer) -> RougeScores:
    return _placed(result.result() if isinstance(result, Future) else result, block, scorer)


def _context() -> BaseContext:
    """A fork starts at once and inherits all that it needs, but is not safe with threads, which may hold locks."""
    safe = sys.platform == "linux" and threading.active_count() == 1
    return multiprocessing.get_context("fork" if safe else "spawn")


def _can_be_sent(tokenizer: Tokenizer | None) -> bool:
    try:
        pickle.dumps(tokenizer)
    except (pickle.PicklingError, AttributeError, TypeError):
        return False
    return True
