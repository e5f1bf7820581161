"""Shared by all packages: languages, errors, files, arguments, provenance. Imports nothing else of the project."""

__version__ = "0.2.0"
