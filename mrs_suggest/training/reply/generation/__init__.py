"""Training generators of replies."""
