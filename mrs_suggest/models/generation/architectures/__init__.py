"""Architectures that transformers does not have."""
