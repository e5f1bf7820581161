"""Searches over options: sweeps and pruning."""
