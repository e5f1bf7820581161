"""Synthetic sources as data sets."""
