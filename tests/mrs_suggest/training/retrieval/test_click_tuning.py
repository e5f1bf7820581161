"""Weights fitted on the clicks of simulated people, whose rule is known."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrs_suggest import Suggester
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.suggest.ranking.trigger import Trigger
from mrs_suggest.training.retrieval.click_tuning import (
    LEAST_CLICKS,
    Choices,
    calibrate,
    calibrated,
    calibration_gain,
    choices_of,
    fit,
    gain,
    log_likelihood,
    outcomes_of,
    tune,
    tuned_weights,
)  # fmt: skip

NAMES = ["direct", "votes"]
BY_PLACE = np.array([0.0, -0.5, -0.9])  # people look at the first suggestion more often
OLD, WANTED = np.array([0.2, 0.8]), np.array([0.8, 0.2])


def people(count: int, shown_by: np.ndarray, wanted: np.ndarray, seed: int, code: str = "en") -> list[tuple[Any, ...]]:
    """Answers to `count` messages, in sessions of one to five: of 40 replies, the best three by the weights `shown_by`
    are shown; people choose by the weights `wanted` and by place, or write something else."""
    rng = np.random.default_rng(seed)
    rows, session = list[tuple[Any, ...]](), 0
    while len(rows) < count:
        session += 1
        for _ in range(rng.integers(1, 6)):
            parts = rng.normal(size=(40, 2))
            best = np.argsort(-parts @ shown_by)[:3]
            utility = np.append(3 * parts[best] @ wanted + BY_PLACE, 2.0)  # the last one: writing
            likely = np.exp(utility - utility.max())
            picked = int(rng.choice(4, p=likely / likely.sum()))
            told = json.dumps([dict(zip(NAMES, (parts[one] * shown_by).tolist(), strict=True)) for one in best])
            chosen = None if picked == 3 else picked + 1
            who = f"session {session}"
            rows.append((f"id {len(rows)}", who, "m", "v1", code, None, "[1, 1, 1]", chosen, 0, None, told, None))
    return rows[:count]


def accepted(rows: list[tuple[Any, ...]]) -> float:
    return float(np.mean([row[7] is not None for row in rows]))


def test_the_rule_by_which_people_choose_is_recovered_and_they_choose_more() -> None:
    choices = choices_of(people(6000, OLD, WANTED, 1), "v1", ["en"], NAMES)
    theta, places = fit(choices)
    np.testing.assert_allclose(theta * OLD, 3 * WANTED, rtol=0.15, err_msg="the weights of their rule")
    np.testing.assert_allclose(places, BY_PLACE, atol=0.15)
    mean, interval = gain(choices)
    assert interval.ends is not None
    assert 0 < interval.ends[0] < mean
    new = tuned_weights(dict(zip(NAMES, OLD, strict=True)), dict(zip(NAMES, theta, strict=True)))
    assert sum(new.values()) == pytest.approx(1)
    before = accepted(people(3000, OLD, WANTED, 2))
    after = accepted(people(3000, np.array([new[name] for name in NAMES]), WANTED, 3))
    assert after > before + 0.05


def test_weights_that_are_right_already_are_seldom_changed() -> None:
    gains = [gain(choices_of(people(600, OLD, OLD, seed), "v1", ["en"], NAMES))[1] for seed in range(40)]
    assert sum(one.ends is not None and one.ends[0] > 0 for one in gains) <= 4


def weighted_by_propensity(choices: Choices, propensities: np.ndarray) -> np.ndarray:
    """Theta of a choice without terms of places, whose clicks are weighted by 1 / propensity of their place."""
    from scipy.optimize import minimize

    weights = 1 / propensities[choices.chosen]

    def loss(theta: np.ndarray) -> float:
        return float(-(weights * log_likelihood(choices, theta, np.zeros(choices.parts.shape[1]))[0]).sum())

    return np.asarray(minimize(loss, np.ones(2), method="L-BFGS-B", bounds=[(0, None)] * 2).x)


def test_propensities_from_the_same_clicks_add_nothing_to_the_terms_of_places() -> None:
    """Distances of the first part's share from people's, in ten simulations."""

    def off(theta: np.ndarray) -> float:
        return float(abs((OLD * theta / (OLD @ theta))[0] - WANTED[0]))

    terms, weighted, ignored = [], [], []
    for seed in range(10):
        choices = choices_of(people(2000, OLD, WANTED, 100 + seed), "v1", ["en"], NAMES)
        theta, places = fit(choices)
        terms.append(off(theta))
        weighted.append(off(weighted_by_propensity(choices, np.exp(places - places.max()))))
        ignored.append(off(weighted_by_propensity(choices, np.ones(3))))
    assert np.mean(terms) < 1.2 * np.mean(weighted)
    assert np.mean(terms) < 0.5 * np.mean(ignored), "without either, the place is taken for a taste"


def test_choices_are_among_the_suggestions_that_were_shown() -> None:
    rows = people(300, OLD, WANTED, 8)
    only = [(*row[:11], "[3, 1]") if row[7] in (1, 3) else row for row in rows]
    choices = choices_of(only, "v1", ["en"], NAMES)
    told = [row for row in only if row[7] is not None]
    for number, row in enumerate(told):
        parts = json.loads(row[10])
        if row[11]:
            assert [list(one.values()) for one in (parts[2], parts[0])] == choices.parts[number, :2].tolist()
            assert np.isnan(choices.parts[number, 2]).all()
            assert choices.chosen[number] == (0 if row[7] == 3 else 1)
        else:
            assert choices.chosen[number] == row[7] - 1
    assert len(choices_of([(*row[:11], "[1]") for row in rows if row[7] == 1], "v1", ["en"], NAMES).chosen) == 0
    # Only choices of this model and language count.
    rows = people(300, OLD, WANTED, 5)
    count = len(choices_of(rows, "v1", ["en"], NAMES).chosen)
    assert 0 < count == sum(row[7] is not None for row in rows)
    assert not len(choices_of(rows, "v2", ["en"], NAMES).chosen)
    assert not len(choices_of(rows, "v1", ["de"], NAMES).chosen)


def overconfident(count: int, seed: int, offset: float = -1.0, slope: float = 0.5) -> list[tuple[Any, ...]]:
    """Answers whose suggestions are chosen less often than the model says, by a known rule."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        odds = rng.normal(0.5, 1.5)
        used, real = (float(1 / (1 + np.exp(-one))) for one in (odds, offset + slope * odds))
        chosen = int(rng.integers(1, 3)) if rng.random() < real else None
        parts = json.dumps([{"nearest": part} for part in rng.normal(size=2)])
        rows.append((f"id {number}", f"s {number // 3}", "m", "v1", "en", used, "[1, 1]", chosen, 0, None, parts, None))
    return rows


