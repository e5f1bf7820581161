"""Data sets that a language model writes from a description of a product, and their review by people."""
