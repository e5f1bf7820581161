"""Metrics of suggestion lists run together in `evaluate.combine`, and give what they give alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

NAMES = ["mrs_rouge", "dist_n", "self_rouge", "reply_bleu"]
PREDICTIONS = [["Yes, I will be there.", "No.", "Maybe"], ["Thank you very much!", "Thanks a lot!"]]
REFERENCES = ["Yes, I will come.", "Thank you so much!"]


def test_they_give_together_what_they_give_alone(repository: Path) -> None:
    evaluate = pytest.importorskip("evaluate")
    pytest.importorskip("sacrebleu")
    paths = [str(repository / "mrs_metrics" / name) for name in NAMES]
    together: dict[str, Any] = evaluate.combine([evaluate.load(path) for path in paths]).compute(
        predictions=PREDICTIONS, references=REFERENCES, language="en"
    )
    for name, path in zip(NAMES, paths, strict=True):
        alone = evaluate.load(path).compute(predictions=PREDICTIONS, references=REFERENCES, language="en")
        for key, value in alone.items():
            assert together[key if key in together else f"{name}_{key}"] == value, (name, key)
