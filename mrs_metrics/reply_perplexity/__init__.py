"""The `evaluate` module of the perplexity of real replies."""
