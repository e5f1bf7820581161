"""Figures of clicks, on clicks that follow a known rule."""

from __future__ import annotations

import random
from typing import Any

import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.evaluation.clicks import Click, clicks_of, compare, report


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
    assert everything["calibration_error"] == pytest.approx(abs(3 - 2.5) / 5)
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
