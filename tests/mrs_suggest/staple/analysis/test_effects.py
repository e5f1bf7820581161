"""Mixed-effects analysis: the fit is statsmodels', intervals hold what they promise, designs are checked."""

import json
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from mrs_suggest.common.errors import InputError
from mrs_suggest.staple.analysis.effects import INTERCEPT, TEAMS, analyse_effects, read_features, read_scores
from mrs_suggest.staple.analysis.mixed_model import fit_mixed
from tests.cases import cases
from tests.command import Result, refused

TRACKS = {
    "jbrem": "hu ja ko pt vi", "sweagraw": "hu ja ko pt vi", "jindra.helcl": "hu ja ko pt vi", "rakchada": "hu pt",
    "nickeilf": "pt", "jspak3": "ko", "masahiro": "ja", "mzy": "ja", "dcu": "pt", "darkside": "ja", "nagoudi": "pt",
}  # fmt: skip
TABLE_6 = ["transformer", "lrf_weights", "pretrain_finetune"]
TRUE = {INTERCEPT: 0.22, "transformer": 0.1, "lrf_weights": 0.1, "pretrain_finetune": 0.0}
PROMPTS, TRACK, TEAM, REST = 0.17, 0.1, 0.05, 0.2  # standard deviations, as in Table 6


def simulated(seed: int, prompts: int, table: pd.DataFrame, team: float = TEAM) -> pd.DataFrame:
    """Scores of the task's teams in their tracks, with the effects of `TRUE`."""
    random = np.random.default_rng(seed)
    tracks = {track: random.normal(0, TRACK) for track in ["hu", "ja", "ko", "pt", "vi"]}
    drawn = {track: random.normal(0, PROMPTS, prompts) for track in tracks}
    features, found = table.set_index("system"), []
    for system, own in TRACKS.items():
        mean = TRUE[INTERCEPT] + sum(TRUE[name] * features.loc[system, name] for name in TABLE_6)
        mean += random.normal(0, team)
        for track in own.split():
            values = mean + tracks[track] + drawn[track] + random.normal(0, REST, prompts)
            ids = [f"{track}{i}" for i in range(prompts)]
            found.append(pd.DataFrame({"system": system, "track": track, "prompt": ids, "weighted_f1": values}))
    return pd.concat(found, ignore_index=True)


@pytest.fixture(scope="module")
def teams() -> pd.DataFrame:
    return read_features(TEAMS)


def test_the_fit_is_that_of_statsmodels(teams: pd.DataFrame) -> None:
    api = pytest.importorskip("statsmodels.api", reason="needs statsmodels, of the extra [analysis]")
    from statsmodels.regression.mixed_linear_model import VCSpec

    scores = simulated(3, 6, teams).merge(teams, on="system")
    y, x = scores["weighted_f1"].to_numpy(), scores.assign(one=1.0)[["one", *TABLE_6]].to_numpy(float)
    factors = {name: pd.factorize(scores[name])[0] for name in ("prompt", "track", "team")}
    ours = fit_mixed(y, x, factors)
    one_group = {name: [np.eye(levels.max() + 1)[levels]] for name, levels in factors.items()}
    columns = {name: [[f"{name}{i}" for i in range(values[0].shape[1])]] for name, values in one_group.items()}
    components = VCSpec(list(factors), [columns[name] for name in factors], [one_group[name] for name in factors])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = api.MixedLM(y, x, np.zeros(len(y)), exog_re=None, exog_vc=components)
        theirs = model.fit(reml=True)
    assert ours.criterion == pytest.approx(-2 * theirs.llf, abs=1e-3)
    assert ours.estimates == pytest.approx(theirs.fe_params, abs=1e-3)
    assert ours.errors == pytest.approx(theirs.bse_fe, rel=0.05)  # theirs come from a numerical Hessian
    deviations = dict(zip(model.exog_vc.names, np.sqrt(theirs.vcomp), strict=True))
    assert ours.deviations == pytest.approx(deviations, abs=3e-3)
    assert ours.residual == pytest.approx(np.sqrt(theirs.scale), abs=1e-3)


def test_intervals_hold_the_true_effects_as_often_as_they_say(teams: pd.DataFrame) -> None:
    """Over seeds; of the normal distribution the share would be 90 % or less with eleven teams."""
    runs = 40
    held = dict.fromkeys(TRUE, 0)
    found: dict[str, list[float]] = {name: [] for name in TRUE}
    for seed in range(runs):
        (model,) = analyse_effects(simulated(seed, 8, teams), teams, TABLE_6).models.values()
        for name, term in model.fixed.items():
            held[name] += term.interval[0] <= TRUE[name] <= term.interval[1]
            found[name].append(term.estimate)
    total = sum(held.values()) / (runs * len(held))
    assert 0.92 <= total <= 0.98, held
    for name, estimates in found.items():
        error = np.std(estimates) / np.sqrt(runs)
        assert abs(np.mean(estimates) - TRUE[name]) < 3.5 * error, f"{name} is biased"


def table(**rows: tuple[float, ...]) -> pd.DataFrame:
    """Features x, y, z of systems, each a team."""
    width = len(next(iter(rows.values())))
    found = pd.DataFrame(rows.values(), columns=list("xyz")[:width])
    return found.assign(system=list(rows), team=list(rows))


def small(systems: int = 4, prompts: int = 5) -> pd.DataFrame:
    random = np.random.default_rng(0)
    rows = [(system, "pt", f"p{place}", random.random()) for system in "abcdefgh"[:systems] for place in range(prompts)]
    return pd.DataFrame(rows, columns=["system", "track", "prompt", "weighted_f1"])


