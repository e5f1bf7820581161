"""Tables of experiments: which runs they need, how these are run, and the figures in them."""
