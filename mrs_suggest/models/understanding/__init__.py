"""Multiple choice, classification, tagging and reading."""
