"""Which translations of a list to keep: features, rules fitted to weighted F1, tuning."""
