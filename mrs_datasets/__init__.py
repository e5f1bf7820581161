"""Readers and builders of the data sets; a prepared folder (card, Parquet, report) is what they hand on."""
