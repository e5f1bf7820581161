"""The grammars of the synthetic data sets: paraphrases of a prompt, and conversations."""
