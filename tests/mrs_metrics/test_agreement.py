"""Kappa, by hand and where it is undefined."""

from __future__ import annotations

import pytest

from mrs_metrics.agreement import cohens_kappa, fleiss_kappa

pytest.importorskip("statsmodels", reason="needs statsmodels, of the extra [analysis]")


def test_cohens_kappa_by_hand() -> None:
    """Cohen 1960: observed .7; by chance .5 * .6 + .5 * .4 = .5, so (.7 - .5) / .5."""
    first = [0] * 5 + [1] * 5
    second = [0] * 4 + [1] + [0] * 2 + [1] * 3
    assert cohens_kappa(first, second, 2) == pytest.approx(0.4)
    assert cohens_kappa(first, second, 3) == pytest.approx(0.4), "a category that nobody chose changes nothing"


def test_fleiss_kappa_by_hand() -> None:
    """Fleiss 1971: agreement per item 1, 1/3; shares 4/6, 2/6."""
    assert fleiss_kappa([[3, 0], [1, 2]]) == pytest.approx((2 / 3 - 5 / 9) / (4 / 9))


def test_the_same_judgement_everywhere_is_undefined() -> None:
    assert cohens_kappa([1, 1], [1, 1], 3) is None
    assert fleiss_kappa([[2, 0], [2, 0]]) is None


@pytest.mark.parametrize(("first", "second"), [([], []), ([0], [0, 1]), ([0], [3]), ([-1], [0])])
def test_what_are_no_two_lists(first: list[int], second: list[int]) -> None:
    with pytest.raises(ValueError, match="equally long lists"):
        cohens_kappa(first, second, 3)


@pytest.mark.parametrize("counts", [[], [[1, 0]], [[2, 0], [3, 0]], [1, 2]])
def test_what_is_no_table(counts: list[object]) -> None:
    with pytest.raises(ValueError, match="needs a table"):
        fleiss_kappa(counts)
