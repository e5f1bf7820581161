"""What watches or changes a running training."""
