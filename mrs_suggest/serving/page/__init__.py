"""The chat page of `mrs demo`, and its Space."""
