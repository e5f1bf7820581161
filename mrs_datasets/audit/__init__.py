"""Audits: samples of a data set for people to judge, and the results."""
