"""Weights fitted on the clicks of simulated people, whose rule is known."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mrs_suggest import Suggester
from mrs_suggest.common.errors import InputError
from mrs_suggest.common.hub.baselines import read_baselines
from mrs_suggest.models.saved.record import read_record
from mrs_suggest.training.retrieval.click_tuning import (
    LEAST_CLICKS,
    choices_of,
    fit,
    gain,
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
            rows.append((f"id {len(rows)}", who, "m", "v1", code, None, "[1, 1, 1]", chosen, 0, None, told))
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


def test_only_choices_of_this_model_and_language_count() -> None:
    rows = people(300, OLD, WANTED, 5)
    count = len(choices_of(rows, "v1", ["en"], NAMES).chosen)
    assert 0 < count == sum(row[7] is not None for row in rows)
    assert not len(choices_of(rows, "v2", ["en"], NAMES).chosen)
    assert not len(choices_of(rows, "v1", ["de"], NAMES).chosen)


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
        rows.append((f"id {number}", None, "m", "v1", "en", None, "[1, 1, 1]", chosen, 0, None, told))
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
    rows = [(*row[:-1], row[-1].replace("direct", "nearest")) for row in people(1500, OLD, OLD, 7)]
    with pytest.raises(InputError, match="the clicks show no better weights: .*; nothing was written"):
        tune(model, "v1", rows, tmp_path / "out", overwrite=False)
    assert not (tmp_path / "out").exists()
