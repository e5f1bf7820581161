"""Generators: encoder-decoder models that write replies."""
