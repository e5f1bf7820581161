"""Synthetic dumps of Reddit comments."""
