"""The build of MRS on Spark: the readers, rules and language identification of `mrs_datasets.builders.reddit` on a
cluster."""
