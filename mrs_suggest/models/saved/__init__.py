"""The folder of a trained model: its files by family, `run.json`, and the card."""