def test_the_probability_of_use_is_refitted_to_what_people_choose() -> None:
    rows = overconfident(4000, 9)
    hidden = [(*rows[0][:11], "[]"), (*rows[1][:5], None, *rows[1][6:]), (*rows[2][:6], "[]", *rows[2][7:])]
    used, chosen, sessions = outcomes_of([*rows, *hidden], "v1", ["en"])
    assert len(used) == 4000, "answers that showed nothing, or had no probability, do not count"
    offset, slope = calibrate(used, chosen)
    assert (offset, slope) == pytest.approx((-1.0, 0.5), abs=0.12)
    lower, interval = calibration_gain(used, chosen, sessions)
    assert 0 < interval[0] < lower < interval[1]
    right = [calibration_gain(*outcomes_of(overconfident(900, seed, 0.0, 1.0), "v1", ["en"]))[1] for seed in range(40)]
    assert sum(one[0] > 0 for one in right) <= 4, "a probability that is right is seldom changed"

    trigger = Trigger((1.0, 0.0, 0.0), 0.0, (-2.0, 2.0), (0.12, 0.88), curve=((0.7, 0.5, 0.8), (0.2, 1.0, 0.5)))
    new = calibrated(trigger, offset, slope)
    assert Trigger.from_json(new.as_json()) == new
    assert new.probabilities == pytest.approx((0.12, 0.52), abs=0.05)
    (high, half, reached), (low, everything, mean) = new.curve
    assert (half, everything) == (0.5, 1.0)
    assert low < high < 0.7
    assert mean < reached < 0.8
    np.testing.assert_allclose(calibrated(trigger, 0.0, 1.0).curve, trigger.curve)
    assert calibrated(Trigger((1.0, 0.0, 0.0), 0.0, (0.0,), (0.5,)), 1.0, 1.0).curve == ()


