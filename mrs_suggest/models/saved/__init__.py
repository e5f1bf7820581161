"""What a trained model leaves in its folder: files by family, `run.json`, and the card."""
