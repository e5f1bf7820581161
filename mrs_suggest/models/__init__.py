"""Models: texts and tensors in, tensors out."""
