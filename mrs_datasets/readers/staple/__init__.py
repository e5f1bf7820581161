"""Readers of STAPLE."""
