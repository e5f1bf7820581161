"""The `evaluate` module of STAPLE's weighted F1."""
