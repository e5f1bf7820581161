"""Checks of prepared folders."""
