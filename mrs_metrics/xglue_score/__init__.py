"""The `evaluate` module of the XGLUE scores."""
