"""The `evaluate` module of the share of suggestions in a wrong language."""
