"""Tasks of lighteval: `--custom-tasks mrs_suggest.integrations.lighteval.tasks`."""
