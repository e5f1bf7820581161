"""What a finished run leaves: model files, card, curves, families and starting points."""
