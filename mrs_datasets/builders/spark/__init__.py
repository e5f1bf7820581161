"""MRS on a cluster: Spark as an engine of `mrs_datasets.builders.reddit`."""
