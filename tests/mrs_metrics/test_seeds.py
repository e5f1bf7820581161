"""Intervals of a mean over examples and seeds."""

import numpy as np
import pytest

from mrs_metrics.seeds import seeds_interval
from mrs_metrics.significance import bootstrap_interval


def test_one_run_has_the_interval_of_its_examples() -> None:
    values = np.arange(50.0)
    assert seeds_interval([values]) == bootstrap_interval(values)


def test_runs_that_agree_leave_the_examples_and_equal_ones_nothing() -> None:
    values = np.random.default_rng(1).normal(size=400)
    low, high = seeds_interval(np.stack([values] * 3))
    width = 1.96 * values.std(ddof=1) / 20
    assert (low, high) == pytest.approx((values.mean() - width, values.mean() + width), abs=0.001)
    assert seeds_interval(np.full((2, 5), 0.25)).method == "no interval: all 10 differences are equal"


def test_seeds_that_differ_widen_it_to_the_t_interval_of_three() -> None:
    values = np.array([[-1.0], [0.0], [1.0]]) + np.zeros((3, 10))
    assert seeds_interval(values) == pytest.approx((-4.3027 / 3**0.5, 4.3027 / 3**0.5), abs=1e-3)


@pytest.mark.parametrize("values", [[], [1.0, 2.0], [[1.0]], [[1.0, np.nan]]])
def test_what_is_no_table_is_refused(values: object) -> None:
    with pytest.raises(ValueError, match=r"table \(runs, n\)"):
        seeds_interval(values)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="between 0 and 1"):
        seeds_interval([[1.0, 2.0], [1.0, 2.0]], confidence=1.5)


def test_examples_of_one_message_vary_together():
    table = np.random.default_rng(1).random((3, 30))
    low, high = seeds_interval(table)
    repeated = np.repeat(table, 4, axis=1)
    units = np.repeat(np.arange(30), 4).tolist()
    assert seeds_interval(repeated, units=units) == pytest.approx((low, high))
    assert seeds_interval(table, units=list(range(30))) == pytest.approx((low, high))
    with pytest.raises(ValueError, match="two examples"):
        seeds_interval(table, units=["one"] * 30)
