"""Synthetic data: sample, phrase books, dumps, questions."""
