"""Tasks of lm-evaluation-harness: YAML files that call the functions of `tasks`."""
