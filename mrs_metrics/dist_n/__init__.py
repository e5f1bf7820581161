"""The `evaluate` module of Dist-n."""
