"""Models of reply suggestion: texts and tensors in, suggestions out; no data-set names."""
