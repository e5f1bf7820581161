"""The examples in the docstrings hold."""

import doctest
import importlib
import pkgutil
from importlib.util import find_spec

import pytest

import mrs_datasets
import mrs_metrics
import mrs_suggest

PACKAGES = (mrs_suggest, mrs_datasets, mrs_metrics)
# Harnesses need environments of their own; `evaluate.load` of a module, that it is installed.
LEFT_OUT = ("lighteval", "lm_eval", "mrs_metrics.modules")
MODULES = [
    one.name
    for at in PACKAGES
    for one in pkgutil.walk_packages(at.__path__, f"{at.__name__}.")
    if not any(part in one.name for part in LEFT_OUT)
]


@pytest.mark.skipif(find_spec("torch") is None, reason="some modules need torch")
def test_the_examples_in_the_docstrings_hold() -> None:
    run = 0
    for name in MODULES:
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        found = doctest.testmod(importlib.import_module(name), optionflags=flags)
        assert not found.failed, name
        run += found.attempted
    assert run > 180
