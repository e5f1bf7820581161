"""The filter of toxic pairs (Zhang et al. 2021, section 2), as a pass over a prepared folder."""
