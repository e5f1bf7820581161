"""What an installation has, lacks, and what in it is broken: the checks of `mrs doctor`. Nothing large is imported."""
