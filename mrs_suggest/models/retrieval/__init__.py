"""Retrievers: encoders of messages and replies."""
