"""What trainers share: data for a run, evaluation, the record of a run, its curves."""
