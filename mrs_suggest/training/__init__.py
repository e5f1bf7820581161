"""A run of any task, from options to a published model; `reply` is the message-reply task."""
