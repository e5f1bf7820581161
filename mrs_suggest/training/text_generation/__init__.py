"""Generation tasks beside replies: a source text in, one text out, scored by a benchmark's own metric."""
