"""Options and input that several verbs share."""
