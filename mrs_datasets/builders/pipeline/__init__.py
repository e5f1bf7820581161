"""Work in shards that are done once, by any pipeline: stages, engines, the folder of finished work, checked files."""
