"""The `evaluate` module of MRS's weighted ROUGE."""
