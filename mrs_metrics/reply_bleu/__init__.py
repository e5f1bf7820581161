"""The `evaluate` module of BLEU for reply suggestion."""
