"""The number of examples that a difference needs, by the formula and by message."""

import math

import numpy as np
import pytest

from mrs_metrics.power import detectable_difference


def test_the_formula_by_hand() -> None:
    """Standard deviation 2; (1.95996 + 0.84162) ** 2 = 7.8489."""
    least, needed = detectable_difference([-2.0, 0.0, 2.0], target=0.5)
    assert least == pytest.approx(math.sqrt(7.8489 * 4 / 3), abs=1e-4)
    assert needed == math.ceil(7.8489 * 4 / 0.25)


def test_rows_of_a_message_count_once() -> None:
    values = np.random.default_rng(2).normal(size=40)
    apart = detectable_difference(values, target=0.1)
    assert detectable_difference(np.repeat(values, 3), np.repeat(np.arange(40), 3).tolist(), 0.1) == pytest.approx(
        apart
    )


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.1] * 7, [3.0]])
def test_differences_without_any_spread_say_nothing(values: list[float]) -> None:
    assert detectable_difference(values, target=0.1) == (None, None)


def test_the_smallest_difference_is_the_one_that_needs_as_many() -> None:
    values = np.random.default_rng(5).normal(size=200)
    least, _ = detectable_difference(values)
    assert least is not None
    assert detectable_difference(values, target=least * (1 + 1e-9))[1] == 200
