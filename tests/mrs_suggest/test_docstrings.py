"""The examples in the docstrings hold."""

import doctest
import importlib
import pkgutil
from collections.abc import Iterator

import mrs_suggest.models
import mrs_suggest.services

TRAINING = ("options", "sampling", "estimate", "trackers", "reply.options", "retrieval.model")
OTHERS = ("evaluation.paper_results", "integrations.torchmetrics_adapter", *(f"training.{name}" for name in TRAINING))


def modules() -> Iterator[str]:
    for package in (mrs_suggest.models, mrs_suggest.services):
        yield from (module.name for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    yield from (f"mrs_suggest.{name}" for name in OTHERS)


def test_the_examples_in_the_docstrings_hold() -> None:
    run = 0
    for name in modules():
        flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
        found = doctest.testmod(importlib.import_module(name), optionflags=flags)
        assert not found.failed, name
        assert found.attempted or "integrations" not in name, "examples of torchmetrics are really run"
        run += found.attempted
    assert run > 40
