"""The examples in the docstrings of models and services hold."""

import doctest
import importlib
import pkgutil

import mrs_suggest.models
import mrs_suggest.services


def test_the_examples_in_the_docstrings_hold() -> None:
    run = 0
    for package in (mrs_suggest.models, mrs_suggest.services):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
            found = doctest.testmod(importlib.import_module(module.name), optionflags=flags)
            assert not found.failed, module.name
            run += found.attempted
    assert run > 30