def test_a_copy_with_another_probability_keeps_its_weights(tmp_path: Path) -> None:
    model = read_baselines()["everyday-retriever"].folder
    out = tmp_path / "out"
    found = tune(model, "v1", overconfident(2500, 10), out, overwrite=False)
    assert "theta" not in found
    assert found["trigger"]["offset"] == pytest.approx(-1.0, abs=0.2)
    before, after = (json.loads((path / "ranker" / "ranker.json").read_text()) for path in (model, out))
    assert after["weights"] == before["weights"]
    assert max(after["trigger"]["probabilities"]) < max(before["trigger"]["probabilities"])
    assert "probability that a suggestion is used" in (out / "README.md").read_text(encoding="utf-8")
    message = "Shall we meet at the station at eight?"
    new, old = (Suggester.from_pretrained(path, precision=0.01).suggest(message, "en").used for path in (out, model))
    assert new is not None
    assert old is not None
    assert new < old


def test_slopes_are_those_of_the_likelihood() -> None:
    rows = people(50, OLD, WANTED, 4)
    rows[3] = (*rows[3][:10], json.dumps(json.loads(rows[3][10])[:2]), None)  # an answer of two suggestions
    choices = choices_of([row for row in rows if row[7] != 3], "v1", ["en"], NAMES)
    theta, places = np.array([0.7, 1.3]), np.array([0.0, 0.2, -0.1])
    _, by_theta, by_place = log_likelihood(choices, theta, places)

    def rise(theta_step: Any, place_step: Any) -> float:
        up = log_likelihood(choices, theta + theta_step, places + place_step)[0].sum()
        return float(up - log_likelihood(choices, theta - theta_step, places - place_step)[0].sum()) / 2e-6

    for slopes, number, step in [(by_theta, 0, (1e-6, 0)), (by_theta, 1, (0, 1e-6))]:
        assert slopes[number] == pytest.approx(rise(np.array(step), 0.0), rel=1e-4)
    assert by_place[2] == pytest.approx(rise(0.0, np.array([0, 0, 1e-6])), rel=1e-4)


def test_a_tuned_copy_answers_with_other_weights_and_says_so(tmp_path: Path) -> None:
    model = read_baselines()["everyday-retriever"].folder
    out = tmp_path / "tuned"
    weights = json.loads((model / "ranker" / "ranker.json").read_text())["weights"]["en"]
    names = sorted(name for name, weight in weights.items() if weight)
    if len(names) < 2:
        pytest.skip("the model ranks by one part")
    rng = np.random.default_rng(6)
    rows = []
    for number in range(2000):  # people who look at the first of two parts only
        parts = rng.normal(size=(3, len(names)))
        told = json.dumps([dict(zip(names, row, strict=True)) for row in parts.tolist()])
        chosen = int(np.argmax(3 * parts[:, 0] + rng.gumbel(size=3))) + 1
        rows.append((f"id {number}", None, "m", "v1", "en", None, "[1, 1, 1]", chosen, 0, None, told, None))
    found = tune(model, "v1", rows, out, overwrite=False)
    assert found["theta"][names[0]] > 5 * found["theta"][names[1]]
    assert read_record(out)["clicks"] == found
    assert "`mrs feedback tune`" in (out / "README.md").read_text(encoding="utf-8")
    message = "Shall we meet at the station at eight?"
    new, old = (Suggester.from_pretrained(path, verify=True).model for path in (out, model))
    (first,), (second,) = new.suggest([message], "en"), old.suggest([message], "en")
    assert [one.parts for one in first] != [one.parts for one in second]
    with pytest.raises(InputError, match=f"3 clicks on its answers .version v1., expected {LEAST_CLICKS} or more"):
        tune(model, "v1", rows[:3], tmp_path / "few", overwrite=False)
    assert not (tmp_path / "few").exists()


def test_clicks_that_show_nothing_better_change_nothing(tmp_path: Path) -> None:
    model = read_baselines()["everyday-retriever"].folder
    rows = [(*row[:10], row[10].replace("direct", "nearest"), None) for row in people(1500, OLD, OLD, 7)]
    with pytest.raises(InputError, match="the clicks show no better weights: .*; nothing was written"):
        tune(model, "v1", rows, tmp_path / "out", overwrite=False)
    assert not (tmp_path / "out").exists()
