"""Kappa and alpha, by hand, by published examples, and where they are undefined."""

import math
from collections.abc import Callable

import numpy as np
import pytest

from mrs_metrics import agreement
from mrs_metrics.agreement import cohens_kappa, fleiss_kappa, krippendorff_alpha
from tests.mrs_metrics.modules import refused_calls

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


# Krippendorff 2011: the data of sections A, B and C, each row an observer; a point where one gave no value
TWO_VALUES = ("0100000010", "1110010000")
FIVE_VALUES = ("112243335441", "212223335444")
FOUR_OBSERVERS = ("123321412...", "1233224125.3", ".3332342251.", "12332441251.")


def by_item(observers: tuple[str, ...]) -> np.ndarray:
    return np.array([[math.nan if value == "." else float(value) for value in row] for row in observers]).T


def test_alpha_of_the_published_examples() -> None:
    assert krippendorff_alpha(by_item(TWO_VALUES)) == pytest.approx(0.095, abs=5e-4)
    assert krippendorff_alpha(by_item(FIVE_VALUES)) == pytest.approx(0.692, abs=5e-4)
    assert krippendorff_alpha(by_item(FOUR_OBSERVERS)) == pytest.approx(0.743, abs=5e-4)
    assert krippendorff_alpha(by_item(FOUR_OBSERVERS), ordinal=True) == pytest.approx(0.815, abs=5e-4)


def test_alpha_equals_nltk_with_gaps() -> None:
    task = pytest.importorskip("nltk.metrics.agreement", reason="needs nltk to compare with")
    generator = np.random.default_rng(3)
    for _ in range(20):
        grades = generator.integers(4, size=(12, 3)).astype(float)
        grades[generator.random(grades.shape) < 0.3] = math.nan
        rows = [(str(who), str(item), grade) for (item, who), grade in np.ndenumerate(grades) if grade == grade]
        assert krippendorff_alpha(grades) == pytest.approx(task.AnnotationTask(rows).alpha())


def test_ordinal_alpha_forgives_near_grades_and_needs_no_even_steps() -> None:
    near, far = [[1, 1], [2, 2], [3, 3], [1, 2]], [[1, 1], [2, 2], [3, 3], [1, 3]]
    assert (krippendorff_alpha(near, ordinal=True) or 0) > (krippendorff_alpha(far, ordinal=True) or 0)
    spread = [[10.0**grade for grade in row] for row in far]
    assert krippendorff_alpha(spread, ordinal=True) == krippendorff_alpha(far, ordinal=True)


def test_alpha_is_undefined_without_pairs_or_with_one_value() -> None:
    assert krippendorff_alpha([[1, math.nan], [math.nan, 2]]) is None
    assert krippendorff_alpha([[1, 1], [1, 1], [2, math.nan]], ordinal=True) is None
    assert krippendorff_alpha([[1], [2]]) is None


@pytest.mark.parametrize(("call", "sentence"), refused_calls(__file__, "test_what_are_no_judgements", agreement))
def test_what_are_no_judgements(call: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        call()
