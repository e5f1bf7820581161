"""The `evaluate` modules, one file each, with the README of their Spaces."""
