"""Imported by Python at its start, where this folder is in PYTHONPATH."""

import few_examples  # noqa: F401
