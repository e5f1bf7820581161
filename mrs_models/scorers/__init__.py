"""Scorers of texts: a checkpoint that classifies, word lists, a service over HTTP."""
