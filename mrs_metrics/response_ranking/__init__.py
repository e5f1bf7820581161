"""The `evaluate` module of response ranking."""
