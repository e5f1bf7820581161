"""Figures of clicks, on clicks that follow a known rule."""

import random
from typing import Any

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.clicks import Click, calibration_error, clicks_of, compare, report


def row(
    number: int, session: str | None, chosen: int | None, edited: int | None = 0, typed: int | None = None
) -> tuple[Any, ...]:
    return (f"id{number}", session, "m", "v1", "en", 0.5, "[10, 20, 30]", chosen, edited, typed)


def simulated(model: str, rate: float, sessions: int, seed: int) -> list[Click]:
    """Sessions of one to five answers, whose people choose suggestions with a probability of their own."""
    rng = random.Random(seed)
    found = []
    for session in range(sessions):
        own = rng.betavariate(4 * rate, 4 * (1 - rate))
        for _ in range(rng.randint(1, 5)):
            chosen = int(rng.random() < own)
            found.append(Click(f"{model} {session}", model, "", "en", own, 1, chosen, chosen, 10 * chosen))
    return found


def test_figures_by_hand() -> None:
    rows = [row(1, "a", 1), row(2, "a", None, None), row(3, "b", 2, 1, 5), row(4, None, 3, 1), row(5, None, None)]
    everything, english = report(clicks_of([*rows, (*row(6, "c", None)[:4], "en", None, "[]", None, None, None)]))
    assert (everything["language"], english["language"]) == ("all", "en")
    assert (everything["answers"], everything["sessions"]) == (6, 5)
    means = {name: everything[name]["mean"] for name in ("covered", "first", "accepted", "saved")}
    assert means == pytest.approx({"covered": 5 / 6, "first": 1 / 6, "accepted": 3 / 6, "saved": (10 + 15) / 6})
    error = everything["calibration_error"]
    assert error["mean"] == pytest.approx(abs(3 - 2.5) / 5)
    assert error["interval"][0] <= error["mean"] <= error["interval"][1]
    assert english["calibration_error"] == error, "the answer without a probability does not count"
    assert report(clicks_of([row(1, "a", None), row(2, "b", None)]))[0]["saved"]["interval"] is None, "no share"
    for figure in (everything[name] for name in means):
        assert figure["interval"][0] <= figure["mean"] <= figure["interval"][1]


def test_the_better_of_two_models_is_found_and_equal_ones_are_not() -> None:
    old = simulated("old", 0.30, 400, 1)
    better = compare([*old, *simulated("new", 0.42, 400, 2)], "new", "old")
    assert better["p"] < 0.01
    assert 0 < better["interval"][0] < 0.12 < better["interval"][1]
    found = [compare([*old, *simulated("new", 0.30, 400, seed)], "new", "old")["p"] < 0.05 for seed in range(10, 110)]
    assert sum(found) <= 20  # as `old` is one draw, its own luck is in all of them


def test_rejections_without_a_difference() -> None:
    """By session; by answer, .15 of them would be."""
    found = [
        compare([*simulated("a", 0.3, 100, seed), *simulated("b", 0.3, 100, 10_000 + seed)], "a", "b")["p"] < 0.05
        for seed in range(400)
    ]
    assert 0.03 <= sum(found) / len(found) <= 0.07


def looked_at_daily(a: list[Click], b: list[Click], sequential: bool) -> bool:
    """Whether one of 20 looks at an experiment, each at more of it, finds a difference."""
    clicks = [*a, *b]
    parts = ([click for click in clicks if int(click.unit.split()[1]) < 30 * look] for look in range(1, 21))
    return any(compare(part, "a", "b", sequential)["p"] < 0.05 for part in parts)


def test_looking_every_day() -> None:
    """Equal models: the usual test finds a difference too often, the sequential one does not."""
    pairs = [(simulated("a", 0.3, 600, seed), simulated("b", 0.3, 600, 10_000 + seed)) for seed in range(60)]
    usual, sequential = (sum(looked_at_daily(*pair, how) for pair in pairs) / len(pairs) for how in (False, True))
    assert usual >= 0.15
    assert sequential <= 0.05
    assert looked_at_daily(simulated("a", 0.42, 600, 1), simulated("b", 0.30, 600, 2), True)
    long, short = (
        compare([*pairs[0][0], *pairs[0][1]], "a", "b", sequential)["interval"] for sequential in (True, False)
    )
    assert long[0] < short[0] < short[1] < long[1], "the price is a longer interval"


def test_too_few_sessions_are_refused() -> None:
    clicks = [*simulated("a", 0.3, 100, 1), *simulated("b", 0.3, 29, 2)]
    with pytest.raises(InputError, match="b: 29 sessions, expected 30 or more; the file has answers of a b"):
        compare(clicks, "a", "b")
    with pytest.raises(InputError, match="c: 0 sessions"):
        compare(clicks, "a", "c")


def test_the_calibration_error_and_its_interval_by_session() -> None:
    assert calibration_error([0.25] * 8, [1, 1, 0, 0, 0, 0, 0, 0])[0] == 0
    assert calibration_error([1.0, 0.0], [1, 0])[0] == 0
    error, interval = calibration_error([1.0, 0.0], [0, 1])
    assert (error, interval.ends) == (1, None)
    # All answers of a session have one outcome: answers drawn alone would give half as long an interval.
    rng = random.Random(1)
    used, accepted, units = list[float](), list[int](), list[str]()
    for session in range(200):
        outcome = int(rng.random() < 0.7)
        for _ in range(4):
            used.append(0.45)
            accepted.append(outcome)
            units.append(str(session))
    (error, by_session), (same, by_answer) = (calibration_error(used, accepted, one) for one in (units, None))
    assert error == same == pytest.approx(0.25, abs=0.08)
    assert by_session[0] < error < by_session[1]
    assert 1.7 < (by_session[1] - by_session[0]) / (by_answer[1] - by_answer[0]) < 2.3


def test_only_suggestions_that_were_shown_count() -> None:
    def told(shown: str | None, chosen: int | None) -> Click:
        (click,) = clicks_of([(*row(1, "a", chosen), "[]", shown, '[["yes"], ["no"], ["no", "ask"]]')])
        return click

    assert [told(None, 1).first, told("[3, 1]", 1).first, told("[3, 1]", 3).first] == [1, 0, 1]
    assert (told("[]", None).covered, told("[]", None).by_tag) == (0, {})
    assert set(told("[1, 2]", None).by_tag) == {"yes", "no"}
    by_tag = told(None, 3).by_tag
    assert {tag: (one.accepted, one.saved) for tag, one in by_tag.items()} == {
        "ask": (1, 30),
        "no": (1, 30),
        "yes": (0, 0),
    }
    found = report([told(None, 3), told("[1, 2]", 2), told("[1]", 1)])
    tags = {one["tag"]: (one["answers"], one["accepted"]["mean"]) for one in found if one["language"] == "all"}
    assert tags == {"": (3, 1.0), "ask": (1, 1.0), "no": (2, 1.0), "yes": (3, pytest.approx(1 / 3))}
