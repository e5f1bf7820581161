"""Comparison of systems: scores on the same examples, tables, prediction files, human evaluation."""
