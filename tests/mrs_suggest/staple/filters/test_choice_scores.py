"""The scores of choices equal the metric's, and the searches find what trying everything finds."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mrs_metrics.translations_f1 import score_translations
from mrs_suggest.staple.filters.choice_scores import best_count, best_threshold, by_score, reaching, score_choice
from mrs_suggest.staple.lists import Labels, Lists, lists_of, read_labels
from mrs_suggest.staple.pooling import pool
from tests.mrs_suggest.staple.simulated import accepted_translations, members, write_data


@st.composite
def problems(draw: st.DrawFn) -> tuple[Lists, Labels, np.ndarray]:
    """Lists of 0 to 5 translations, with ties among the scores and unknown ones."""
    sizes = draw(st.lists(st.integers(0, 5), min_size=1, max_size=5))
    n = sum(sizes)
    score = draw(arrays(float, n, elements=st.sampled_from([-2.0, -1.0, -0.5, 0.0, 1.0, np.nan])))
    accepted = draw(arrays(bool, n))
    share = np.where(accepted, draw(arrays(float, n, elements=st.sampled_from([0.0, 0.05, 0.1, 0.2]))), 0.0)
    starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    return Lists(starts, {}), Labels(accepted, share), score


def macro(lists: Lists, gold: Labels, kept: np.ndarray) -> float:
    return float(score_choice(lists, gold, kept).weighted_f1.mean())


@given(problems())
def test_the_threshold_is_the_best_of_all(problem: tuple[Lists, Labels, np.ndarray]) -> None:
    lists, gold, score = problem
    threshold, found = best_threshold(lists, gold, score)
    levels = [np.inf, *np.unique(score[~np.isnan(score)]).tolist()]
    tried = [macro(lists, gold, reaching(lists, score, level)) for level in levels]
    assert found == pytest.approx(max(tried), abs=1e-12)
    assert macro(lists, gold, reaching(lists, score, threshold)) == pytest.approx(max(tried), abs=1e-12)


@given(problems())
def test_the_count_is_the_best_of_all(problem: tuple[Lists, Labels, np.ndarray]) -> None:
    lists, gold, score = problem
    order = by_score(lists, score)
    most, found = best_count(lists, gold, order)

    def first(count: int) -> float:
        kept = np.zeros(lists.size, bool)
        for begin, end in zip(lists.starts, lists.starts[1:], strict=False):
            kept[order[begin : min(begin + count, end)]] = True
        return macro(lists, gold, kept)

    assert found == pytest.approx(max(first(count) for count in range(1, 7)), abs=1e-12)
    assert first(most) == pytest.approx(found, abs=1e-12)


def test_scores_equal_the_metrics(tmp_path: Path) -> None:
    accepted = accepted_translations(30, seed=1)
    found = pool([(tmp_path, members(accepted, 2, seed=2))])
    data = write_data(accepted, tmp_path / "data")
    gold, prompts = read_labels(found, tmp_path / "x", str(data))
    kept = np.random.default_rng(3).random(len(found.table)) < 0.3
    ours = score_choice(lists_of(found), gold, kept)
    rows = [
        {"id": key, "translations": [{"text": text, "weight": weight} for text, weight in weights.items()]}
        for key, weights in accepted.items()
    ]
    chosen = found.table.filter(kept)
    predicted: dict[str, list[str]] = {key: [] for key in accepted}
    for key, text in zip(chosen["id"].to_pylist(), chosen["text"].to_pylist(), strict=True):
        predicted[key].append(text.upper() + " !")
    theirs = score_translations(rows, predicted)
    assert prompts == 30
    np.testing.assert_allclose(ours.weighted_f1, theirs.weighted_f1, atol=1e-12)
    np.testing.assert_allclose(ours.precision, theirs.precision, atol=1e-12)
    np.testing.assert_allclose(ours.weighted_recall, theirs.weighted_recall, atol=1e-12)
