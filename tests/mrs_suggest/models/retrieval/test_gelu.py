"""The activation against the error function of the standard library."""

from __future__ import annotations

from math import erf

import numpy as np

from mrs_suggest.models.retrieval import gelu as module
from mrs_suggest.models.retrieval.gelu import gelu


def test_values_are_those_of_the_error_function() -> None:
    asked = np.concatenate([np.linspace(-12, 12, 2 * module._AT_A_TIME + 7), [0, -0.0, 1e-30, 80, -80]])
    true = np.array([x * (1 + erf(x / 2**0.5)) / 2 for x in asked])
    found = gelu(asked.astype(np.float32).reshape(-1, 1))[:, 0]
    assert np.abs(found - true).max() < 1.5e-6  # of values up to 12, in float32
    assert np.abs(found - true)[np.abs(asked) < 3].max() < 5e-7
