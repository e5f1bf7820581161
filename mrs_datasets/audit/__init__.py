"""Samples of a data set that people look at, and what they found."""
