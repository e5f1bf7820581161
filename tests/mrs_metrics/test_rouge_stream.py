"""Weighted ROUGE of streams: the scores of the whole, in one process and in two, read no further than needed."""

from __future__ import annotations

import dataclasses
import multiprocessing
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mrs_metrics import rouge_stream
from mrs_metrics.rouge import RougeScores, aggregate, score_examples
from mrs_metrics.rouge_stream import aggregate_stream, merge, score_stream
from mrs_metrics.tokenize import Tokenizer

ROWS = [
    (["no", "Yes!"], "yes !"),
    (["x"], "..."),
    ([], "yes"),
    (["merci !", "", "See you. Bye."], "See you!"),
    (["a b c d"], "w " * 101),
    (["a b c", "c b a"], "a c b"),
] * 7
PREDICTIONS, REFERENCES = [row[0] for row in ROWS], [row[1] for row in ROWS]


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rouge_stream, "BLOCK", 5)


def as_lists(scores: RougeScores) -> dict[str, object]:
    fields = {field.name: getattr(scores, field.name) for field in dataclasses.fields(scores)}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in fields.items()}


@pytest.mark.parametrize("rules", ["official", "paper"])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_has_the_scores_of_the_whole(workers: int, rules: str) -> None:
    whole = score_examples(PREDICTIONS, REFERENCES, rules=rules)
    merged = merge(score_stream(iter(ROWS), rules=rules, workers=workers, tokens=True))
    assert as_lists(merged) == as_lists(whole)
    assert "|nbest:3|" in merged.signature
    figures = aggregate_stream(score_stream(iter(ROWS), rules=rules, workers=workers))
    assert figures.pop("skipped") == whole.skipped
    assert figures.pop("signature") == whole.signature
    assert figures == pytest.approx(aggregate(whole), rel=1e-12)


def test_started_processes_give_the_same_scores_as_forked_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    spawn = multiprocessing.get_context("spawn")
    monkeypatch.setattr(rouge_stream, "_context", lambda: spawn)
    merged = merge(score_stream(ROWS, workers=2, tokens=True))
    assert as_lists(merged) == as_lists(score_examples(PREDICTIONS, REFERENCES))
    letters = Tokenizer("letters", "1", lambda text: " ".join(text))
    with pytest.raises(ValueError, match="tokenizer letters cannot be sent to other processes; use 1 worker"):
        score_stream(ROWS, workers=2, tokenizer=letters)


def test_a_given_tokenizer_is_used_by_all_processes() -> None:
    letters = Tokenizer("letters", "1", " ".join)  # can be sent, also where processes are not forked
    merged = merge(score_stream(ROWS, workers=2, tokenizer=letters, tokens=True))
    assert as_lists(merged) == as_lists(score_examples(PREDICTIONS, REFERENCES, tokenizer=letters))


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stream_is_read_no_further_than_needed(workers: int) -> None:
    read = 0

    def long() -> Iterator[tuple[list[str], str]]:
        nonlocal read
        for _ in range(1000):
            read += 1
            yield ["yes"], "yes"

    stream = score_stream(long(), workers=workers)
    assert read == 0
    first = next(stream)
    assert len(first.kept) == 5
    assert first.chosen_tokens == []
    assert read <= 5 * (2 + workers * rouge_stream._KEPT)
    stream.close()  # type: ignore[attr-defined]
    assert not multiprocessing.active_children()


def test_what_cannot_be_scored_is_refused_with_its_number() -> None:
    for bad in (("yes", "yes"), (["yes"], None), ([None], "yes"), (["yes"],), 5):
        with pytest.raises(ValueError, match="Example 7 must be a list of suggestions and a reference") as caught:
            list(score_stream([*ROWS[:7], bad, *ROWS]))  # type: ignore[list-item]
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="Example 7"):
        list(score_stream([*ROWS[:7], 5], workers=2))  # type: ignore[list-item]
    with pytest.raises(ValueError, match="workers must be 1 or more, not 0"):
        score_stream(ROWS, workers=0)
    with pytest.raises(ValueError, match="rules of the metric"):
        score_stream(ROWS, rules="mine")
    with pytest.raises(ValueError, match="no scores to merge"):
        merge([])


def test_an_empty_stream_has_no_average() -> None:
    assert len(merge(score_stream([])).kept) == 0
    with pytest.raises(ValueError, match="no example left to score"):
        aggregate_stream(score_stream([]))


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 23), st.integers(1, 8))
def test_the_size_of_the_blocks_changes_nothing(n: int, size: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rouge_stream, "BLOCK", size)
        merged = merge(score_stream(ROWS[:n], tokens=True))
    assert as_lists(merged) == as_lists(score_examples(PREDICTIONS[:n], REFERENCES[:n]))
