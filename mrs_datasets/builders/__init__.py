"""Builds of MRS from dumps of Reddit comments."""
