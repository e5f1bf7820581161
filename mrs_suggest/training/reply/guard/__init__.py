"""Fitting the guard, the trigger and the language detector of a reply model."""
