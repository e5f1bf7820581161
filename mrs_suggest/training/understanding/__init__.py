"""XGLUE's understanding tasks: their table, data, options, training and evaluation."""
