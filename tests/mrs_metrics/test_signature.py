"""Signatures, and the examples in the docstrings."""

from __future__ import annotations

import doctest
import importlib

import pytest

from mrs_metrics import signature as module
from mrs_metrics.signature import signature

TOPICS = (
    "accuracy", "agreement", "bleu", "distinct", "language_match", "perplexity", "punkt", "ranking", "rouge", "seeds",
    "signature", "significance", "similarity", "spaces", "tokenize", "translations_f1", "xglue", "xglue_statistics",
    "xglue_tasks",
)  # fmt: skip


def test_fields_keep_their_order_and_none_is_left_out(monkeypatch):
    monkeypatch.setattr(module, "package_version", lambda: "1.2")
    assert signature("m", b=1, a=None, c=True, d="x") == "m|b:1|c:yes|d:x|version:1.2"


@pytest.mark.parametrize("fields", [{"a": "x|y"}, {"a": ""}, {"version": "1"}])
def test_ambiguous_fields_are_refused(fields):
    with pytest.raises(ValueError, match="signature"):
        signature("m", **fields)


@pytest.mark.parametrize("topic", TOPICS)
def test_docstring_examples_hold(topic):
    if topic in ("bleu", "xglue"):
        pytest.importorskip("sacrebleu", reason="needs sacrebleu")
    if topic == "agreement":
        pytest.importorskip("statsmodels", reason="needs statsmodels")
    result = doctest.testmod(importlib.import_module(f"mrs_metrics.{topic}"))
    assert (result.failed, result.attempted > 0) == (0, True)
