"""Ranking the replies of a language for a message, and choosing three: memory, mixture, choice."""
