"""Prepared folders: made, opened, published, installed."""
