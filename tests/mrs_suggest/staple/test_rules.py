"""The rules on simulated hypotheses: honest scores, the expected order, and what is stored chooses the same rows."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.cli.main import main
from mrs_suggest.staple.filters.choice_scores import score_choice
from mrs_suggest.staple.filters.features import add_features
from mrs_suggest.staple.filters.filter import cross_fitted, load_filter, tune
from mrs_suggest.staple.hypotheses import Hypotheses, read_hypotheses, write_hypotheses
from mrs_suggest.staple.lists import Labels, Lists, left_out, lists_of, read_labels
from mrs_suggest.staple.pooling import pool
from mrs_suggest.staple.rules import RULES, trees
from mrs_suggest.staple.rules.base import Fitting
from mrs_suggest.staple.rules.simple import Threshold, Top, Votes
from mrs_suggest.staple.rules.soft_f1 import soft_weighted_f1
from tests.mrs_suggest.staple.simulated import accepted_translations, members, write_data

PROMPTS = 48


@dataclass(frozen=True)
class World:
    """Files of a simulated system: a split to tune on, and another one that filters meet for the first time."""

    folder: Path
    pooled: Path
    other: Path
    data: Path
    found: Hypotheses
    lists: Lists
    gold: Labels


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("rules")
    data = folder / "data"
    pools = []
    for name, seed in (("pooled", 1), ("other", 2)):
        accepted = accepted_translations(PROMPTS, seed)
        pools.append(add_features(pool([(folder, members(accepted, 2, seed, wrong=12, data=name))])))
        write_hypotheses(pools[-1], folder / f"{name}.parquet")
        if name == "pooled":
            write_data(accepted, data)
    lists = lists_of(pools[0])
    gold, _ = read_labels(pools[0], folder, str(data))
    return World(folder, folder / "pooled.parquet", folder / "other.parquet", data, pools[0], lists, gold)


@pytest.fixture(autouse=True)
def _few_trees() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(trees.SETTINGS, "max_iter", 25)
        patch.setattr("mrs_suggest.staple.rules.soft_f1.STEPS", 60)
        yield


@pytest.fixture(scope="module")
def filters(world: World) -> dict[str, Path]:
    """A folder for each rule, written by the command."""
    made = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(trees.SETTINGS, "max_iter", 25)
        patch.setattr("mrs_suggest.staple.rules.soft_f1.STEPS", 60)
        for rule in RULES:
            made[rule] = world.folder / f"filter-{rule}"
            arguments = ["staple", "tune", world.pooled, "--data", world.data, "--rule", rule, "--out", made[rule]]
            assert main([str(argument) for argument in [*arguments, "--folds", 2]]) == 0
    return made


def test_out_of_fold_scores_come_in_the_expected_order(filters: dict[str, Path]) -> None:
    raw = load_filter(filters["top"]).figures["raw n-best 10"]["weighted_f1"]
    scores = {rule: load_filter(folder).figures[rule]["weighted_f1"] for rule, folder in filters.items()}
    assert raw < scores["threshold"] < scores["expected-f1"]
    assert raw < scores["top"]
    assert raw < scores["soft-f1"]
    assert scores["threshold"] < scores["classifier"]


def test_every_filter_chooses_the_same_rows_in_a_fresh_process(world: World, filters: dict[str, Path]) -> None:
    expected = {}
    for rule, folder in filters.items():
        out = world.folder / f"here-{rule}.parquet"
        assert main(["staple", "filter", str(world.other), "--with", str(folder), "--out", str(out)]) == 0
        expected[rule] = read_hypotheses(out)
    code = (
        "import sys\nfrom mrs_suggest.cli.main import main\nfor rule in sys.argv[3:]:\n"
        "    path = f'{sys.argv[1]}/filter-{rule}'\n"
        "    main(['staple', 'filter', sys.argv[2], '--with', path, '--out', f'{sys.argv[1]}/there-{rule}.parquet'])\n"
        "print(sorted({'torch', 'sklearn', 'pickle5'} & set(sys.modules)))\n"
    )
    command = [sys.executable, "-c", code, str(world.folder), str(world.other), *filters]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=300)
    assert done.stdout.splitlines()[-1] == "[]"  # filtering needs neither
    for rule, kept in expected.items():
        assert read_hypotheses(world.folder / f"there-{rule}.parquet") == kept, rule
        assert 0 < len(kept.table) < len(read_hypotheses(world.other).table)
        assert kept.steps[-1].startswith(f"staple_filter|rule:{rule}|kept:{len(kept.table)}|")
        learned = rule in ("classifier", "soft-f1", "expected-f1")
        assert ("probability" in kept.features) == learned
        assert ("score" in kept.features) == (rule == "threshold")


def test_a_tune_is_the_same_each_time_and_the_figures_are_those_of_the_choice(
    world: World, filters: dict[str, Path]
) -> None:
    first = load_filter(filters["classifier"])
    second, _ = tune(world.found, world.pooled, str(world.data), "classifier", Fitting(), 2)
    assert first.figures == second.figures
    (_, arrays), (_, again) = first.rule.parts(), second.rule.parts()
    assert arrays.keys() == again.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, again[name])
    raw = score_choice(world.lists, world.gold, Top(10).choose(world.lists).kept)
    assert first.figures["raw n-best 10"]["weighted_f1"] == pytest.approx(raw.weighted_f1.mean())


class _Watch(Top):
    """Records which prompts it was fitted on."""

    inside: frozenset[int]

    @classmethod
    def fit(cls, lists: Lists, gold: Labels, fitting: Fitting) -> _Watch:
        made = cls(1)
        object.__setattr__(made, "inside", frozenset(lists.features["number"].astype(int).tolist()))
        return made

    def choose(self, lists: Lists):  # type: ignore[no-untyped-def]
        assert not self.inside & set(lists.features["number"].astype(int).tolist())
        return super().choose(lists)


def test_no_prompt_is_scored_by_what_was_fitted_on_it(world: World) -> None:
    lists = Lists(world.lists.starts, {**world.lists.features, "number": world.lists.prompt.astype(float)})
    kept = cross_fitted(_Watch, lists, world.gold, Fitting())
    np.testing.assert_array_equal(kept, Top(1).choose(lists).kept)  # each prompt once

    def inside(some: Lists, gold: Labels) -> set[float]:
        return set(some.features["number"].tolist())

    def disjoint(fitted: set[float], some: Lists) -> np.ndarray:
        assert not fitted & set(some.features["number"].tolist())
        return some.features["number"]

    np.testing.assert_array_equal(left_out(lists, world.gold, inside, disjoint, 0), lists.features["number"])


def test_trees_predict_what_scikit_learn_predicts() -> None:
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    random = np.random.default_rng(0)
    x = random.normal(size=(400, 4))
    x[random.random(x.shape) < 0.2] = np.nan
    x[:, 3] = np.round(x[:, 3])
    accepted = np.nan_to_num(x[:, 0]) + np.isnan(x[:, 1]) + random.normal(size=400) > 0.3
    new = np.where(random.random((300, 4)) < 0.2, np.nan, random.normal(size=(300, 4)) * 2)
    classifier = HistGradientBoostingClassifier(**trees.SETTINGS).fit(x, accepted)
    ours = trees.logistic(trees.tree_sums(trees.trees_of(classifier), new))
    np.testing.assert_allclose(ours, classifier.predict_proba(new)[:, 1], rtol=0, atol=1e-12)
    regressor = HistGradientBoostingRegressor(loss="poisson", **trees.SETTINGS).fit(x, random.random(400))
    np.testing.assert_allclose(
        np.exp(trees.tree_sums(trees.trees_of(regressor), new)), regressor.predict(new), rtol=1e-12
    )


def test_soft_f1_of_certain_choices_is_the_metric(world: World) -> None:
    import torch

    kept = np.random.default_rng(1).random(world.lists.size) < 0.4
    columns = [kept.astype(float), world.gold.accepted.astype(float), world.gold.share]
    soft = soft_weighted_f1(*map(torch.tensor, columns), torch.tensor(world.lists.prompt), PROMPTS)
    exact = score_choice(world.lists, world.gold, kept).weighted_f1
    np.testing.assert_allclose(soft.numpy(), exact, atol=1e-9)


def test_votes_and_thresholds_always_leave_a_translation() -> None:
    lists = Lists(
        np.array([0, 3, 4]),
        {
            "rank": np.array([1.0, 2.0, 3.0, 1.0]),
            "votes": np.array([1.0, 2.0, 2.0, 1.0]),
            "log_prob_per_token": np.array([-1.0, -0.5, np.nan, np.nan]),
        },
    )
    assert Votes(2).choose(lists).kept.tolist() == [False, True, True, True]
    assert Votes(2, 1).choose(lists).kept.tolist() == [False, True, False, True]
    assert Threshold(-0.7).choose(lists).kept.tolist() == [False, True, False, True]
    assert Threshold(None).choose(lists).kept.tolist() == [False, True, False, True]
    assert Threshold(-0.5, relative=True).choose(lists).kept.tolist() == [True, True, False, True]
    assert Top(1, "votes").choose(lists).kept.tolist() == [False, True, False, True]
