"""From monthly Reddit dumps to message-reply pairs, one stage per file (Zhang et al. 2021, section 2)."""
