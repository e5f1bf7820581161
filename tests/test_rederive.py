"""The shipped model's figures are those of its record, recomputed from the files that ship."""

import importlib
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration


@pytest.fixture
def rederive(repository: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(repository / "benchmarks")
    return importlib.import_module("rederive")


def test_the_shipped_model_has_the_figures_of_its_record(rederive: Any) -> None:
    """In one language; `python benchmarks/rederive.py` takes all of them."""
    (found,) = rederive.differences(["es"]).values()
    assert {key: found[key] for key, most in rederive.TOLERANCE.items() if abs(found[key]) > most} == {}


def test_a_figure_that_is_not_the_record_s_is_named(
    rederive: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for weighted, code, told in ((0.001, 0, "as recorded"), (-0.02, 1, "further from the record than they may be: es")):
        monkeypatch.setattr(rederive, "differences", lambda _, value=weighted: {"es": {"weighted": value, "mrr": 0.0}})
        assert rederive.main(["es"]) == code
        assert told in capsys.readouterr().out


def test_the_pages_state_the_tolerances(repository: Path, rederive: Any) -> None:
    kinds = (rederive.POOLED_TOLERANCE, rederive.TOLERANCE)
    shown = [f"{one[key]:.3f}".removeprefix("0") for key in ("weighted", "mrr") for one in kinds]
    page = " ".join((repository / "docs" / "how_to" / "reproduce.md").read_text(encoding="utf-8").split())
    assert "by more than {} over all languages or {} in one, or MRR by more than {} or {}.".format(*shown) in page
    assert f"to within {shown[0]}." in (repository / "README.md").read_text(encoding="utf-8")
