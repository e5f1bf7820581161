"""What a run prints: every system, its lead, and one row a language."""

from __future__ import annotations

from typing import Any

import pytest

from mrs_training.tables import print_results


def figures(languages: list[str]) -> dict[str, Any]:
    row = {
        "n": 1234, "weighted": 0.1234, "weighted_interval": [0.1, 0.2], "mrr": 0.5, "mrr_interval": [0.4, 0.6],
        "p@1": 0.25, "dist1": 0.3, "dist2": 0.4,
    }  # fmt: skip
    scopes = ["pooled", *languages]
    names = ["Model", "Random", "Most frequent", "TF-IDF"]
    lead = {"weighted": [-0.01, 0.02], "mrr": [0.1, 0.2]}
    return {
        "systems": {name: dict.fromkeys(scopes, row) for name in names},
        "differences": {name: dict.fromkeys(scopes, lead) for name in names[1:]},
        "pool_size": 100,
        "signatures": {code: {"mrs_rouge": f"mrs_rouge|lang:{code}"} for code in languages},
    }


@pytest.mark.parametrize("languages", [["es"], ["es", "ja"]])
def test_the_four_rows(languages: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    print_results(figures(languages))
    printed = capsys.readouterr().out
    for name in ("Model", "Random", "Most frequent", "TF-IDF"):
        assert sum(line.startswith(f"│ {name} ") for line in printed.splitlines()) == 1
    assert "1,234 examples" in printed
    row = next(line for line in printed.splitlines() if line.startswith("│ TF-IDF"))
    for figure in (".1234", ".500", "-.010", "+.020", "+.100", ".250", ".300", ".400"):
        assert figure in row
    assert "mrs_rouge|lang:es" in printed
    assert ("2 languages pooled" in printed) == (len(languages) == 2)
    assert any(line.startswith("│ ja ") for line in printed.splitlines()) == (len(languages) == 2)
    assert max(len(line) for line in printed.splitlines()) <= 120
