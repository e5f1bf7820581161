"""Shards of a build: partition, join, split, write."""
