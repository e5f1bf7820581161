"""The probability that a suggestion is used, and what a threshold costs."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mrs_suggest.suggest.ranking.trigger import Trigger, choose_threshold, risk_coverage

CURVE = ((0.9, 0.1, 0.8), (0.5, 0.4, 0.7), (0.4, 0.6, 0.75), (0.1, 1.0, 0.4))
TRIGGER = Trigger((2.0, -1.0, 0.5), -0.25, (-1.0, 0.0, 2.0), (0.1, 0.1, 0.9), curve=CURVE)


def test_a_precision_that_cannot_be_kept_is_refused() -> None:
    with pytest.raises(ValueError, match="the model has no calibration; train it with --ranker true"):
        choose_threshold(None, 0.5)
    for precision in (0.0, -1.0, 1.1, float("nan")):
        with pytest.raises(ValueError, match="expected a share of more than 0 and at most 1"):
            choose_threshold(TRIGGER, precision)


def test_a_trigger_is_read_as_it_was_written() -> None:
    facts = json.loads(json.dumps(TRIGGER.as_json()))
    assert Trigger.from_json(facts) == TRIGGER
    for name, value in (("levels", [0.0, -1.0, 2.0]), ("probabilities", [0.1, 0.9]), ("features", ["other"])):
        with pytest.raises(ValueError, match="trigger"):
            Trigger.from_json({**facts, name: value})


@given(st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.25, 0.7, 0.9]), st.booleans()), min_size=1, max_size=60))
def test_each_point_of_the_curve_is_what_its_threshold_does(examples: list[tuple[float, bool]]) -> None:
    chances, used = (np.array(column) for column in zip(*examples, strict=True))
    curve = risk_coverage(chances, used)
    for threshold, coverage, precision in curve:
        answered = chances >= threshold
        assert coverage == pytest.approx(answered.mean())
        assert precision == pytest.approx(used[answered].mean())
    assert [at for at, _, _ in curve] == sorted({at for at, _, _ in curve}, reverse=True)
    assert curve[-1][1] == 1
    assert risk_coverage([], []) == []
