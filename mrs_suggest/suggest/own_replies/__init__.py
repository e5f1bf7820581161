"""A user's own replies in place of those that a retriever was trained with."""
