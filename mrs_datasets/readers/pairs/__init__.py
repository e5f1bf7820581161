"""Readers of message-reply pairs."""