X = table(a=(0,), b=(0,), c=(1,), d=(1,))


def test_a_singular_fit_is_told() -> None:
    flat = small().assign(weighted_f1=lambda scores: 0.5 + scores["prompt"].str[1:].astype(int) % 3 / 10)
    effects = analyse_effects(flat, X)
    assert "a singular fit" in " ".join(effects.notes)
    assert "There is one track" in " ".join(effects.notes)
    assert "track" not in effects.models["weighted_f1"].random


REFUSED = {
    "all have it": (small(), table(a=(1, 0), b=(1, 1), c=(1, 0), d=(1, 1)), "all systems have x"),
    "none has it": (small(), table(a=(0, 0), b=(0, 1), c=(0, 0), d=(0, 1)), "no system has x"),
    "equal": (small(), table(a=(1, 1), b=(0, 0), c=(1, 1), d=(0, 0)), "y follows from x"),
    "sum": (small(), table(a=(1, 0, 1), b=(0, 1, 1), c=(0, 0, 0), d=(1, 1, 2)), "z follows from x, y"),
    "few teams": (small(3), table(a=(1, 0), b=(0, 1), c=(1, 1)), "3 teams are too few for 2 features; expected 4"),
    "no scores": (small(), table(a=(1,), b=(0,), c=(1,), d=(0,), e=(0,)), "scores are missing for e"),
    "others": (small(), table(v=(1,), w=(0,)), "none of the scored systems is in the table"),
    "prompts": (small().assign(prompt=[str(n) for n in range(20)]), X, "no prompt has scores of two systems"),
    "equal scores": (small().assign(weighted_f1=0.5), X, "all have the same weighted_f1"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_told_apart_is_one_sentence(kind: str) -> None:
    scores, features, sentence = REFUSED[kind]
    with pytest.raises(InputError, match=sentence):
        analyse_effects(scores, features)
    with pytest.raises(InputError, match="has no feature 'w'; it has x"):
        analyse_effects(small(), X, ["w"])


def test_a_feature_that_changes_between_tracks_has_more_degrees_of_freedom() -> None:
    scores = pd.concat([small(4, 6).assign(track=track, prompt=lambda s, t=track: t + s["prompt"]) for track in "st"])
    rows = [(system, track, system, float(system in "ab"), float(track == "s" and system in "ac"))
            for system in "abcd" for track in "st"]  # fmt: skip
    by_track = pd.DataFrame(rows, columns=["system", "track", "team", "x", "y"])
    (model,) = analyse_effects(scores, by_track).models.values()
    assert {name: term.degrees_of_freedom for name, term in model.fixed.items()} == {INTERCEPT: 2, "x": 2, "y": 2}


WRONG = cases(__file__, "WRONG")
FEATURES = WRONG["no scores file"][2]


@pytest.fixture
def report(tmp_path: Path) -> Path:
    """Return the scores of four systems as a report has them."""
    random = np.random.default_rng(1)
    prompts = [f"p{n}" for n in range(6)]
    kinds = ("precision", "weighted_recall", "weighted_f1")
    systems = {name: {kind: random.random(6).tolist() for kind in kinds} for name in ("a", "b", "c", "d", "reference")}
    path = tmp_path / "report.json"
    path.write_text(json.dumps({"scores": {"track": "pt", "prompts": prompts, "systems": systems}}))
    return path


def test_a_report_goes_in_and_two_files_come_out(report: Path, tmp_path: Path, staple: Callable[..., Result]) -> None:
    (tmp_path / "features.csv").write_text(FEATURES)
    words = ["effects", report, "--features", tmp_path / "features.csv", "--out", tmp_path / "out"]
    code, printed, _ = staple(*words)
    assert code == 0
    assert "Left out, as the table of features has no row: reference." in printed
    content = json.loads((tmp_path / "out" / "effects.json").read_text())
    assert list(content["models"]) == ["precision", "weighted_recall", "weighted_f1"]
    assert content["counts"] == {"scores": 24, "systems": 4, "teams": 4, "tracks": 1, "prompts": 6}
    found = content["models"]["weighted_f1"]["fixed"]["x"]
    scores = json.loads(report.read_text())["scores"]["systems"]
    means = {name: np.mean(scores[name]["weighted_f1"]) for name in "abcd"}
    assert found["estimate"] == pytest.approx((means["a"] + means["c"] - means["b"] - means["d"]) / 2)
    assert f"{found['estimate']:+.3f}" in (tmp_path / "out" / "effects.md").read_text()
    assert "exists already" in refused(staple(*words))


def test_csv_and_saved_scores_give_what_the_report_gives(report: Path, tmp_path: Path) -> None:
    scores = read_scores([report])
    scores.to_csv(tmp_path / "scores.csv", index=False)
    pd.testing.assert_frame_equal(read_scores([report, tmp_path / "scores.csv"]), scores, check_exact=True)
    saved = {"metric": "weighted_f1", "system": "runs/a.txt", "examples": "f" * 64, "scores": [0.5, None]}
    (tmp_path / "a.json").write_text(json.dumps(saved))
    assert read_scores([tmp_path / "a.json"]).values.tolist() == [["a", "f" * 12, f"{'f' * 12}/1", 0.5]]


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_input_is_one_sentence(
    kind: str, report: Path, staple: Callable[..., Result], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(report.parent)
    scores, content, features, sentence = WRONG[kind]
    if content is not None:
        Path(scores).write_text(content)
    if features is not None:
        Path("features.csv").write_text(features)
    words = ["effects", scores or "report.json", "--features", "features.csv", "--out", "out"]
    assert sentence in refused(staple(*words))
    assert not Path("out").exists()
