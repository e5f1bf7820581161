"""Training retrievers of replies, and fitting their rankers."""
