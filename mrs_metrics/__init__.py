"""Metrics of multilingual reply suggestion: pure functions by topic, and thin `evaluate` modules over them.

Each topic is a flat file that works alone (`tokenize`, `ngrams`, `rouge`, `distinct`, `ranking`, `significance`,
`signature`); the folders `mrs_rouge` and `dist_n` hold the `evaluate` modules. Nothing is imported here, so that
`import mrs_metrics` costs nothing. Bad arguments raise ValueError with one full sentence.
"""
