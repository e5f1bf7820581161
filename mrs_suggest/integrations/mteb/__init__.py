"""MRS as tasks of MTEB (Muennighoff et al. 2023, "MTEB: Massive Text Embedding Benchmark"), with the extra `mteb`.

`tasks.mrs_tasks(DATA)` makes them for `mteb.evaluate`; `python -m mrs_suggest.integrations.mteb run ...` is MTEB's own
command line with these tasks added.
"""
