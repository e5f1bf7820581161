"""Vectors of replies, and exact search among them."""
