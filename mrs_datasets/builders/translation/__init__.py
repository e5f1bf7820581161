"""Machine-translated pairs and response sets (Zhang et al. 2021, sections 2.1, 3.2): a pass over a prepared folder."""
