"""What a table's rows say beside each other: letters, best figures, and the claims of a paper."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mrs_suggest.reproduce.cells import Setup
from mrs_suggest.reproduce.claims import FAILS, HOLDS, UNDECIDED, judge
from mrs_suggest.reproduce.comparisons import letter_groups
from mrs_suggest.reproduce.report import make_report, write_report
from mrs_suggest.reproduce.results import Paired
from mrs_suggest.reproduce.runner import run_cells
from mrs_suggest.reproduce.table import ClaimSpec
from tests.mrs_suggest.reproduce.conftest import Ready

TABLE = Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")
RIGHT = {"good": 30, "poor": 10, "same": 30}  # of 40 replies


def with_scores(setup: Setup, languages: Sequence[str] = ("en", "fr"), cells: Sequence[str] = tuple(RIGHT)) -> None:
    """Give every run suggestions, some of which are the reference, and figures."""
    for cell in cells:
        for seed in (42, 43):
            run = setup.output / "cells" / f"{cell}-{seed}" / "run"
            record = json.loads((run / "run.json").read_text())
            metrics = {"weighted": RIGHT[cell] / 40 + (seed - 42) / 100, "dist1": 0.1, "weighted_interval": [0, 1]}
            record["metrics"] |= {
                "systems": {"Model": dict.fromkeys(languages, metrics)}, "signatures": {code: {} for code in languages}
            }  # fmt: skip
            record |= {"plan": {"train": ["en"]}, "hardware": {"machine": "m", "cores": 2}, "seconds": 5.0, "steps": 9}
            (run / "run.json").write_text(json.dumps(record))
            for code in languages:
                rows = [(f"m{n}", "yes it is", "yes it is" if n < RIGHT[cell] + seed - 42 else "no") for n in range(40)]
                (run / f"predictions.{code}.tsv").write_text("".join("\t".join([*row, "a", "b\n"]) for row in rows))


@pytest.fixture
def done(ready: Ready) -> Setup:
    """Return the setup of the table, with its runs finished."""
    setup, cells = ready(text=TABLE)
    assert run_cells(setup, cells, lambda line: None) == {}
    with_scores(setup)
    return setup


def test_letters_best_figures_and_claims(done: Setup, tmp_path: Path) -> None:
    report = make_report(done, {})
    letters, best = report.compared.letters, report.compared.best
    assert letters == {
        ("main", "good", "en", "weighted"): "a", ("main", "same", "en", "weighted"): "a",
        ("main", "poor", "en", "weighted"): "b", ("main", "good", "fr", "weighted"): "a",
        ("main", "poor", "fr", "weighted"): "b",
    }  # fmt: skip
    assert ("main", "good", "en", "weighted") in best
    assert ("main", "poor", "en", "weighted") not in best
    assert ("main", "poor", "en", "dist1") in best, "a tie"
    worse, close, better = report.claims
    assert worse.pooled is not None
    assert (worse.pooled.verdict, worse.pooled.n, worse.pooled.seeds) == (HOLDS, 80, 2)
    assert worse.pooled.first - worse.pooled.second == pytest.approx(-0.5)
    assert worse.pooled.low < -0.5 < worse.pooled.high < 0
    assert set(worse.columns) == {"en", "fr"}
    assert worse.paper == pytest.approx(((0.0331 + 0.0168) / 2, (0.0331 + 0.0216) / 2))
    assert close.pooled is not None
    assert better.pooled is not None
    assert (close.pooled.verdict, close.paper, better.pooled.verdict) == (UNDECIDED, None, FAILS)
    assert (close.pooled.low, close.pooled.share[1]) == (None, None), "equal scores have no interval"
    # The page has them and the runs, without the folders of this machine.
    html, page, record = (path.read_text(encoding="utf-8") for path in write_report(done, {})[:3])
    assert "| good | **.7550**ᵃ ± .0071 | **.7550**ᵃ ± .0071 |" in page
    cell = "<b>.7550</b><sup>a</sup><small>± .0071</small><small class=below>.0331</small>"
    assert f"<td class=shaded>{cell}</td>" in html
    assert "| **holds** | −66\u00a0% [" in page
    assert "(n = 80, 2 seeds; .2625 and .7625)" in page
    assert "Same is close (close: at most 10 % apart; a tenth)" in page
    assert "| [good/42](cells/good-42/run/run.json) | 42 | c0ffee | 5 | 9 | m, 2 cores | [picture]" in page
    assert "`mrs train retrieval --config .../a.yaml --seed 42 --output_dir cells/good-42/run --overwrite true`" in page
    assert str(tmp_path) not in page + html
    content = json.loads(record)
    assert content["printed"]["main"]["weighted"] in page
    assert content["printed"]["main"]["claims"] in page
    assert {one["p"] < 0.05 for one in content["comparisons"]} == {True, False}


def test_what_cannot_be_compared_is_told(done: Setup) -> None:
    with_scores(done, ["en"], ["poor"])
    path = done.output / "cells" / "same-42" / "run" / "predictions.en.tsv"
    path.write_text(path.read_text().replace("m7", "other"))
    report = make_report(done, {})
    assert report.claims[0].missing == {"fr": "poor/42: its run has no Model for fr"}
    assert report.claims[0].pooled is not None
    assert report.claims[0].pooled.n == 40
    assert report.claims[1].pooled is not None
    assert report.claims[1].pooled.seeds == 1, "the other seed is tested on the same examples still"
    assert ("main", "good", "fr", "weighted") not in report.compared.letters


def test_one_test_message_allows_no_test(done: Setup) -> None:
    for path in done.output.glob("cells/*/run/predictions.*.tsv"):
        path.write_text("".join(line + "\n" for line in path.read_text().splitlines()[:1]))
    report = make_report(done, {})
    assert report.claims[0].pooled is None
    assert set(report.claims[0].missing.values()) == {"one test message is too few for a test"}
    assert report.compared.letters == {}


@pytest.mark.parametrize(
    ("says", "shift", "verdict"),
    [
        ("worse", -0.3, HOLDS), ("worse", 0.3, FAILS), ("worse", 0.0, UNDECIDED), ("better", 0.3, HOLDS),
        ("better", -0.3, FAILS), ("close", 0.0, HOLDS), ("close", -0.3, FAILS), ("close", 0.3, FAILS),
        ("close", -0.1, UNDECIDED),
    ],
)  # fmt: skip
def test_a_verdict_needs_the_whole_interval(says: str, shift: float, verdict: str) -> None:
    generator = np.random.default_rng(3)
    second = generator.random((2, 200))
    second += 1 - second.mean()
    noise = generator.normal(0, 0.2, (2, 200))
    pair = Paired(("42", "43"), second + noise - noise.mean() + shift, second, range(200))
    spec = ClaimSpec("x", says, ["a", "b"], within=0.1)
    assert judge(spec, "weighted", pair).verdict == verdict
    if says != "close" and shift:
        assert judge(spec, "perplexity", pair).verdict == (FAILS if verdict == HOLDS else HOLDS)


def test_two_rows_share_a_letter_just_where_they_are_alike() -> None:
    generator = np.random.default_rng(5)
    for _ in range(60):
        rows = list("vwxyz")[: generator.integers(2, 6)]
        alike = {frozenset((a, b)) for a in rows for b in rows if a < b and generator.random() < 0.5}
        letters = letter_groups(rows, alike)
        for a in rows:
            assert letters[a]
            for b in rows:
                if a < b:
                    assert bool(set(letters[a]) & set(letters[b])) == (frozenset((a, b)) in alike), (letters, alike)
