"""Tasks of lm-evaluation-harness: `--include_path $(python -m mrs_suggest.integrations.lm_eval)`."""
