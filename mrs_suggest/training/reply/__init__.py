"""The message-reply task: its options, data, settings and batches, evaluation, record and card."""
