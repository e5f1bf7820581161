"""The `evaluate` module of Self-ROUGE."""
